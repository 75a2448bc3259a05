//! Counter services: `headgate serve` as a process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::http;
use crate::poll;
use crate::ports::Reservation;
use crate::process::{Process, Spec};
use crate::scene::{Scene, artefact};
use anyhow::{Context, Result, ensure};
use hyper::{Method, StatusCode};

/// How long a start may take on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(20);

/// How long a clean stop may take.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// How long its HTTP side may take.
const HTTP_DEADLINE: Duration = Duration::from_secs(5);

/// Waits of the service where exact numbers are asserted: on this machine a thread of an Envoy may
/// not get its turn for longer than the tokens of a recall may take in a cluster, and then
/// "undecided" would be the right answer. Shorter than [`crate::rules::PATIENT`].
pub const PATIENT: [&str; 2] = ["--recall-timeout", "500ms"];

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
    /// [`PATIENT`], under a name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            data: None,
            arguments: PATIENT.map(str::to_owned).to_vec(),
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
    http: Reservation,
    data: PathBuf,
}

impl Counter {
    /// Starts one and waits until it is ready.
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
        let (port, http) = (Reservation::new()?, Reservation::new()?);
        let data = options
            .data
            .unwrap_or_else(|| scene.folder().join(&options.name).join("data"));
        let mut arguments = vec![
            "serve".to_owned(),
            "--listen".to_owned(),
            port.address().to_string(),
            "--http-listen".to_owned(),
            http.address().to_string(),
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
            http,
            data,
        })
    }

    /// Waits until it leads and answers.
    ///
    /// # Errors
    /// When it ends instead, or takes too long.
    pub async fn ready(&mut self) -> Result<()> {
        let http = self.http.address();
        poll::until("the counter service", START_DEADLINE, async || {
            self.process.ensure_running()?;
            let answer = http::request(Method::GET, http, "/readyz", HTTP_DEADLINE).await;
            Ok(matches!(answer, Ok((StatusCode::OK, _))).then_some(()))
        })
        .await
    }

    /// Waits for the end of one that cannot start; gives its exit code and the sentence that it
    /// leaves on standard error.
    ///
    /// # Errors
    /// When it does not end, or says nothing.
    pub async fn failure(&mut self) -> Result<(Option<i32>, String)> {
        let status = self.process.ended(START_DEADLINE).await?;
        let log = self.process.log()?;
        let sentence = log
            .lines()
            .rev()
            .find(|line| line.starts_with("headgate: "));
        let sentence = sentence.with_context(|| format!("{status} without a sentence: {log}"))?;
        Ok((status.code(), sentence.to_owned()))
    }

    /// The value of one of its metrics that has no labels.
    ///
    /// # Errors
    /// When it does not answer, or has no such metric.
    pub async fn metric(&self, name: &str) -> Result<u64> {
        let address = self.http.address();
        let (status, body) = http::request(Method::GET, address, "/metrics", HTTP_DEADLINE).await?;
        ensure!(status == StatusCode::OK, "/metrics answered {status}");
        let text = String::from_utf8_lossy(&body);
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = value.with_context(|| format!("the service has no metric {name}: {text}"))?;
        value.parse().with_context(|| format!("{name} {value}"))
    }

    /// Kills it if it runs, starts it on the same ports and data, and waits until it is ready.
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
