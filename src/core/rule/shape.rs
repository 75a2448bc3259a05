//! Reads one part of a configuration from its text, and says where it does not fit.

use serde::Deserialize;
use serde_path_to_error::Segment;

use super::error::Issue;

/// Reads one part from its text, or says what is wrong first. `base` is the part's own path.
pub(super) fn shape<'a, T: Deserialize<'a>>(base: &str, text: &'a str) -> Result<T, Issue> {
    if text.trim_start().starts_with('[') {
        return Err(Issue::new(
            base.into(),
            Some(text),
            "write a JSON object, {...}",
        ));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let error = match serde_path_to_error::deserialize(&mut deserializer) {
        Ok(value) => match deserializer.end() {
            Ok(()) => return Ok(value),
            Err(error) => return Err(Issue::new(base.into(), None, format!("not JSON: {error}"))),
        },
        Err(error) => error,
    };
    let inner = error.inner();
    if !inner.is_data() {
        return Err(Issue::new(base.into(), None, format!("not JSON: {inner}")));
    }
    // The place is told by the path; line and column would be those inside of this part.
    let place = format!(" at line {} column {}", inner.line(), inner.column());
    let message = inner.to_string();
    let message = message.strip_suffix(&place).unwrap_or(&message);
    let found = value_at(text, error.path());
    Err(Issue::new(
        join(base, error.path()),
        found.as_deref(),
        message,
    ))
}

/// `base` and a path below it, as one.
fn join(base: &str, path: &serde_path_to_error::Path) -> String {
    let mut joined = base.to_owned();
    for segment in path {
        match segment {
            Segment::Seq { index } => joined.push_str(&format!("[{index}]")),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                if !joined.is_empty() {
                    joined.push('.');
                }
                joined.push_str(key);
            }
            Segment::Unknown => joined.push_str(".?"),
        }
    }
    joined
}

/// The value at a path, as JSON; none for a whole part, which would say too much.
fn value_at(text: &str, path: &serde_path_to_error::Path) -> Option<String> {
    let root: serde_json::Value = serde_json::from_str(text).ok()?;
    let mut value = &root;
    for segment in path {
        value = match segment {
            Segment::Seq { index } => value.get(*index)?,
            Segment::Map { key } | Segment::Enum { variant: key } => value.get(key)?,
            Segment::Unknown => return None,
        };
    }
    let missing_in = value.is_object() && std::ptr::eq(value, &root);
    (!missing_in).then(|| value.to_string())
}
