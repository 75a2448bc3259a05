//! `headgate serve`: puts the parts together, runs them, and takes them down in order.

use std::{
    fmt, fs, future::Future, io, mem, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration,
};

use headgate_core::units::Epoch;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::{oneshot, watch},
    task::{JoinError, JoinHandle, spawn_blocking},
    time::timeout,
};
use tonic::service::RoutesBuilder;

use crate::{
    args::{Limits, Serve},
    clock::Monotonic,
    engine::{self, Engine, EngineError, Queue, Shard, Tenure},
    grpc,
    http::{self, Phase},
    metrics::Metrics,
    store::{
        Candidate, Record, Store, StoreError,
        embedded::{EmbeddedStore, OpenError, Options},
    },
};

/// Why the service ended other than by being stopped: one sentence each.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An address cannot be listened on.
    #[error("cannot listen on {address} ({flag}): {source}; choose another address or port")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Where it came from.
        flag: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The file for the addresses cannot be written.
    #[error("cannot write {} (--addresses-file): {source}; choose another path", path.display())]
    AddressesFile {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be led or loaded.
    #[error("cannot start from the store: {0}")]
    Load(#[from] StoreError),
    /// The records of the store mean nothing to this version.
    #[error("cannot use the records of the store: {0}")]
    Records(String),
    /// The engine gave up.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A server gave up.
    #[error("the {server} server ended: {reason}; see the log before this")]
    Server {
        /// Which one.
        server: &'static str,
        /// Why.
        reason: String,
    },
    /// A task panicked: a defect of this program.
    #[error("internal error: {0}; please report it with the log before this")]
    Defect(String),
    /// A stop took too long.
    #[error("not stopped within {0:?} (--stop-timeout): a write to the store is still under way")]
    StopTimeout(Duration),
    /// The runtime cannot be had.
    #[error("cannot start: {0}; check the limits of this process")]
    System(io::Error),
}

/// What the shard of keys and the calls that lead to it are made of.
#[derive(Debug)]
pub struct Context<'a, C> {
    /// Every record of the store.
    pub records: Vec<Record>,
    /// The epoch of this leadership.
    pub epoch: Epoch,
    /// Bounds.
    pub limits: &'a Limits,
    /// Where to count.
    pub metrics: &'a Metrics,
    /// The clock of all moments that the engine names.
    pub clock: Monotonic,
    /// The way to the engine.
    pub queue: Queue<C>,
    /// Where to add gRPC services.
    pub routes: &'a mut RoutesBuilder,
}

/// Time for answers to reach their callers after the last one was released, and for the HTTP side
/// to finish. What is open then (a health watcher's stream, an idle scrape) is cut.
const DRAIN: Duration = Duration::from_millis(500);

/// Serves a shard and the calls that lead to it until SIGTERM or SIGINT. `build` makes the shard
/// of the records and adds its gRPC services.
pub async fn serve<S: Shard>(
    args: &Serve,
    build: impl FnOnce(Context<'_, S::Command>) -> Result<S, Failure>,
) -> Result<(), Failure> {
    let signal = signals()?;
    let metrics = Metrics::new();
    let (grpc, http) = bind(args).await?;
    let options = Options {
        metrics: metrics.store.clone(),
        ..Options::default()
    };
    let folder = args.data_dir.clone();
    let opened = spawn_blocking(move || EmbeddedStore::open(&folder, options)).await;
    let store = Arc::new(opened.map_err(defect)??);
    let service = Service {
        args,
        metrics,
        grpc,
        http,
        store: Arc::clone(&store),
    };
    let result = service.run(signal, build).await;
    if result.is_ok() {
        // Waits for the store's thread.
        spawn_blocking(move || drop(store)).await.map_err(defect)?;
        tracing::info!("stopped");
    } else {
        // A disk that hangs must not keep the process from ending.
        mem::forget(store);
    }
    result
}

/// All that is needed to lead and to serve.
struct Service<'a, T> {
    args: &'a Serve,
    metrics: Metrics,
    grpc: TcpListener,
    http: TcpListener,
    store: Arc<T>,
}

impl<T: Store> Service<'_, T> {
    async fn run<S: Shard>(
        self,
        mut signal: impl Future<Output = &'static str> + Unpin,
        build: impl FnOnce(Context<'_, S::Command>) -> Result<S, Failure>,
    ) -> Result<(), Failure> {
        let phase = watch::Sender::new(Phase::Starting);
        let routes = http::routes(Arc::clone(&self.metrics.registry), phase.subscribe());
        let http = tokio::spawn(async { axum::serve(self.http, routes).await });

        let candidate = Candidate {
            id: random_id()?,
            address: self.args.listen.to_string(),
        };
        let (tenure, records) = tokio::select! {
            leading = lead(&*self.store, &candidate) => leading?,
            name = &mut signal => {
                tracing::info!(signal = name, "stops before it led");
                return Ok(());
            }
        };

        let clock = Monotonic::start();
        let engine_metrics = self.metrics.engine.clone();
        let length = usize::try_from(self.args.limits.max_queued_calls).unwrap_or(usize::MAX);
        let (queue, commands) = engine::queue(length, engine_metrics.clone());
        let mut routes = grpc::standard_services(phase.subscribe())
            .map_err(|error| Failure::Defect(error.to_string()))?;
        let shard = build(Context {
            records,
            epoch: tenure.epoch(),
            limits: &self.args.limits,
            metrics: &self.metrics,
            clock,
            queue: queue.clone(),
            routes: &mut routes,
        })?;
        let engine = Engine::new(shard, self.store, tenure, commands, clock, engine_metrics);
        let (stop_engine, engine_stopped) = oneshot::channel();
        let (stop_grpc, grpc_stopped) = oneshot::channel::<()>();
        let grpc_stopped = async { drop(grpc_stopped.await) };
        let mut running = Running {
            engine: tokio::spawn(engine.run(engine_stopped)),
            grpc: tokio::spawn(grpc::serve(self.grpc, routes.routes(), grpc_stopped)),
            http,
        };

        phase.send_replace(Phase::Serving);
        tracing::info!("serves");
        tokio::select! {
            failure = running.failure() => return Err(failure),
            name = &mut signal => tracing::info!(signal = name, "stops"),
        }
        phase.send_replace(Phase::Stopping);
        drop((queue, stop_engine, stop_grpc));
        running.stop(self.args.limits.stop_timeout).await
    }
}

/// Leads and loads.
async fn lead(
    store: &impl Store,
    candidate: &Candidate,
) -> Result<(Tenure, Vec<Record>), StoreError> {
    let tenure = engine::elect(store, candidate).await?;
    let records = store.load(tenure.epoch()).await?;
    tracing::info!(epoch = %tenure.epoch(), records = records.len(), "leads");
    Ok((tenure, records))
}

/// The tasks of a service that serves.
struct Running {
    engine: JoinHandle<Result<(), EngineError>>,
    grpc: JoinHandle<Result<(), tonic::transport::Error>>,
    http: JoinHandle<io::Result<()>>,
}

impl Running {
    /// Waits for a task that ends though nobody stopped it.
    async fn failure(&mut self) -> Failure {
        tokio::select! {
            ended = &mut self.engine => match ended {
                Ok(Ok(())) => Failure::Defect("the engine stopped by itself".into()),
                Ok(Err(error)) => error.into(),
                Err(error) => defect(error),
            },
            ended = &mut self.grpc => server_ended("gRPC", ended),
            ended = &mut self.http => server_ended("HTTP", ended),
        }
    }

    /// All have been told to stop. The engine must end well within the time; connections get a
    /// moment more and are then closed.
    async fn stop(mut self, within: Duration) -> Result<(), Failure> {
        match timeout(within, &mut self.engine).await {
            Err(_) => return Err(Failure::StopTimeout(within)),
            Ok(ended) => ended.map_err(defect)??,
        }
        if timeout(DRAIN, &mut self.grpc).await.is_err() {
            tracing::debug!("closed connections that were still open");
            self.grpc.abort();
        }
        self.http.abort();
        Ok(())
    }
}

fn server_ended<E: fmt::Display>(
    server: &'static str,
    ended: Result<Result<(), E>, JoinError>,
) -> Failure {
    match ended {
        Ok(Ok(())) => Failure::Server {
            server,
            reason: "nobody stopped it".into(),
        },
        Ok(Err(error)) => Failure::Server {
            server,
            reason: error.to_string(),
        },
        Err(error) => defect(error),
    }
}

fn defect(error: JoinError) -> Failure {
    Failure::Defect(error.to_string())
}

/// Ends with the name of the signal that asks for a stop.
fn signals() -> Result<impl Future<Output = &'static str> + Unpin, Failure> {
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::System)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::System)?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    }))
}

fn random_id() -> Result<u128, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::System(io::Error::other(error.to_string())))?;
    Ok(u128::from_le_bytes(bytes))
}

/// Binds both addresses and says which they are.
async fn bind(args: &Serve) -> Result<(TcpListener, TcpListener), Failure> {
    let (grpc, grpc_address) = listen(args.listen, "--listen").await?;
    let (http, http_address) = listen(args.http_listen, "--http-listen").await?;
    if let Some(path) = &args.addresses_file {
        let text = format!("{{\"grpc\":\"{grpc_address}\",\"http\":\"{http_address}\"}}\n");
        // Whoever waits for the file never sees half of it.
        let unfinished = path.with_added_extension("tmp");
        fs::write(&unfinished, text)
            .and_then(|()| fs::rename(&unfinished, path))
            .map_err(|source| Failure::AddressesFile {
                path: path.clone(),
                source,
            })?;
    }
    tracing::info!(
        grpc = %grpc_address,
        http = %http_address,
        version = env!("CARGO_PKG_VERSION"),
        data_dir = %args.data_dir.display(),
        "listens"
    );
    Ok((grpc, http))
}

async fn listen(
    address: SocketAddr,
    flag: &'static str,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let failure = |source| Failure::Bind {
        address,
        flag,
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(failure)?;
    let bound = listener.local_addr().map_err(failure)?;
    Ok((listener, bound))
}
