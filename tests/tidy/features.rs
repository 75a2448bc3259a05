//! The switches that turn rules of the protocol off are built into the simulator and into nothing
//! that is shipped.

use std::path::Path;
use std::process::Command;

use crate::Violation;
use crate::repository::File;

/// The feature of core, in two parts, so that this file does not break its own rule.
const FEATURE: (&str, &str) = ("tra", "ps");

/// The one manifest that may ask for it, and the one that declares it.
const ASKS: &str = "src/sim/Cargo.toml";
const DECLARES: &str = "src/core/Cargo.toml";

/// What is shipped, and what has the switches.
const SHIPPED: [&str; 2] = ["headgate", "headgate-plugin"];
const SIMULATOR: &str = "headgate-sim";

pub(crate) fn check(file: &File) -> Vec<Violation> {
    let is_wrong: fn(&File, &str) -> Option<&'static str> = match file.path.as_str() {
        "build.sh" => |_, line| builds_all(line),
        path if path.ends_with("Cargo.toml") => asks,
        _ => return Vec::new(),
    };
    let mut violations = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let wrong = is_wrong(file, line.trim());
        violations.extend(wrong.map(|what| Violation {
            path: file.path.clone(),
            line: number,
            what: what.to_owned(),
        }));
    }
    violations
}

fn asks(file: &File, line: &str) -> Option<&'static str> {
    let name = format!("{}{}", FEATURE.0, FEATURE.1);
    let names_it = line.contains(&format!("\"{name}\"")) || line.contains(&format!("/{name}"));
    let declares = line.starts_with(&name);
    let may = match file.path.as_str() {
        ASKS => true,
        DECLARES => !names_it,
        _ => !names_it && !declares,
    };
    let what = "only the simulator may ask for the switches that turn rules off, by no default";
    (!line.starts_with('#') && !may).then_some(what)
}

/// Cargo builds all packages of one command with the features of all of them.
fn builds_all(line: &str) -> Option<&'static str> {
    let builds = line.starts_with("cargo build");
    let what = "what is built by itself has its own features only: name one package (-p)";
    (builds && !line.contains(" -p ")).then_some(what)
}

/// What cargo says of core's features in a package.
fn features(package: &str) -> std::io::Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "-e", "features"])
        .args(["-p", package, "-i", "headgate-core"])
        .current_dir(root)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(package), "{error}");
    Ok(said)
}

#[test]
fn what_is_shipped_has_no_switches() {
    let switches = format!("feature \"{}{}\"", FEATURE.0, FEATURE.1);
    assert!(features(SIMULATOR).unwrap().contains(&switches));
    for package in SHIPPED {
        let features = features(package).unwrap();
        assert!(!features.contains(&switches), "{features}");
    }
}

#[test]
fn manifests_and_the_script_are_looked_at() {
    let name = format!("{}{}", FEATURE.0, FEATURE.1);
    for (path, text, found) in [
        ("src/core/Cargo.toml", format!("{name} = []"), 0),
        ("src/core/Cargo.toml", format!("default = [\"{name}\"]"), 1),
        (ASKS, format!("core = {{ features = [\"{name}\"] }}"), 0),
        (
            "src/server/Cargo.toml",
            format!("features = [\"{name}\"]"),
            1,
        ),
        ("src/plugin/Cargo.toml", format!("x = [\"core/{name}\"]"), 1),
        ("src/plugin/Cargo.toml", format!("# [\"{name}\"]"), 0),
        ("src/plugin/lib.rs", format!("\"{name}\""), 0),
        ("build.sh", "    cargo build --release -p x".to_owned(), 0),
        ("build.sh", "    cargo build --workspace".to_owned(), 1),
    ] {
        let path = path.to_owned();
        let violations = check(&File { path, text });
        assert_eq!(violations.len(), found, "{violations:?}");
    }
}
