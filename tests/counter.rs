//! Counter services: `headgate serve` as a process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;
use tokio::net::TcpStream;

use crate::poll;
use crate::ports::Reservation;
use crate::process::{Process, Spec};
use crate::scene::{Scene, artefact};

/// How long a start may take on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(20);

/// How long a clean stop may take.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// How to start one.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names its log and its data folder, unique in the scene.
    pub name: String,
    /// Where it keeps its data; by default a folder of the scene.
    pub data: Option<PathBuf>,
    /// Further arguments of `headgate serve`.
    pub arguments: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
}

impl Options {
    /// Defaults under a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            data: None,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }
}

/// A counter service on a port of its own, the same after a restart. Ends when dropped.
#[derive(Debug)]
pub struct Counter {
    /// Kill, stop, resume and read the log here.
    pub process: Process,
    port: Reservation,
    data: PathBuf,
}

impl Counter {
    /// Starts one and waits until it listens.
    ///
    /// # Errors
    /// When it does not come up; the end of its log is in the message.
    pub async fn start(scene: &Scene, options: Options) -> Result<Self> {
        let mut counter = Self::spawn(scene, options)?;
        counter.ready().await?;
        Ok(counter)
    }

    /// Starts one without waiting, for those that must not come up.
    ///
    /// # Errors
    /// When the program is missing.
    pub fn spawn(scene: &Scene, options: Options) -> Result<Self> {
        let port = Reservation::new()?;
        let data = options
            .data
            .unwrap_or_else(|| scene.folder().join(&options.name).join("data"));
        let mut arguments = vec![
            "serve".to_owned(),
            "--listen".to_owned(),
            port.address().to_string(),
            "--data-dir".to_owned(),
            data.display().to_string(),
        ];
        arguments.extend(options.arguments);
        let process = Process::start(Spec {
            log: scene.folder().join(format!("{}.log", options.name)),
            name: options.name,
            program: artefact("HEADGATE_BIN", "headgate")?,
            arguments,
            environment: options.environment,
        })?;
        Ok(Self {
            process,
            port,
            data,
        })
    }

    /// Waits until it listens.
    ///
    /// # Errors
    /// When it ends instead, or takes too long.
    pub async fn ready(&mut self) -> Result<()> {
        let address = self.port.address();
        poll::until(
            "the counter service to listen",
            START_DEADLINE,
            async || {
                self.process.ensure_running()?;
                Ok(TcpStream::connect(address).await.is_ok().then_some(()))
            },
        )
        .await
    }

    /// Kills it if it runs, starts it on the same port and data, and waits until it listens.
    ///
    /// # Errors
    /// As those of [`Counter::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.process.restart()?;
        self.ready().await
    }

    /// Stops it as an operator would (SIGTERM).
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.process.terminate(STOP_DEADLINE).await
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Where it keeps its data.
    #[must_use]
    pub fn data(&self) -> &std::path::Path {
        &self.data
    }
}
