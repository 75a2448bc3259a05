//! A Rust file as the rules see it: lines, tokens without comments, and which lines are test code.

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::repository::File;

/// Folders of integration tests.
const TEST_FOLDERS: [&str; 4] = [
    "src/server/tests/",
    "tests/harness/",
    "tests/scenarios/",
    "tests/tidy/",
];

/// A parsed file.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) syntax: syn::File,
    /// Lines of test code; all of them where the file as a whole is a test.
    tests: Vec<RangeInclusive<usize>>,
}

/// A word, a sign, a bracket or a literal.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl Source {
    /// Is this line only there for tests?
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&line))
    }

    /// Parses one file by itself.
    pub(crate) fn parse(path: &str, text: &str) -> syn::Result<Self> {
        let syntax = syn::parse_file(text)?;
        let mut finder = Finder::default();
        finder.visit_file(&syntax);
        if TEST_FOLDERS.iter().any(|folder| path.starts_with(folder)) {
            finder.ranges.push(1..=usize::MAX);
        }
        let mut tokens = Vec::new();
        flatten(
            text.parse::<TokenStream>().map_err(syn::Error::from)?,
            &mut tokens,
        );
        Ok(Self {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            tokens,
            syntax,
            tests: finder.ranges,
        })
    }

    /// The places of modules that are declared here for tests alone, as paths without `.rs`.
    fn test_modules(&self) -> Vec<String> {
        let stem = self.path.trim_end_matches(".rs");
        let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let own = if matches!(name, "lib" | "main" | "mod") {
            folder
        } else {
            stem
        };
        let mut finder = Finder::default();
        finder.visit_file(&self.syntax);
        finder
            .modules
            .iter()
            .map(|module| format!("{own}/{module}"))
            .collect()
    }
}

/// Parses all Rust files, and marks those as tests that others declare so.
pub(crate) fn parse_all(files: &[File]) -> Result<Vec<Source>, String> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let mut sources = rust
        .map(|file| {
            Source::parse(&file.path, &file.text).map_err(|error| format!("{}: {error}", file.path))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let modules: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in &mut sources {
        let belongs = |module: &String| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if modules.iter().any(belongs) {
            source.tests.push(1..=usize::MAX);
        }
    }
    Ok(sources)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let mut add = |text: String, line| tokens.push(Token { text, line });
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                add(open.to_owned(), group.span_open().start().line);
                flatten(group.stream(), tokens);
                let line = group.span_close().start().line;
                tokens.push(Token {
                    text: close.to_owned(),
                    line,
                });
            }
            other => add(other.to_string(), other.span().start().line),
        }
    }
}

/// Finds what is compiled for tests alone.
#[derive(Default)]
struct Finder {
    ranges: Vec<RangeInclusive<usize>>,
    /// Modules in files of their own.
    modules: Vec<String>,
}

impl Finder {
    fn look(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) {
        if attributes.iter().any(is_test) {
            let span = item.span();
            self.ranges.push(span.start().line..=span.end().line);
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.look(&item.attrs, item);
        if item.content.is_none() && item.attrs.iter().any(is_test) {
            self.modules.push(item.ident.to_string());
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.look(&item.attrs, item);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.look(&item.attrs, item);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.look(&item.attrs, item);
        visit::visit_item_impl(self, item);
    }
}

/// `#[test]`, `#[cfg(test)]` and other conditions that name `test` without `not`.
fn is_test(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    let mut tokens = Vec::new();
    flatten(list.tokens.clone(), &mut tokens);
    let names = |word: &str| tokens.iter().any(|token| token.text == word);
    attribute.path().is_ident("cfg") && names("test") && !names("not")
}

#[test]
fn test_code_is_told_from_other_code() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[test]\nfn c() {\n}\n\
                #[cfg(not(test))]\nfn d() {}\n\
                impl X {\n    #[cfg(test)]\n    fn e() {}\n    fn f() {}\n}\n";
    let source = Source::parse("src/core/x.rs", text).expect("parses");
    let tests: Vec<usize> = (1..=15).filter(|line| source.is_test(*line)).collect();
    assert_eq!(tests, [2, 3, 4, 5, 6, 7, 8, 12, 13]);
    assert!(
        Source::parse("tests/scenarios/x.rs", text)
            .expect("parses")
            .is_test(1)
    );
}

#[test]
fn files_of_test_modules_are_tests() {
    let file = |path: &str, text: &str| File {
        path: path.into(),
        text: text.into(),
    };
    let sources = parse_all(&[
        file("src/core/lib.rs", "#[cfg(test)] mod samples; mod ledger;"),
        file("src/core/samples.rs", "fn a() {}"),
        file("src/core/samples/deep.rs", "fn a() {}"),
        file("src/core/ledger.rs", "#[cfg(test)] mod tests;"),
        file("src/core/ledger/tests.rs", "fn a() {}"),
        file("src/core/tests.rs", "fn a() {}"),
    ])
    .expect("parse");
    let tests: Vec<&str> = sources
        .iter()
        .filter(|source| source.is_test(1))
        .map(|source| &*source.path)
        .collect();
    assert_eq!(
        tests,
        [
            "src/core/lib.rs",
            "src/core/samples.rs",
            "src/core/samples/deep.rs",
            "src/core/ledger.rs",
            "src/core/ledger/tests.rs",
        ]
    );
}
