//! What is wrong with a configuration, in sentences for the person who wrote it.

use std::fmt;

/// Most mistakes that one refusal lists: a screenful; the rest is told by its number.
pub const MAX_ISSUES: usize = 32;

/// Longest piece of a found value that is repeated, in characters: enough to find it by, and a
/// log line stays a line.
const MAX_SHOWN_CHARS: usize = 64;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    path: String,
    found: Option<String>,
    wanted: String,
}

impl Issue {
    /// A mistake at `path`: `found` is the value there as it was written (none if nothing is
    /// there), `wanted` says what would be right.
    pub(super) fn new(path: String, found: Option<&str>, wanted: impl Into<String>) -> Self {
        Self {
            path,
            found: found.map(shorten),
            wanted: wanted.into(),
        }
    }

    /// Where: `rules[1].limit.amount`; empty for the whole text.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value that was found, as it was written, shortened; none if the field is missing.
    #[must_use]
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// What would be right.
    #[must_use]
    pub fn wanted(&self) -> &str {
        &self.wanted
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() {
            "configuration"
        } else {
            &self.path
        };
        match &self.found {
            Some(found) => write!(out, "{path}: found {found}; {}", self.wanted),
            None => write!(out, "{path}: {}", self.wanted),
        }
    }
}

/// All mistakes of a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    issues: Vec<Issue>,
    more: usize,
}

impl ConfigErrors {
    /// The first [`MAX_ISSUES`] mistakes, in the order of the text.
    #[must_use]
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// How many more there are.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }
}

impl From<Issue> for ConfigErrors {
    fn from(issue: Issue) -> Self {
        Self {
            issues: vec![issue],
            more: 0,
        }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            write!(out, "{issue}")?;
        }
        if self.more > 0 {
            write!(out, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Gathers mistakes while a configuration is gone through.
#[derive(Debug, Default)]
pub(super) struct Issues {
    issues: Vec<Issue>,
    more: usize,
}

impl Issues {
    /// Notes one.
    pub(super) fn push(&mut self, issue: Issue) {
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(issue);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// `value` if it exists and nothing was noted. A part is absent only after its mistake was
    /// noted; the fallback keeps even a slip there from becoming an acceptance.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, ConfigErrors> {
        match value {
            Some(value) if self.issues.is_empty() => Ok(value),
            _ if self.issues.is_empty() => {
                Err(Issue::new(String::new(), None, "a part of it could not be used").into())
            }
            _ => Err(ConfigErrors {
                issues: self.issues,
                more: self.more,
            }),
        }
    }
}

/// At most [`MAX_SHOWN_CHARS`] of a value, control characters made visible.
pub(super) fn shorten(value: &str) -> String {
    let mut shown: String = value
        .chars()
        .take(MAX_SHOWN_CHARS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if value.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}
