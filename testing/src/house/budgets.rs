//! Counts lines: 700 for a file, 80 for a function, exceptions with reasons.
//!
//! A function over the limit carries `expect(clippy::too_many_lines, reason = "...")`, so its reason stands beside it;
//! a file over the limit is listed in [`LONG_FILES`].

use anyhow::Result;
use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Signature};

use super::{House, Violation};

const FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 80;

/// Files that may be longer, and why.
const LONG_FILES: &[(&str, &str)] = &[];

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in house.rust() {
        let lines = file.text.lines().count();
        let listed = LONG_FILES.iter().any(|row| row.0 == file.path);
        if lines > FILE_LINES && !listed {
            violations.push(Violation::new(&file.path, format!("{lines} lines, {FILE_LINES} are allowed")));
        } else if lines <= FILE_LINES && listed {
            violations.push(Violation::new(&file.path, "is listed as a long file and is not one"));
        }
        match syn::parse_file(&file.text) {
            Ok(syntax) => Functions { path: &file.path, violations: &mut violations }.visit_file(&syntax),
            Err(error) => violations.push(Violation::new(&file.path, format!("cannot be parsed: {error}"))),
        }
    }
    let missing = LONG_FILES.iter().filter(|row| !house.files.iter().any(|file| file.path == row.0));
    violations.extend(missing.map(|row| Violation::new(row.0, "is listed as a long file and does not exist")));
    Ok(violations)
}

struct Functions<'a> {
    path: &'a str,
    violations: &'a mut Vec<Violation>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &Signature, block: &Block, attributes: &[Attribute]) {
        let (first, last) = (line(signature.span()), block.span().end().line);
        let lines = last + 1 - first;
        if lines > FUNCTION_LINES && !attributes.iter().any(excuses_length) {
            let text = format!("`{}` has {lines} lines, {FUNCTION_LINES} are allowed", signature.ident);
            self.violations.push(Violation::new(format!("{}:{first}", self.path), text));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure(&item.sig, &item.block, &item.attrs);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure(&item.sig, &item.block, &item.attrs);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block, &item.attrs);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn line(span: Span) -> usize {
    span.start().line
}

fn excuses_length(attribute: &Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let text = list.tokens.to_string();
    list.path.is_ident("expect") && text.contains("too_many_lines") && text.contains("reason")
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    fn long(attribute: &str) -> Vec<Violation> {
        let text = format!("{attribute}\nfn f() {{\n{}}}\n", "    g();\n".repeat(90));
        check(&of("kwab/src/x.rs", &text)).unwrap()
    }

    #[test]
    fn a_function_over_the_limit_is_found_unless_it_gives_a_reason() {
        assert_eq!(long("")[0].to_string(), "kwab/src/x.rs:2: `f` has 92 lines, 80 are allowed");
        assert!(long("#[expect(clippy::too_many_lines, reason = \"one table\")]").is_empty());
        assert_eq!(long("#[expect(clippy::too_many_lines)]").len(), 1);
    }

    #[test]
    fn a_file_over_the_limit_is_found() {
        assert_eq!(check(&of("kwab/src/x.rs", &"// x\n".repeat(701))).unwrap().len(), 1);
    }
}
