//! What the documentation names exists: tests, modules of core and metrics, in backticks.

use std::collections::BTreeSet;

use crate::Violation;
use crate::repository::File;

/// Words in backticks in the documentation that stand nowhere in the code.
pub(crate) fn check(document: &File, code: &[&File]) -> Vec<Violation> {
    let words = words_of(code);
    let mut violations = Vec::new();
    for (index, line) in document.text.lines().enumerate() {
        for named in in_backticks(line) {
            let missing = parts(named).find(|part| !words.contains(part));
            violations.extend(missing.map(|part| Violation {
                path: document.path.clone(),
                line: index.saturating_add(1),
                what: format!("`{named}` names `{part}`, which stands nowhere in the code"),
            }));
        }
    }
    violations
}

/// Every identifier of the code, and the file names, which are modules.
fn words_of<'a>(code: &[&'a File]) -> BTreeSet<&'a str> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let texts = code
        .iter()
        .flat_map(|file| [file.path.as_str(), file.text.as_str()]);
    texts
        .flat_map(|text| text.split(|character| !is_word(character)))
        .collect()
}

fn in_backticks(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The parts of a path; a metric stands in the code without its prefix and its unit's end. What
/// does not look like a name (a command, a star) has none.
fn parts(named: &str) -> impl Iterator<Item = &str> {
    let is_name = |part: &&str| {
        part.chars()
            .all(|character| character.is_ascii_lowercase() || character == '_')
    };
    named
        .split("::")
        .filter(|part| !part.is_empty())
        .filter(is_name)
        .map(bare)
}

fn bare(part: &str) -> &str {
    let metric = part
        .strip_prefix("headgate_")
        .and_then(|part| part.strip_suffix("_total"));
    metric.unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn a_name_that_is_gone_is_found() {
        let code = file(
            "src/core/owner/ledger.rs",
            "fn no_token_is_lost() {} (\"tokens_lost\", x)",
        );
        for (text, found) in [
            ("see `owner::ledger`", 0),
            ("see `no_token_is_lost` and `headgate_tokens_lost_total`", 0),
            ("see `ledger::no_token_is_lost`, `exact::*` is nothing", 1),
            ("see `no_token_is_found`", 1),
            ("no_token_is_found without backticks", 0),
        ] {
            let violations = check(&file("docs/x.md", text), &[&code]);
            assert_eq!(violations.len(), found, "{text}: {violations:?}");
        }
    }
}
