//! The repository's own rules, beside those of rustfmt and clippy: sizes, and calls that are
//! banned where they break a promise. Each rule has tests that show it a bad sample.

mod bans;
mod features;
mod named;
mod repository;
mod sizes;
mod source;
mod text;

use std::fmt;
use std::path::Path;

/// A rule broken somewhere.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    /// Counted from 1.
    line: usize,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.what)
    }
}

#[test]
fn the_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = repository::files(&root).expect("the repository can be read");
    let sources = source::parse_all(&files).expect("all Rust files parse");
    // Would find nothing if it looked in the wrong place.
    assert!(
        sources
            .iter()
            .any(|source| source.path == "src/core/lib.rs")
    );
    assert!(
        sources
            .iter()
            .any(|source| source.path == "tests/tidy/main.rs")
    );

    let mut violations = Vec::new();
    for file in &files {
        violations.extend(text::check(file));
        violations.extend(features::check(file));
    }
    for source in &sources {
        violations.extend(sizes::check(source));
        violations.extend(bans::check(source));
    }
    let code: Vec<_> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .collect();
    for document in files.iter().filter(|file| file.path.starts_with("docs/")) {
        violations.extend(named::check(document, &code));
    }
    let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(
        list.is_empty(),
        "{} violations:\n{}",
        list.len(),
        list.join("\n")
    );
}
