//! What must not be in any text file: names of one machine or one network, which mean nothing to
//! anybody else.

use crate::Violation;
use crate::repository::File;

/// Beginnings of absolute paths, in two parts, so that this file does not break its own rule.
const FOLDERS: [(&str, &str); 7] = [
    ("/ho", "me/"),
    ("/ro", "ot/"),
    ("/Use", "rs/"),
    ("/tm", "p/"),
    ("/wo", "rk/"),
    ("/us", "r/"),
    ("/op", "t/"),
];

/// Last labels of hosts that may be named with a port: nobody's, or every cluster's. File names
/// with a line number look alike.
const ANYBODYS: [&str; 12] = [
    "local",
    "localhost",
    "example",
    "test",
    "invalid",
    "svc",
    "rs",
    "toml",
    "md",
    "json",
    "yaml",
    "proto",
];

/// A port has at least so many digits; `x:1` is a place or a ratio.
const PORT_DIGITS: usize = 2;

pub(crate) fn check(file: &File) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (line, text) in (1..).zip(file.text.lines()) {
        let mut broken = |what: String| {
            violations.push(Violation {
                path: file.path.clone(),
                line,
                what,
            });
        };
        if text.starts_with("#!") {
            continue;
        }
        for (one, other) in FOLDERS {
            let folder = format!("{one}{other}");
            // As part of a longer path or an address it is something else.
            let starts = text.match_indices(&folder).any(|(place, _)| {
                let before = text.get(..place).and_then(|text| text.chars().next_back());
                before.is_none_or(|c| !c.is_alphanumeric() && !"._-}])$~".contains(c))
            });
            if starts {
                broken(format!(
                    "{folder} is a folder of one machine; find it another way"
                ));
            }
        }
        for host in hosts_with_port(text) {
            broken(format!(
                "{host} is a host of one network; nobody else can reach it"
            ));
        }
    }
    violations
}

/// Names with a dot, whose last label has only letters, before a colon and a number.
fn hosts_with_port(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
    text.split(move |c: char| !is_part(c)).filter(|word| {
        let Some((host, port)) = word.split_once(':') else {
            return false;
        };
        let port = port.split(':').next().unwrap_or_default();
        let label = host
            .rsplit_once('.')
            .map(|(_, label)| label)
            .unwrap_or_default();
        port.len() >= PORT_DIGITS
            && port.chars().all(|c| c.is_ascii_digit())
            && label.len() >= 2
            && label.chars().all(|c| c.is_ascii_alphabetic())
            && !ANYBODYS.contains(&label)
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::repository::File;

    fn count(text: &str) -> usize {
        check(&File {
            path: "docs/x.md".into(),
            text: text.into(),
        })
        .len()
    }

    #[test]
    fn folders_of_one_machine_are_found() {
        for (one, other) in super::FOLDERS {
            assert_eq!(count(&format!("cd {one}{other}me/x")), 1, "{other}");
            assert_eq!(count(&format!("path=\"{one}{other}x\"")), 1, "{other}");
        }
        assert_eq!(count(concat!("#!/us", "r/bin/env bash")), 0);
        assert_eq!(
            count(concat!("target/tm", "p/x and https://a.b/ho", "me/")),
            0
        );
        assert_eq!(count(concat!("${ROOT}/ho", "me/x")), 0);
    }

    #[test]
    fn hosts_of_one_network_are_found() {
        assert_eq!(
            count(concat!("https://registry.corp.net", ":8443/simple")),
            1
        );
        assert_eq!(count(concat!("mirror.lan", ":80")), 1);
        assert_eq!(count("127.0.0.1:8081, localhost:8081, [::1]:8081"), 0);
        assert_eq!(count("headgate.headgate-system.svc.cluster.local:8081"), 0);
        assert_eq!(count("src/main.rs:12:34 and std::time"), 0);
        assert_eq!(count("counter.example:50051"), 0);
        assert_eq!(count("https://rustup.rs and outbound|8081||x.y"), 0);
    }
}
