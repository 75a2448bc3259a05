//! JSON one level at a time: what stands below a value stays text until it is asked for.
//!
//! So a mistake in one part does not hide those in the others, and a field that was written twice
//! is still there twice.
//!
//! Every mistake of shape is told from here, with the path and the text as it was written. Derived
//! readers and `serde_json::Value` would do most of that too, but in the plugin they took a fifth
//! of the file: a reader per type, and all that prints a float.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{Issue, shorten};

/// Largest whole number up to which every one has a double of its own (2^53).
const LARGEST_EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;

/// A value as it was written, and where.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    path: String,
    text: &'a str,
}

/// One level of a value.
enum Level<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    Text(String),
    Whole(u64),
    /// Null, a truth value, or a number that is negative, not whole or beyond exactness.
    Other,
}

impl<'a> Value<'a> {
    /// The whole text, whose path is empty.
    pub(super) const fn root(text: &'a str) -> Self {
        Self {
            path: String::new(),
            text,
        }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn below(&self, name: &str, value: &'a RawValue) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            path: format!("{}{dot}{name}", self.path),
            text: value.get(),
        }
    }

    fn level(&self) -> Result<Level<'a>, Issue> {
        serde_json::from_str(self.text)
            .map_err(|error| Issue::new(self.path.clone(), None, format!("not JSON: {error}")))
    }

    /// A mistake in this value, in whose place `wanted` would be right.
    pub(super) fn issue(&self, wanted: impl Into<String>) -> Issue {
        Issue::new(self.path.clone(), Some(self.text), wanted)
    }

    /// The fields of an object that may have these and no others.
    pub(super) fn object(&self, names: &'static [&'static str]) -> Result<Object<'a>, Issue> {
        let Level::Object(written) = self.level()? else {
            return Err(self.issue("write a JSON object, {...}"));
        };
        let mut fields: Vec<(&'static str, Self)> = Vec::with_capacity(names.len());
        for (name, value) in written {
            let Some(known) = names.iter().copied().find(|known| *known == name) else {
                let unknown = self.below(&shorten(&name), value);
                let wanted = format!("unknown field, write one of {}", listed(names));
                return Err(unknown.issue(wanted));
            };
            if fields.iter().any(|(before, _)| *before == known) {
                return Err(self.whole_issue(format!("duplicate field `{known}`")));
            }
            fields.push((known, self.below(known, value)));
        }
        Ok(Object {
            value: self.clone(),
            fields,
        })
    }

    /// A mistake in an object as a whole, which is not repeated: that would say too much.
    fn whole_issue(&self, wanted: String) -> Issue {
        Issue::new(self.path.clone(), None, wanted)
    }

    /// The elements of an array.
    pub(super) fn array(&self) -> Result<Array<'a>, Issue> {
        let Level::Array(elements) = self.level()? else {
            return Err(self.issue("write a JSON array, [...]"));
        };
        Ok(Array {
            path: self.path.clone(),
            elements,
        })
    }

    /// A string.
    pub(super) fn text(&self) -> Result<String, Issue> {
        match self.level()? {
            Level::Text(text) => Ok(text),
            _ => Err(self.issue("write a string, \"...\"")),
        }
    }

    /// A whole number as it may arrive: Istio turns every number into a double on its way here, so
    /// an integral double is one too, and digits in quotes are the way to keep a long one exact.
    /// None for anything else.
    pub(super) fn number(&self) -> Result<Option<u64>, Issue> {
        Ok(match self.level()? {
            Level::Whole(number) => Some(number),
            Level::Text(text) => digits(&text),
            _ => None,
        })
    }

    /// The choice whose name was written.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Issue> {
        let written = self.text()?;
        let chosen = choices.iter().find(|(name, _)| *name == written);
        chosen.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.issue(format!("write one of {}", listed(&names)))
        })
    }
}

/// Names in quotes, as a list.
fn listed(names: &[&str]) -> String {
    let mut list = String::new();
    for name in names {
        let comma = if list.is_empty() { "\"" } else { ", \"" };
        list.extend([comma, *name, "\""]);
    }
    list
}

/// A whole number of nothing but digits; `parse` alone would also take a leading plus sign.
pub(super) fn digits(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// The fields of an object; each is known and there once.
#[derive(Debug)]
pub(super) struct Object<'a> {
    value: Value<'a>,
    fields: Vec<(&'static str, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// A field that may be left out.
    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        let field = self.fields.iter().find(|(known, _)| *known == name);
        field.map(|(_, value)| value)
    }

    /// A field that has to be there.
    pub(super) fn need(&self, name: &str) -> Result<&Value<'a>, Issue> {
        self.get(name)
            .ok_or_else(|| self.value.whole_issue(format!("missing field `{name}`")))
    }
}

/// The elements of an array. Their paths are made one by one, as there may be more elements than
/// anybody will look at.
#[derive(Debug, Default)]
pub(super) struct Array<'a> {
    path: String,
    elements: Vec<&'a RawValue>,
}

impl<'a> Array<'a> {
    pub(super) const fn len(&self) -> usize {
        self.elements.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        (self.elements.iter().enumerate()).map(|(index, element)| Value {
            path: format!("{}[{index}]", self.path),
            text: element.get(),
        })
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = Level<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Level<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Level::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Level<'de>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Level::Array(elements))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Level<'de>, E> {
        Ok(Level::Text(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Level<'de>, E> {
        Ok(Level::Whole(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Level<'de>, E> {
        Ok(u64::try_from(number).map_or(Level::Other, Level::Whole))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Level<'de>, E> {
        let whole = number.fract() == 0.0 && (0.0..=LARGEST_EXACT_DOUBLE).contains(&number);
        // Exact: an integral double of at most 2^53.
        Ok(if whole {
            Level::Whole(number as u64)
        } else {
            Level::Other
        })
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Level<'de>, E> {
        Ok(Level::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Level<'de>, E> {
        Ok(Level::Other)
    }
}

impl<'de> Deserialize<'de> for Level<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}
