//! What an Envoy of the harness is made of, and the JSON that says so to Envoy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hyper::header::HeaderName;
use serde::Serialize;
use serde_json::{Value, json};

/// Headers up to this size reach the filter, so that long values can be tested, in KB.
const MAX_HEADERS_KB: u32 = 96;

/// More than any load of the harness has in flight, so that Envoy's own limits never answer.
const MAX_IN_FLIGHT: u32 = 100_000;

/// The header that a request gets on its way through a listener whose plugin was taken away.
pub const UNLIMITED: HeaderName = HeaderName::from_static("x-headgate-unlimited");

/// One Envoy.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's id; also names its log, so it is unique in a scene.
    pub node: String,
    /// Worker threads.
    pub workers: u32,
    /// Where admitted requests go.
    pub upstream: SocketAddr,
    /// HTTP/2 clusters beside the upstream, by name; the counter service is one of them.
    pub clusters: Vec<(String, SocketAddr)>,
    /// The plugin, or none, for the latency without it.
    pub filter: Option<Filter>,
    /// Where a second listener, which never has the plugin, sends its requests; none makes no
    /// such listener.
    pub plain: Option<SocketAddr>,
    /// How the first listener reaches Envoy.
    pub delivery: Delivery,
    /// Environment variables on top of ours.
    pub environment: Vec<(String, String)>,
    /// Envoy's log level.
    pub log_level: &'static str,
}

/// The plugin and its settings.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The module.
    pub wasm: PathBuf,
    /// The plugin configuration as the plugin reads it; may be wrong on purpose.
    pub configuration: String,
    /// What Envoy does when the plugin crashes.
    pub failure_policy: FailurePolicy,
    /// Plugins of one id share their data; Istio sets none.
    pub vm_id: String,
}

/// `envoy.extensions.wasm.v3.FailurePolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Answers 503 from then on.
    Closed,
    /// Lets everything through from then on.
    Open,
    /// Starts the plugin anew.
    Reload,
}

/// How the listener reaches Envoy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In the bootstrap; an error there ends Envoy.
    Static,
    /// In a watched file, so that it can be changed while Envoy runs; an error there is rejected.
    Live,
}

impl Config {
    /// One worker, no plugin, a listener in the bootstrap.
    #[must_use]
    pub fn plain(node: &str, upstream: SocketAddr) -> Self {
        Self {
            node: node.to_owned(),
            workers: 1,
            upstream,
            clusters: Vec::new(),
            filter: None,
            plain: None,
            delivery: Delivery::Static,
            environment: Vec::new(),
            log_level: "info",
        }
    }

    /// The bootstrap. `plain` is where the second listener listens; `listeners` is the watched
    /// file of [`Delivery::Live`].
    pub(super) fn bootstrap(&self, port: SocketAddr, plain: SocketAddr, listeners: &Path) -> Value {
        let mut clusters = vec![cluster("upstream", self.upstream, false)];
        let mut fixed = Vec::new();
        if let Some(upstream) = self.plain {
            clusters.push(cluster("plain-upstream", upstream, false));
            fixed.push(listener("plain", plain, "plain-upstream", None));
        }
        clusters.extend(
            self.clusters
                .iter()
                .map(|(name, to)| cluster(name, *to, true)),
        );
        let watched = match self.delivery {
            Delivery::Static => {
                fixed.push(self.listener(port));
                Value::Null
            }
            Delivery::Live => json!({"lds_config": {
                "resource_api_version": "V3",
                "path_config_source": {
                    "path": listeners,
                    "watched_directory": {"path": listeners.parent()},
                },
            }}),
        };
        json!({
            "node": {"id": self.node, "cluster": "headgate-tests"},
            // Envoy picks a free port and writes it to a file.
            "admin": {"address": socket(SocketAddr::from(([127, 0, 0, 1], 0)))},
            "static_resources": {"clusters": clusters, "listeners": fixed},
            "dynamic_resources": watched,
            // Values are always those of now; histograms lag behind by so much.
            "stats_flush_interval": "0.1s",
        })
    }

    /// The watched file's content.
    pub(super) fn discovery(&self, port: SocketAddr, version: u64) -> Value {
        let mut listener = self.listener(port);
        if let Value::Object(fields) = &mut listener {
            let name = "type.googleapis.com/envoy.config.listener.v3.Listener";
            fields.insert("@type".to_owned(), json!(name));
        }
        json!({"version_info": version.to_string(), "resources": [listener]})
    }

    fn listener(&self, port: SocketAddr) -> Value {
        let mut listener = listener("ingress", port, "upstream", self.filter.as_ref());
        let manager = "/filter_chains/0/filters/0/typed_config/route_config";
        if let (None, Some(routes)) = (&self.filter, listener.pointer_mut(manager)) {
            let header = json!({"key": UNLIMITED.as_str(), "value": "yes"});
            routes["request_headers_to_add"] = json!([{"header": header}]);
        }
        listener
    }
}

impl Filter {
    /// The plugin at `wasm`, which reloads after a crash and has no id, as under Istio.
    #[must_use]
    pub fn new(wasm: PathBuf, configuration: &impl Serialize) -> Self {
        Self {
            wasm,
            configuration: json!(configuration).to_string(),
            failure_policy: FailurePolicy::Reload,
            vm_id: String::new(),
        }
    }

    fn http_filter(&self) -> Value {
        let policy = match self.failure_policy {
            FailurePolicy::Closed => "FAIL_CLOSED",
            FailurePolicy::Open => "FAIL_OPEN",
            FailurePolicy::Reload => "FAIL_RELOAD",
        };
        let configuration = json!({
            "@type": "type.googleapis.com/google.protobuf.StringValue",
            "value": self.configuration,
        });
        json!({
            "name": "headgate",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
                "config": {
                    "name": "headgate",
                    "root_id": "headgate",
                    "failure_policy": policy,
                    "configuration": configuration,
                    "vm_config": {
                        "vm_id": self.vm_id,
                        "runtime": "envoy.wasm.runtime.v8",
                        "code": {"local": {"filename": self.wasm}},
                    },
                },
            },
        })
    }
}

fn listener(name: &str, port: SocketAddr, upstream: &str, filter: Option<&Filter>) -> Value {
    let mut filters: Vec<Value> = filter.map(Filter::http_filter).into_iter().collect();
    filters.push(json!({
        "name": "envoy.filters.http.router",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        },
    }));
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.\
                  http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "max_request_headers_kb": MAX_HEADERS_KB,
        "http_filters": filters,
        "route_config": {"virtual_hosts": [{
            "name": "all",
            "domains": ["*"],
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": upstream}}],
        }]},
    });
    json!({
        "name": name,
        "address": socket(port),
        // Each worker gets its part of the few connections that a test makes.
        "connection_balance_config": {"exact_balance": {}},
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": manager,
        }]}],
    })
}

fn cluster(name: &str, to: SocketAddr, http2: bool) -> Value {
    let protocol = if http2 {
        "http2_protocol_options"
    } else {
        "http_protocol_options"
    };
    json!({
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": socket(to)}}]}],
        },
        "circuit_breakers": {"thresholds": [{
            "max_connections": MAX_IN_FLIGHT,
            "max_pending_requests": MAX_IN_FLIGHT,
            "max_requests": MAX_IN_FLIGHT,
        }]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.\
                          HttpProtocolOptions",
                "explicit_http_config": {protocol: {}},
            },
        },
    })
}

fn socket(address: SocketAddr) -> Value {
    json!({"socket_address": {
        "address": address.ip().to_string(),
        "port_value": address.port(),
    }})
}
