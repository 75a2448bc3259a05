//! Names that must not appear in some places, each with its reason. Comments and texts may have
//! them.

use crate::Violation;
use crate::source::{Source, Token};

/// Marks a wait that is not there for correctness, on one of the lines before it.
const PACING: &str = "Pacing:";

/// How many lines before it the mark may be.
const MARK_LINES: usize = 3;

/// The one place that talks to Envoy.
const HOST: &str = "src/plugin/host";

/// A rule.
struct Ban {
    /// Each is a sequence of tokens, with blanks between.
    names: &'static [&'static str],
    /// Where it holds: file, line.
    applies: fn(&Source, usize) -> bool,
    reason: &'static str,
}

const BANS: [Ban; 4] = [
    Ban {
        names: &["Instant :: now", "SystemTime :: now", ". elapsed ("],
        applies: |source, _| {
            let path = source.path.as_str();
            path.starts_with("src/core/")
                || path.starts_with("src/plugin/") && !path.starts_with(HOST)
        },
        reason: "time is a parameter here, so that the simulator decides what time it is",
    },
    Ban {
        names: &["sleep (", "sleep_until ("],
        applies: |source, line| {
            (source.path.starts_with("tests/") || source.is_test(line)) && !is_marked(source, line)
        },
        reason: "a test waits for what it waits for, with a deadline (poll::until); \
                 if this only sets a pace, say so before it: `// Pacing: ...`",
    },
    Ban {
        names: &[
            ". unwrap (",
            ". expect (",
            "panic !",
            "todo !",
            "unimplemented !",
        ],
        applies: |source, line| !source.is_test(line),
        reason: "outside of tests an error is a value; in the plugin a panic ends a whole worker",
    },
    Ban {
        names: &["proxy_wasm"],
        applies: |source, line| {
            let entry = source.path == "src/plugin/lib.rs" && is_entry(source, line);
            !source.path.starts_with(HOST) && !entry
        },
        reason: "only src/plugin/host.rs knows the host; all else sees its small trait",
    },
];

pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for ban in &BANS {
        for name in ban.names {
            let words: Vec<&str> = name.split(' ').collect();
            for line in uses(&source.tokens, &words) {
                if (ban.applies)(source, line) {
                    let what = format!("`{}`: {}", words.concat(), ban.reason);
                    violations.push(Violation {
                        path: source.path.clone(),
                        line,
                        what,
                    });
                }
            }
        }
    }
    violations
}

/// Lines on which the words stand one after the other. `::` is two tokens.
fn uses(tokens: &[Token], words: &[&str]) -> Vec<usize> {
    let words: Vec<&str> = words
        .iter()
        .flat_map(|word| {
            if *word == "::" {
                vec![":", ":"]
            } else {
                vec![*word]
            }
        })
        .collect();
    let is_here = |part: &&[Token]| {
        part.iter()
            .zip(&words)
            .all(|(token, word)| token.text == *word)
    };
    tokens
        .windows(words.len())
        .filter(is_here)
        .filter_map(|part| part.first())
        .map(|t| t.line)
        .collect()
}

fn is_marked(source: &Source, line: usize) -> bool {
    let before = line.saturating_sub(1);
    let first = before.saturating_sub(MARK_LINES);
    source
        .lines
        .get(first..before)
        .is_some_and(|lines| lines.iter().any(|l| l.contains(PACING)))
}

/// The SDK's entry macro, which must be at the root of the crate.
fn is_entry(source: &Source, line: usize) -> bool {
    uses(&source.tokens, &["proxy_wasm", "::", "main", "!"]).contains(&line)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::source::Source;

    /// Lines of violations.
    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source::parse(path, text).expect("parses");
        check(&source)
            .iter()
            .map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn clocks_are_read_in_the_host_file_and_the_service_only() {
        for call in [
            "Instant::now()",
            "std::time::SystemTime::now()",
            "start.elapsed()",
        ] {
            let text = format!("fn f() {{\n    let t = {call};\n}}");
            assert_eq!(lines("src/core/ledger.rs", &text), [2], "{call}");
            assert_eq!(lines("src/plugin/root.rs", &text), [2], "{call}");
            assert_eq!(lines("src/plugin/host.rs", &text), [], "{call}");
            assert_eq!(lines("src/plugin/host/clock.rs", &text), [], "{call}");
            assert_eq!(lines("src/server/main.rs", &text), [], "{call}");
        }
    }

    #[test]
    fn tests_do_not_sleep_but_may_pace() {
        for call in [
            "std::thread::sleep(d)",
            "tokio::time::sleep(d).await",
            "sleep_until(d).await",
        ] {
            let text = format!("async fn f() {{\n    {call};\n}}");
            assert_eq!(lines("tests/scenarios/x.rs", &text), [2], "{call}");
            assert_eq!(lines("tests/load.rs", &text), [2], "{call}");
            assert_eq!(lines("src/server/rpc.rs", &text), [], "{call}");
            let text = format!("#[cfg(test)]\nmod tests {{\n    async fn f() {{ {call}; }}\n}}");
            assert_eq!(lines("src/server/rpc.rs", &text), [3], "{call}");
            let text = format!("async fn f() {{\n    // Pacing: x.\n    {call};\n}}");
            assert_eq!(lines("tests/load.rs", &text), [], "{call}");
        }
    }

    #[test]
    fn nothing_panics_outside_of_tests() {
        for call in [
            "x.unwrap()",
            "x.expect(\"y\")",
            "panic!()",
            "todo!()",
            "unimplemented!()",
        ] {
            let text = format!("fn f() {{\n    {call};\n}}");
            assert_eq!(lines("src/server/main.rs", &text), [2], "{call}");
            assert_eq!(lines("tests/envoy.rs", &text), [2], "{call}");
            assert_eq!(lines("tests/scenarios/x.rs", &text), [], "{call}");
            let text = format!("#[test]\nfn f() {{\n    {call};\n}}");
            assert_eq!(lines("src/server/main.rs", &text), [], "{call}");
        }
        assert_eq!(lines("src/core/x.rs", "fn f() { x.unwrap_or(1); }"), []);
        assert_eq!(
            lines(
                "src/core/x.rs",
                "/// Or panic!()\nfn f() { g(\"x.unwrap()\"); }"
            ),
            []
        );
    }

    #[test]
    fn the_host_is_named_in_one_file_only() {
        let text = "use proxy_wasm::types::Action;";
        assert_eq!(lines("src/plugin/root.rs", text), [1]);
        assert_eq!(lines("src/core/x.rs", text), [1]);
        assert_eq!(lines("src/plugin/lib.rs", text), [1]);
        assert_eq!(lines("src/plugin/host.rs", text), []);
        assert_eq!(lines("src/plugin/lib.rs", "proxy_wasm::main! {{}}"), []);
    }
}
