//! Child processes that never outlive the test.
//!
//! Dropping a [`Process`] kills it. For the case that this program itself is killed and drops
//! nothing, each has a watchdog: a shell that reads from a pipe which only this program holds, and
//! kills the child when the pipe closes.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::poll;

/// How long a signal may take to show.
const SIGNAL_DEADLINE: Duration = Duration::from_secs(5);

/// The last part of a log that an error shows, in lines.
const TAIL: usize = 20;

/// What to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// For messages and for the log's name.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables on top of ours.
    pub environment: Vec<(String, String)>,
    /// Where its output goes; a restarted process goes on in the same file.
    pub log: PathBuf,
}

/// A running or ended child.
#[derive(Debug)]
pub struct Process {
    spec: Spec,
    child: Child,
    watchdog: Child,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// When the program or its log cannot be opened.
    pub fn start(spec: Spec) -> Result<Self> {
        let log = open_log(&spec.log)?;
        let child = Command::new(&spec.program)
            .args(&spec.arguments)
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {} ({})", spec.name, spec.program.display()))?;
        let watchdog = watch(child.id()).inspect_err(|_| drop(signal(&child, Signal::KILL)))?;
        Ok(Self {
            spec,
            child,
            watchdog,
        })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// All that it has written.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        let bytes = std::fs::read(&self.spec.log)
            .with_context(|| format!("cannot read {}", self.spec.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Kills it at once, as a crash would, and reaps it. No effect on an ended one.
    ///
    /// # Errors
    /// When the system refuses, which it does not for our own children.
    pub fn kill(&mut self) -> Result<()> {
        // The watchdog goes first, so that it never kills a number that was given anew.
        self.watchdog.kill()?;
        self.watchdog.wait()?;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Asks it to end (SIGTERM) and waits for that.
    ///
    /// # Errors
    /// When it has not ended after `deadline`.
    pub async fn terminate(&mut self, deadline: Duration) -> Result<ExitStatus> {
        signal(&self.child, Signal::TERM)?;
        self.ended(deadline).await
    }

    /// Waits for its end by itself.
    ///
    /// # Errors
    /// When it has not ended after `deadline`.
    pub async fn ended(&mut self, deadline: Duration) -> Result<ExitStatus> {
        let what = format!("the end of {}", self.spec.name);
        poll::until(&what, deadline, async || Ok(self.child.try_wait()?)).await
    }

    /// Freezes it (SIGSTOP); returns when it stands still.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn stop(&mut self) -> Result<()> {
        self.ensure_running()?;
        signal(&self.child, Signal::STOP)?;
        let what = format!("{} to stand still", self.spec.name);
        let id = self.id();
        poll::until(&what, SIGNAL_DEADLINE, async || {
            Ok((state(id)? == 'T').then_some(()))
        })
        .await
    }

    /// Lets a frozen one go on (SIGCONT).
    ///
    /// # Errors
    /// When it has ended.
    pub fn resume(&mut self) -> Result<()> {
        self.ensure_running()?;
        signal(&self.child, Signal::CONT)
    }

    /// Kills it if it runs, and starts it anew.
    ///
    /// # Errors
    /// Those of [`Process::start`] and [`Process::kill`].
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        *self = Self::start(self.spec.clone())?;
        Ok(())
    }

    /// Fails, with the end of its log, if it has ended.
    ///
    /// # Errors
    /// When it has ended.
    pub fn ensure_running(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        let log = self.log()?;
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines
            .iter()
            .rev()
            .take(TAIL)
            .rev()
            .copied()
            .collect::<Vec<_>>()
            .join("\n");
        bail!(
            "{} has ended ({status}); the end of its log:\n{tail}",
            self.spec.name
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("cannot end {}: {error:#}", self.spec.name);
        }
    }
}

fn open_log(path: &Path) -> Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot open the log {}", path.display()))
}

/// Starts the watchdog of a child.
fn watch(id: u32) -> Result<Child> {
    Command::new("sh")
        .args(["-c", "read -r _; kill -KILL \"$1\"", "watchdog"])
        .arg(id.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a shell as watchdog")
}

fn signal(child: &Child, signal: Signal) -> Result<()> {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let id = id.context("a child without a number")?;
    kill_process(id, signal).with_context(|| format!("cannot signal process {}", child.id()))
}

/// The state letter of a process in /proc, which follows the name in parentheses.
fn state(id: u32) -> Result<char> {
    let path = format!("/proc/{id}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let (_, rest) = stat
        .rsplit_once(')')
        .with_context(|| format!("{path} reads {stat:?}"))?;
    let state = rest.trim_start().chars().next();
    ensure!(state.is_some(), "{path} reads {stat:?}");
    state.context("a process without a state")
}
