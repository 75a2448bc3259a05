//! Real Envoys as processes.

mod config;
mod stats;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use hyper::body::Bytes;
use hyper::header::DATE;
use hyper::{Method, StatusCode};
use tokio::net::TcpStream;

use crate::load::{Client, Request};
use crate::ports::Reservation;
use crate::process::{Process, Spec};
use crate::scene::Scene;
use crate::{http, poll};

pub use config::{Config, Delivery, FailurePolicy, Filter, UNLIMITED};
pub use stats::Stats;

/// How long a start may take: compiling the module once per thread on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// How long a live change may take; as above.
const UPDATE_DEADLINE: Duration = Duration::from_secs(30);

/// How long the admin interface may take; it waits for the main thread.
const ADMIN_DEADLINE: Duration = Duration::from_secs(10);

/// How long a clean stop may take.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Seconds that an old listener has for its requests after a live change.
const DRAIN_SECONDS: u32 = 2;

/// What became of a live change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// It is in force.
    Accepted,
    /// Envoy goes on with the one before.
    Rejected,
}

/// An Envoy on a port of its own, the same after a restart. Ends when dropped.
#[derive(Debug)]
pub struct Envoy {
    /// Kill, stop, resume and read the log here.
    pub process: Process,
    config: Config,
    port: Reservation,
    plain: Reservation,
    admin: SocketAddr,
    files: Files,
    /// Number of the configuration in the watched file.
    version: u64,
}

/// What an Envoy reads and writes.
#[derive(Debug)]
struct Files {
    bootstrap: PathBuf,
    /// Alone in its folder, which Envoy watches.
    listeners: PathBuf,
    admin: PathBuf,
}

impl Envoy {
    /// Starts one and waits until it serves.
    ///
    /// # Errors
    /// When it does not come up; the end of its log is in the message.
    pub async fn start(scene: &Scene, config: Config) -> Result<Self> {
        let envoy = Self::start_unready(scene, config).await?;
        envoy.listening().await?;
        Ok(envoy)
    }

    /// Starts one and waits for its admin interface only: its listener may be rejected.
    ///
    /// # Errors
    /// When it does not come up; the end of its log is in the message.
    pub async fn start_unready(scene: &Scene, config: Config) -> Result<Self> {
        let (port, plain) = (Reservation::new()?, Reservation::new()?);
        let folder = scene.folder().join(&config.node);
        let files = Files::write(&folder, &config, port.address(), plain.address())?;
        let mut process = Process::start(Spec {
            name: config.node.clone(),
            program: program()?,
            arguments: files.arguments(&config),
            environment: config.environment.clone(),
            log: scene.folder().join(format!("{}.log", config.node)),
        })?;
        let admin = files.admin_address(&mut process).await?;
        Ok(Self {
            process,
            config,
            port,
            plain,
            admin,
            files,
            version: 1,
        })
    }

    /// Kills it if it runs, starts it with the same configuration and port, waits until it serves.
    ///
    /// # Errors
    /// As those of [`Envoy::start`].
    pub async fn restart(&mut self) -> Result<()> {
        std::fs::remove_file(&self.files.admin).context("cannot forget the admin address")?;
        self.process.restart()?;
        self.admin = self.files.admin_address(&mut self.process).await?;
        self.listening().await
    }

    /// Stops it as an operator would (SIGTERM).
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.process.terminate(STOP_DEADLINE).await
    }

    /// Changes the listener of an Envoy with [`Delivery::Live`]: another filter, or none.
    ///
    /// # Errors
    /// When Envoy neither accepts nor rejects it in time.
    pub async fn update(&mut self, filter: Option<Filter>) -> Result<Update> {
        ensure!(
            self.config.delivery == Delivery::Live,
            "the listener of {} is fixed",
            self.name()
        );
        let changes = |stats: &Stats| {
            let count = |name| {
                stats
                    .value(&format!("listener_manager.lds.{name}"))
                    .unwrap_or(0)
            };
            (count("update_success"), count("update_rejected"))
        };
        let (accepted, rejected) = changes(&self.stats().await?);
        let before = self.config.filter.clone();
        self.config.filter = filter;
        self.version += 1;
        let discovery = self.config.discovery(self.port.address(), self.version);
        write(&self.files.listeners, &discovery.to_string())?;
        let what = format!("{} to accept or reject its new listener", self.name());
        let update = poll::until(&what, UPDATE_DEADLINE, async || {
            self.process.ensure_running()?;
            let stats = fetch_stats(self.admin).await?;
            Ok(match changes(&stats) {
                (now, _) if now > accepted => Some(Update::Accepted),
                (_, now) if now > rejected => Some(Update::Rejected),
                _ => None,
            })
        })
        .await?;
        if update == Update::Rejected {
            self.config.filter = before;
        }
        Ok(update)
    }

    /// Where it takes requests.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Where it takes requests past the plugin; nobody listens there without [`Config::plain`].
    #[must_use]
    pub fn plain_address(&self) -> SocketAddr {
        self.plain.address()
    }

    /// Its node id.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.node
    }

    /// All its statistics now.
    ///
    /// # Errors
    /// When the admin interface does not answer.
    pub async fn stats(&self) -> Result<Stats> {
        fetch_stats(self.admin).await
    }

    /// Waits until its statistics satisfy a condition, and gives them back.
    ///
    /// # Errors
    /// When they do not within `deadline`, or Envoy does not answer.
    pub async fn stats_until(
        &self,
        what: &str,
        deadline: Duration,
        mut condition: impl FnMut(&Stats) -> bool,
    ) -> Result<Stats> {
        let what = format!("{}: {what}", self.name());
        poll::until(&what, deadline, async || {
            let stats = self.stats().await?;
            Ok(condition(&stats).then_some(stats))
        })
        .await
    }

    /// Calls the admin interface, such as `POST /drain_listeners`.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn admin(&self, method: Method, path: &str) -> Result<(StatusCode, Bytes)> {
        http::request(method, self.admin, path, ADMIN_DEADLINE).await
    }

    /// The date that it writes into its answers: its wall clock, as an HTTP date.
    ///
    /// # Errors
    /// When the admin interface does not answer with one.
    pub async fn date(&self) -> Result<String> {
        let request = Request {
            address: self.admin,
            path: "/ready",
            header: None,
            deadline: ADMIN_DEADLINE,
        };
        let reply = Client::new().send(request).await;
        let date = reply.headers.get(DATE).context("an answer without date")?;
        Ok(date.to_str()?.to_owned())
    }

    /// Waits until it takes connections.
    async fn listening(&self) -> Result<()> {
        let what = format!("{} to listen on {}", self.name(), self.address());
        poll::until(&what, START_DEADLINE, async || {
            Ok(TcpStream::connect(self.address())
                .await
                .is_ok()
                .then_some(()))
        })
        .await
    }
}

impl Files {
    fn write(folder: &Path, config: &Config, port: SocketAddr, plain: SocketAddr) -> Result<Self> {
        let files = Self {
            bootstrap: folder.join("bootstrap.json"),
            listeners: folder.join("watched").join("listeners.json"),
            admin: folder.join("admin"),
        };
        let watched = folder.join("watched");
        std::fs::create_dir_all(&watched)
            .with_context(|| format!("cannot make {}", watched.display()))?;
        let bootstrap = config.bootstrap(port, plain, &files.listeners);
        write(&files.bootstrap, &bootstrap.to_string())?;
        write(&files.listeners, &config.discovery(port, 1).to_string())?;
        Ok(files)
    }

    fn arguments(&self, config: &Config) -> Vec<String> {
        vec![
            "--config-path".to_owned(),
            self.bootstrap.display().to_string(),
            "--admin-address-path".to_owned(),
            self.admin.display().to_string(),
            "--concurrency".to_owned(),
            config.workers.to_string(),
            "--log-level".to_owned(),
            config.log_level.to_owned(),
            "--drain-time-s".to_owned(),
            DRAIN_SECONDS.to_string(),
            // Each is alone: no shared memory, so no number to keep apart from others'.
            "--disable-hot-restart".to_owned(),
        ]
    }

    /// Waits for the address that Envoy writes, and until it says there that it is ready.
    async fn admin_address(&self, process: &mut Process) -> Result<SocketAddr> {
        poll::until(
            "Envoy's admin interface to be ready",
            START_DEADLINE,
            async || {
                process.ensure_running()?;
                let Ok(text) = std::fs::read_to_string(&self.admin) else {
                    return Ok(None);
                };
                // Not written to the end yet, or not yet ready: look again.
                let Ok(address) = text.trim().parse() else {
                    return Ok(None);
                };
                let answer = http::request(Method::GET, address, "/ready", ADMIN_DEADLINE).await;
                Ok(matches!(answer, Ok((StatusCode::OK, _))).then_some(address))
            },
        )
        .await
    }
}

/// By rename, because Envoy reads a watched file as soon as one has moved there.
fn write(path: &Path, text: &str) -> Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)
        .and_then(|()| std::fs::rename(&new, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

async fn fetch_stats(admin: SocketAddr) -> Result<Stats> {
    let path = "/stats?format=json";
    let (status, body) = http::request(Method::GET, admin, path, ADMIN_DEADLINE).await?;
    ensure!(status == StatusCode::OK, "{path} answered {status}");
    Stats::parse(&body)
}

/// `$ENVOY`, else one on the PATH, else the one that `build.sh` installs.
///
/// # Errors
/// When there is none.
pub fn program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("ENVOY") {
        return Ok(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = crate::scene::target_folder().join("envoy").join("bin");
    let mut folders = std::env::split_paths(&path).chain([installed]);
    match folders.find_map(|folder| Some(folder.join("envoy")).filter(|file| file.is_file())) {
        Some(program) => Ok(program),
        None => {
            bail!("there is no Envoy: set $ENVOY, or run `./build.sh test`, which installs one")
        }
    }
}
