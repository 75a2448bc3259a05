//! The command as people and systems run it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod service;

use std::{
    fs,
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::{v1, v1alpha};

use self::service::{Service, headgate, run};

/// It failed to start: code 1 and one sentence with these words.
fn refuses(flags: &[&str], words: &[&str]) {
    let (code, _, stderr) = run(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat());
    assert_eq!((code, stderr.lines().count()), (Some(1), 1), "{stderr}");
    for word in ["headgate: "].iter().chain(words) {
        assert!(stderr.contains(word), "{word:?} is missing: {stderr}");
    }
}

#[test]
fn help_and_version_are_answers_not_errors() {
    let (code, stdout, stderr) = run(&["serve", "--help"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    for words in [
        "HEADGATE_DATA_DIR",
        "[default: 127.0.0.1:8081]",
        "Exit codes",
        "Limits:",
    ] {
        assert!(stdout.contains(words), "{words}");
    }
    assert!(
        stdout.lines().all(|line| line.len() <= 100),
        "lines fit a terminal"
    );
    let (code, stdout, _) = run(&["--version"]);
    assert_eq!(
        (code, stdout.as_str()),
        (
            Some(0),
            concat!("headgate ", env!("CARGO_PKG_VERSION"), "\n")
        )
    );
}

#[test]
fn wrong_usage_is_code_two_and_says_what() {
    let cases: [(&[&str], &str); 4] = [
        (&[], "Usage"),
        (&["serve", "--no-such-flag"], "--no-such-flag"),
        (&["serve", "--listen", "nowhere"], "--listen"),
        (&["serve", "--watch-poll", "1h"], "--seat-ttl 5s"),
    ];
    for (flags, words) in cases {
        let (code, stdout, stderr) = run(flags);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{flags:?}");
        assert!(stderr.contains(words), "{flags:?}: {stderr}");
    }
    let output = headgate(&["serve"])
        .env("HEADGATE_MAX_KEYS", "many")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    refuses(
        &["--http-listen", &address, "--data-dir", folder],
        &[&address, "--http-listen", "in use"],
    );
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let http = ["--http-listen", "127.0.0.1:0", "--data-dir"];
    refuses(
        &[http.as_slice(), &["/sys/kernel"]].concat(),
        &["/sys/kernel", "cannot write"],
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    refuses(
        &[http.as_slice(), &[path]].concat(),
        &[path, "is not a folder"],
    );
    let file = ["--addresses-file", "/no/such/folder/file"];
    refuses(
        &[&http[..2], &file].concat(),
        &["/no/such/folder/file", "--addresses-file"],
    );
}

#[test]
fn a_folder_in_use_by_another_process_is_named() {
    let service = Service::start(&[]);
    let data = service.folder.path().join("data");
    let data = data.to_str().unwrap();
    refuses(
        &["--http-listen", "127.0.0.1:0", "--data-dir", data],
        &[data, "in use"],
    );
    assert_eq!(service.get("/readyz").0, 200);
}

#[test]
fn http_serves_metrics_and_health() {
    let service = Service::start(&[]);
    assert_eq!(
        service.get("/healthz"),
        (200, "text/plain; charset=utf-8".into(), "ok\n".into())
    );
    let (status, content_type, metrics) = service.get("/metrics");
    assert_eq!(
        (status, content_type.split(';').next()),
        (200, Some("text/plain"))
    );
    assert!(metrics.contains("\nheadgate_engine_epoch 1\n"), "{metrics}");
    assert!(metrics.contains("\n# TYPE headgate_store_write_seconds histogram\n"));
    assert_eq!(service.get("/nothing").0, 404);
}

#[tokio::test]
async fn grpc_serves_health_and_both_reflections() {
    let service = Service::start(&[]);
    let channel = service.endpoint().connect().await.unwrap();
    for name in ["", "headgate.v1.Counter"] {
        let request = HealthCheckRequest {
            service: name.into(),
        };
        let answer = HealthClient::new(channel.clone())
            .check(request)
            .await
            .unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
    }

    use v1::server_reflection_request::MessageRequest;
    let request = v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::FileContainingSymbol(
            "headgate.v1.Counter".into(),
        )),
    };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let calls = tokio_stream::once(request);
    let mut answers = client
        .server_reflection_info(calls)
        .await
        .unwrap()
        .into_inner();
    let answer = answers
        .message()
        .await
        .unwrap()
        .unwrap()
        .message_response
        .unwrap();
    use v1::server_reflection_response::MessageResponse;
    assert!(
        matches!(answer, MessageResponse::FileDescriptorResponse(_)),
        "{answer:?}"
    );

    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(
            v1alpha::server_reflection_request::MessageRequest::ListServices(String::new()),
        ),
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let calls = tokio_stream::once(request);
    let mut answers = client
        .server_reflection_info(calls)
        .await
        .unwrap()
        .into_inner();
    let answer = format!("{:?}", answers.message().await.unwrap().unwrap());
    assert!(answer.contains("grpc.health.v1.Health"), "{answer}");
}

#[tokio::test]
async fn a_signal_stops_it_cleanly_even_with_streams_open() {
    for name in ["TERM", "INT"] {
        let service = Service::start(&["--log-format", "json"]);
        let channel = service.endpoint().connect().await.unwrap();
        let mut health = HealthClient::new(channel);
        let request = HealthCheckRequest {
            service: String::new(),
        };
        let mut changes = health.watch(request).await.unwrap().into_inner();
        let status =
            |change: Option<tonic_health::pb::HealthCheckResponse>| change.unwrap().status();
        assert_eq!(
            status(changes.message().await.unwrap()),
            ServingStatus::Serving
        );
        let started = Instant::now();
        service.signal(name);
        assert_eq!(
            status(changes.message().await.unwrap()),
            ServingStatus::NotServing
        );
        let (code, stdout, stderr, _) = service.end();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
        assert!(started.elapsed() < Duration::from_secs(5));
        let lines = stdout
            .lines()
            .map(serde_json::from_str::<serde_json::Value>);
        let messages: Vec<_> = lines.map(|line| line.unwrap()["message"].clone()).collect();
        assert_eq!(messages, ["listens", "leads", "serves", "stops", "stopped"]);
    }
}

fn log_of(folder: &Path) -> std::path::PathBuf {
    folder.join("data").join(format!("{:020}.log", 1))
}

#[test]
fn a_killed_service_starts_again_and_says_what_it_dropped() {
    let service = Service::start(&[]);
    service.signal("KILL");
    let (code, _, _, folder) = service.end();
    assert_eq!(code, None);
    let log = log_of(folder.path());
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend([1, 2, 3]);
    fs::write(&log, bytes).unwrap();

    let service = Service::start_in(folder, &[]);
    assert!(
        service
            .get("/metrics")
            .2
            .contains("\nheadgate_engine_epoch 2\n")
    );
    assert!(
        service
            .get("/metrics")
            .2
            .contains("\nheadgate_store_dropped_bytes_total 3\n")
    );
    service.signal("TERM");
    let (code, stdout, ..) = service.end();
    assert_eq!(code, Some(0));
    assert!(stdout.contains("dropped_bytes=3"), "{stdout}");
}

#[test]
fn a_damaged_store_is_refused() {
    let service = Service::start(&[]);
    service.signal("TERM");
    let (.., folder) = service.end();
    let service = Service::start_in(folder, &[]);
    service.signal("TERM");
    let (.., folder) = service.end();
    let log = log_of(folder.path());
    let mut bytes = fs::read(&log).unwrap();
    bytes[26] ^= 1;
    fs::write(&log, bytes).unwrap();
    let data = folder.path().join("data");
    let flags = [
        "--http-listen",
        "127.0.0.1:0",
        "--data-dir",
        data.to_str().unwrap(),
    ];
    refuses(
        &flags,
        &[log.to_str().unwrap(), "is damaged", "refusing to start"],
    );
}
