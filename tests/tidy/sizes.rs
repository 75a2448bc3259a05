//! What fits into a head, and on a screen: lines per file and function, width, and a first
//! sentence that says what the file is for.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::Violation;
use crate::source::Source;

/// A file has fewer lines.
const FILE_LINES: usize = 400;

/// A function has fewer lines, from its `fn` to its closing brace.
const FUNCTION_LINES: usize = 70;

/// A line has at most so many characters.
const WIDTH: usize = 100;

pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut broken = |line, what| {
        violations.push(Violation {
            path: source.path.clone(),
            line,
            what,
        });
    };
    let lines = source.lines.len();
    if lines >= FILE_LINES {
        broken(
            lines,
            format!("the file has {lines} lines; fewer than {FILE_LINES} are right"),
        );
    }
    for (number, line) in (1..).zip(&source.lines) {
        let width = line.chars().count();
        if width > WIDTH {
            broken(
                number,
                format!("the line has {width} characters, {WIDTH} are the most"),
            );
        }
    }
    let documented = source
        .lines
        .first()
        .is_some_and(|line| line.starts_with("//!"));
    if !documented && !source.is_test(1) {
        broken(
            1,
            "the file does not begin with what it is for (//!)".to_owned(),
        );
    }
    let mut functions = Functions(Vec::new());
    functions.visit_file(&source.syntax);
    for (name, line, lines) in functions.0 {
        if lines >= FUNCTION_LINES {
            broken(
                line,
                format!("{name} has {lines} lines; fewer than {FUNCTION_LINES} are right"),
            );
        }
    }
    violations
}

/// Name, first line and number of lines of each function.
struct Functions(Vec<(String, usize, usize)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span().start().line;
        let last = block.span().end().line;
        self.0
            .push((signature.ident.to_string(), first, last - first + 1));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::source::Source;

    fn found(text: &str) -> Vec<(usize, String)> {
        let source = Source::parse("src/core/x.rs", &format!("//! X.\n{text}")).expect("parses");
        check(&source)
            .into_iter()
            .map(|violation| (violation.line, violation.what))
            .collect()
    }

    #[test]
    fn a_file_of_399_lines_passes_and_one_of_400_does_not() {
        assert_eq!(found(&"\n".repeat(398)), []);
        let violations = found(&"\n".repeat(399));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].0, 400);
    }

    #[test]
    fn a_line_of_100_characters_passes_and_one_of_101_does_not() {
        // Characters, not bytes.
        assert_eq!(found(&format!("// {}", "é".repeat(97))), []);
        let violations = found(&format!("// {}", "é".repeat(98)));
        assert_eq!(violations.len(), 1, "{violations:?}");
    }

    #[test]
    fn functions_of_69_lines_pass_and_those_of_70_do_not_wherever_they_are() {
        let body = |lines: usize| "\n".repeat(lines - 1);
        for (before, after) in [
            ("fn f() {", "}"),
            ("impl X { fn f() {", "} }"),
            ("trait X { fn f() {", "} }"),
            ("fn g() { fn f() {", "} }"),
        ] {
            assert_eq!(
                found(&format!("{before}{}{after}", body(69))),
                [],
                "{before}"
            );
            let violations = found(&format!("{before}{}{after}", body(70)));
            assert!(!violations.is_empty(), "{before}");
            assert!(
                violations
                    .iter()
                    .any(|(_, what)| what.starts_with("f has 70 lines"))
            );
        }
        // Comments and attributes before it are not its lines.
        assert_eq!(
            found(&format!("/// X.\n#[inline]\nfn f() {{{}}}", body(69))),
            []
        );
    }

    #[test]
    fn a_file_says_what_it_is_for() {
        let source = Source::parse("src/core/x.rs", "fn f() {}").expect("parses");
        let violations = check(&source);
        assert_eq!(violations.len(), 1);
        assert!(violations[0].what.contains("//!"));
    }
}
