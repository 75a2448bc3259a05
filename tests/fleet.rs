//! Several Envoys with the plugin, their counter service and their upstream: what most scenarios
//! and the demo begin with.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hyper::header::{HeaderName, HeaderValue};

use crate::counter::{self, Counter};
use crate::envoy::{self, Delivery, Envoy, Filter};
use crate::load::{Class, Client, Key, Load, Pace, Request};
use crate::poll;
use crate::rules::{COUNTER_CLUSTER, Rules};
use crate::scene::{Scene, artefact};
use crate::upstream::Upstream;

/// How long an Envoy may take until it decides requests: it has to get its seat first.
const READY_DEADLINE: Duration = Duration::from_secs(20);

/// What a fleet consists of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of Envoys.
    pub envoys: usize,
    /// Workers of each.
    pub workers: u32,
    /// The plugin's configuration in all of them.
    pub rules: Rules,
    /// The headers that keys come in, at least one; the upstream counts by them.
    pub headers: Vec<HeaderName>,
    /// A listener without the plugin sends its requests there.
    pub plain: Option<SocketAddr>,
    /// Where the Envoys find the counter service, if not at its own address.
    pub way: Option<SocketAddr>,
    /// How the listeners reach the Envoys.
    pub delivery: Delivery,
}

/// A fleet at work.
#[derive(Debug)]
pub struct Fleet {
    /// Counts what got through.
    pub upstream: Upstream,
    /// The counter service.
    pub counter: Counter,
    /// The Envoys.
    pub envoys: Vec<Envoy>,
    /// The first of them.
    header: HeaderName,
    /// Numbers the probes, so that each has a key of its own.
    probes: u64,
}

impl Plan {
    /// Three Envoys with two workers each, and keys in `x-api-key`.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            envoys: 3,
            workers: 2,
            rules,
            headers: vec![HeaderName::from_static("x-api-key")],
            plain: None,
            way: None,
            delivery: Delivery::Static,
        }
    }

    /// Another number of Envoys.
    #[must_use]
    pub fn envoys(mut self, envoys: usize) -> Self {
        self.envoys = envoys;
        self
    }

    /// What one of its Envoys is made of.
    ///
    /// # Errors
    /// When the plugin was not built.
    pub fn envoy(
        &self,
        node: &str,
        upstream: SocketAddr,
        counter: SocketAddr,
    ) -> Result<envoy::Config> {
        let mut config = envoy::Config::plain(node, upstream);
        config.workers = self.workers;
        config.clusters = vec![(COUNTER_CLUSTER.to_owned(), counter)];
        config.filter = Some(filter(&self.rules)?);
        config.plain = self.plain;
        config.delivery = self.delivery;
        Ok(config)
    }

    /// Starts the Envoys for a counter service that somebody else runs, or nobody.
    ///
    /// # Errors
    /// When one does not come up.
    pub async fn start_envoys(
        &self,
        scene: &Scene,
        upstream: SocketAddr,
        counter: SocketAddr,
    ) -> Result<Vec<Envoy>> {
        let mut envoys = Vec::new();
        for number in 1..=self.envoys {
            let config = self.envoy(&format!("envoy-{number}"), upstream, counter)?;
            envoys.push(Envoy::start(scene, config).await?);
        }
        Ok(envoys)
    }

    /// Starts everything, and waits until each Envoy decides requests.
    ///
    /// # Errors
    /// When a part does not come up.
    pub async fn start(self, scene: &Scene) -> Result<Fleet> {
        let counter = Counter::start(scene, counter::Options::named("counter")).await?;
        let mut fleet = self.start_with(scene, counter).await?;
        fleet.ready().await?;
        Ok(fleet)
    }

    /// Starts all but the counter service, which is given, and waits for nothing but the Envoys.
    ///
    /// # Errors
    /// When a part does not come up.
    pub async fn start_with(self, scene: &Scene, counter: Counter) -> Result<Fleet> {
        let header = self
            .headers
            .first()
            .context("a fleet needs a header for its keys")?;
        // What passes where there is no plugin is counted apart.
        let headers = [vec![envoy::UNLIMITED], self.headers.clone()].concat();
        let upstream = Upstream::start_for(headers).await?;
        let way = self.way.unwrap_or(counter.address());
        let envoys = self.start_envoys(scene, upstream.address(), way).await?;
        Ok(Fleet {
            upstream,
            counter,
            envoys,
            header: header.clone(),
            probes: 0,
        })
    }
}

/// The plugin that was built, with these rules.
///
/// # Errors
/// When it was not built.
pub fn filter(rules: &Rules) -> Result<Filter> {
    Ok(Filter::new(
        artefact("HEADGATE_WASM", "headgate.wasm")?,
        rules,
    ))
}

impl Fleet {
    /// Waits until each Envoy has told the service what it holds, and admits a request for a key
    /// that it has never seen (which the service decides for those it does not know yet, too).
    ///
    /// # Errors
    /// When one does not in time.
    pub async fn ready(&mut self) -> Result<()> {
        let all = self.envoys.len();
        poll::until("all Envoys to register", READY_DEADLINE, async || {
            let registered = self.counter.metric("headgate_replicas_registered").await?;
            Ok((registered >= u64::try_from(all)?).then_some(()))
        })
        .await?;
        let client = Client::new();
        for envoy in &self.envoys {
            let what = format!("{} to decide requests", envoy.name());
            poll::until(&what, READY_DEADLINE, async || {
                self.probes += 1;
                let key = HeaderValue::from_str(&format!("probe-{}", self.probes))?;
                let request = Request {
                    address: envoy.address(),
                    path: "/",
                    header: Some((&self.header, &key)),
                    deadline: Duration::from_secs(5),
                };
                let reply = client.send(request).await;
                Ok((reply.class == Class::Admitted).then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// A load of `count` requests over all Envoys, 16 at a time.
    #[must_use]
    pub fn load(&self, keys: Vec<Key>, count: u64) -> Load {
        let addresses = self.envoys.iter().map(Envoy::address);
        let mut load = Load::new(addresses, keys, Pace::Count(count));
        load.header = self.header.clone();
        load
    }

    /// As [`Fleet::load`], for one key.
    ///
    /// # Errors
    /// When it cannot be a header's value.
    pub fn load_of(&self, key: &str, count: u64) -> Result<Load> {
        Ok(self.load(vec![Key::named(key)?], count))
    }

    /// The sum of a counter of the plugin over all Envoys, such as `headgate_asked_total`.
    ///
    /// # Errors
    /// When an Envoy does not answer or has no such counter.
    pub async fn sum(&self, name: &str) -> Result<u64> {
        sum(&self.envoys, name).await
    }
}

/// The sum of a counter of the plugin over Envoys.
///
/// # Errors
/// As those of [`Fleet::sum`].
pub async fn sum(envoys: &[Envoy], name: &str) -> Result<u64> {
    let mut sum: u64 = 0;
    for envoy in envoys {
        let value = envoy.stats().await?.plugin(name)?;
        sum = sum.checked_add(value).context("a sum beyond all counts")?;
    }
    ensure!(!envoys.is_empty(), "there are no Envoys");
    Ok(sum)
}
