//! Starts the command, asks it, signals it.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// Far longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn headgate(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headgate"));
    command.args(flags).env_clear();
    command
}

pub(crate) fn run(flags: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = headgate(flags).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

pub(crate) fn until<T>(what: &str, mut get: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(got) = get() {
            return got;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        // Pacing: between two looks, until the deadline.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A service that runs in a folder of its own; killed when dropped.
pub(crate) struct Service {
    pub(crate) folder: TempDir,
    child: Child,
    grpc: SocketAddr,
    http: SocketAddr,
}

impl Service {
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), flags)
    }

    pub(crate) fn start_in(folder: TempDir, flags: &[&str]) -> Self {
        let file = folder.path().join("addresses");
        drop(fs::remove_file(&file));
        let mut command = headgate(&["serve"]);
        command
            .env("HEADGATE_LISTEN", "127.0.0.1:0")
            .args(["--http-listen", "127.0.0.1:0", "--addresses-file"])
            .arg(&file)
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .args(flags);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let text = until("addresses", || {
            assert_eq!(child.try_wait().unwrap(), None, "it ended");
            fs::read_to_string(&file).ok()
        });
        let addresses: serde_json::Value = serde_json::from_str(&text).unwrap();
        let address = |name: &str| addresses[name].as_str().unwrap().parse().unwrap();
        let (grpc, http) = (address("grpc"), address("http"));
        let service = Self {
            folder,
            child,
            grpc,
            http,
        };
        until("readiness", || {
            (service.get("/readyz").0 == 200).then_some(())
        });
        service
    }

    /// Status, content type and body.
    pub(crate) fn get(&self, path: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(self.http).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let content_type = head
            .lines()
            .find_map(|line| line.strip_prefix("content-type: "));
        (
            status,
            content_type.unwrap_or_default().to_owned(),
            body.to_owned(),
        )
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Exit code, logs and errors.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String, TempDir) {
        let status = until("its end", || self.child.try_wait().unwrap());
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        (status.code(), stdout, stderr, folder)
    }

    pub(crate) fn endpoint(&self) -> tonic::transport::Endpoint {
        format!("http://{}", self.grpc).parse().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
