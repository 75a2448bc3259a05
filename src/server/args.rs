//! Flags and environment variables of the command.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum, error::ErrorKind};
use tracing_subscriber::filter::Targets;

/// Cluster-wide rate limits and quotas for Envoy, decided inside the proxy.
#[derive(Debug, Parser)]
#[command(
    name = "headgate",
    version,
    arg_required_else_help = true,
    max_term_width = 100
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the counter service: owns every key's budget and leases it to the Envoys.
    #[command(after_help = AFTER_HELP)]
    Serve(Serve),
}

/// What is said below the flags.
const AFTER_HELP: &str = "\
Logs go to standard output; the reason of a failure goes to standard error, in one sentence.
Exit codes: 0 after a clean stop (SIGTERM or SIGINT), 1 after a failure, 2 for wrong flags.";

/// How to run the counter service.
#[derive(Clone, Debug, clap::Args)]
pub struct Serve {
    /// Where Envoys call: gRPC, without TLS.
    #[arg(
        long,
        env = "HEADGATE_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8081"
    )]
    #[arg(help_heading = "Addresses")]
    pub listen: SocketAddr,

    /// Where /metrics, /healthz and /readyz are served over HTTP.
    #[arg(long, env = "HEADGATE_HTTP_LISTEN", value_name = "ADDRESS:PORT")]
    #[arg(default_value = "127.0.0.1:8082", help_heading = "Addresses")]
    pub http_listen: SocketAddr,

    /// Write the addresses that were bound to this file.
    ///
    /// As JSON: {"grpc":"...","http":"..."}. Useful with port 0, which takes any free port.
    #[arg(
        long,
        env = "HEADGATE_ADDRESSES_FILE",
        value_name = "PATH",
        help_heading = "Addresses"
    )]
    pub addresses_file: Option<PathBuf>,

    /// Folder of the embedded store.
    ///
    /// It is made if it does not exist, and used by one process at a time.
    #[arg(
        long,
        env = "HEADGATE_DATA_DIR",
        value_name = "FOLDER",
        default_value = "headgate-data"
    )]
    #[arg(help_heading = "Storage")]
    pub data_dir: PathBuf,

    /// What may be held and how long things take.
    #[command(flatten)]
    pub limits: Limits,

    /// How log lines look.
    #[arg(
        long,
        env = "HEADGATE_LOG_FORMAT",
        value_enum,
        default_value = "text",
        help_heading = "Logs"
    )]
    pub log_format: LogFormat,

    /// Least severe level that is logged.
    ///
    /// off, error, warn, info, debug or trace; also by module, as in "info,headgate::store=debug".
    #[arg(
        long,
        env = "HEADGATE_LOG_LEVEL",
        value_name = "LEVEL",
        default_value = "info"
    )]
    #[arg(help_heading = "Logs")]
    pub log_level: Targets,
}

/// Bounds of the service. Each has a metric or an answer of its own when it is hit.
#[derive(Clone, Debug, clap::Args)]
pub struct Limits {
    /// Largest gRPC message, in bytes.
    ///
    /// The largest is a replica's Join under a new leader: all of its 16,384 leases at some 70
    /// bytes each. A batch of asks is far smaller.
    #[arg(
        long,
        env = "HEADGATE_MAX_MESSAGE_BYTES",
        value_name = "BYTES",
        default_value_t = 4 * 1_048_576
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1024..=64 * 1_048_576))]
    #[arg(help_heading = "Limits")]
    pub max_message_bytes: u32,

    /// Most keys whose window is not over.
    ///
    /// Above it new keys are undecided: dropping the record of a live key would grant its tokens
    /// again. Memory and the time to start grow with it.
    #[arg(
        long,
        env = "HEADGATE_MAX_KEYS",
        value_name = "COUNT",
        default_value_t = 1_000_000
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub max_keys: u32,

    /// Most replicas (Envoy processes) that hold a seat.
    ///
    /// Above it a replica that joins is refused, and its rules' policy for undecided requests acts.
    #[arg(
        long,
        env = "HEADGATE_MAX_REPLICAS",
        value_name = "COUNT",
        default_value_t = 1000
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096), help_heading = "Limits")]
    pub max_replicas: u32,

    /// Most asks that wait for tokens to come back.
    ///
    /// Above it calls are rejected, and replicas repeat them as long as their requests may wait. An
    /// ask waits for its deadline at most, 50 to 250 ms, so this is far above what a fleet that
    /// works needs.
    #[arg(
        long,
        env = "HEADGATE_MAX_WAITING_ASKS",
        value_name = "COUNT",
        default_value_t = 65_536
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub max_waiting_asks: u32,

    /// Most calls that wait for their turn.
    ///
    /// Above it calls are refused as overloaded. At 100,000 calls a second the last waits 80 ms,
    /// longer than most askers do.
    #[arg(
        long,
        env = "HEADGATE_MAX_QUEUED_CALLS",
        value_name = "COUNT",
        default_value_t = 8192
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_048_576), help_heading = "Limits")]
    pub max_queued_calls: u32,

    /// How long a replica keeps its seat without being heard.
    ///
    /// Longer survives longer pauses; shorter gives up on a crashed replica sooner, until when its
    /// keys may be undecided.
    #[arg(
        long,
        env = "HEADGATE_SEAT_TTL",
        value_name = "DURATION",
        default_value = "5s"
    )]
    #[arg(value_parser = duration, help_heading = "Times")]
    pub seat_ttl: Duration,

    /// How long tokens that were called back may take to come.
    ///
    /// Then who needed them is undecided. Some ten round trips inside a cluster.
    #[arg(
        long,
        env = "HEADGATE_RECALL_TIMEOUT",
        value_name = "DURATION",
        default_value = "30ms"
    )]
    #[arg(value_parser = duration, help_heading = "Times")]
    pub recall_timeout: Duration,

    /// Longest wait of a Watch call, which is also a replica's heartbeat.
    ///
    /// At most half of --seat-ttl, so that one may get lost.
    #[arg(
        long,
        env = "HEADGATE_WATCH_POLL",
        value_name = "DURATION",
        default_value = "1s"
    )]
    #[arg(value_parser = duration, help_heading = "Times")]
    pub watch_poll: Duration,

    /// How long a clean stop may take.
    ///
    /// Calls that wait are answered and the store is written. Kubernetes allows 30s by default.
    #[arg(
        long,
        env = "HEADGATE_STOP_TIMEOUT",
        value_name = "DURATION",
        default_value = "5s"
    )]
    #[arg(value_parser = duration, help_heading = "Times")]
    pub stop_timeout: Duration,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Shortest and longest duration of any flag: below, timers are too coarse; above, it is a
/// mistake of units.
const DURATIONS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(3600));

fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("write a number with a unit, as in 30ms or 5s: {error}"))?;
    let (least, most) = DURATIONS;
    if duration < least || duration > most {
        return Err("it must be between 1ms and 1h".into());
    }
    Ok(duration)
}

impl Args {
    /// Reads the command line and the environment. An error is to be printed with
    /// [`clap::Error::exit`], which knows the exit code.
    pub fn read<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<std::ffi::OsString> + Clone,
    {
        let args = Self::try_parse_from(words)?;
        let Command::Serve(serve) = &args.command;
        match serve.limits.contradiction() {
            Some(sentence) => {
                let mut command = Self::command();
                command.build();
                let mut serve = command.find_subcommand("serve").cloned().unwrap_or(command);
                Err(serve.error(ErrorKind::ValueValidation, sentence))
            }
            None => Ok(args),
        }
    }
}

impl Limits {
    /// Values that are right by themselves but not together.
    fn contradiction(&self) -> Option<String> {
        let (ttl, poll, recall) = (self.seat_ttl, self.watch_poll, self.recall_timeout);
        let written = |duration| humantime::format_duration(duration);
        if poll > ttl / 2 {
            return Some(format!(
                "--watch-poll {} must be at most half of --seat-ttl {}, or a lost call ends a seat",
                written(poll),
                written(ttl)
            ));
        }
        (recall >= ttl).then(|| {
            format!(
                "--recall-timeout {} must be shorter than --seat-ttl {}",
                written(recall),
                written(ttl)
            )
        })
    }
}

#[cfg(test)]
mod tests;
