//! Counts how often a crate declares a type of one name: more than three, and the name no longer says which.
//!
//! Structs, enums, unions, traits and aliases count, wherever they are declared; associated types and tests do not.
//!
//! In the kernel an identifier also says which kind of place it is: address, offset, slot, position, location.

use std::collections::BTreeMap;

use anyhow::Result;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, ItemMod};

use super::{House, Violation};

/// A crate may declare a name so often.
const MOST: usize = 3;

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let root = crate::paths::root();
    let mut crates = Vec::new();
    for package in house.metadata.workspace_packages() {
        let folder = package.manifest_path.strip_prefix(root)?.parent().map(ToString::to_string).unwrap_or_default();
        crates.push(format!("{folder}/src"));
    }
    let mut declared: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for file in house.rust().filter(|file| !is_test(&file.path)) {
        let Some(of) = crates.iter().find(|of| file.path.starts_with(of.as_str())) else { continue };
        // A file that cannot be parsed is a violation of the rule `budget`.
        let Ok(syntax) = syn::parse_file(&file.text) else { continue };
        let mut types = Types::default();
        types.visit_file(&syntax);
        for (name, line) in types.0 {
            declared.entry((of, name)).or_default().push(format!("{}:{line}", file.path));
        }
    }
    let mut violations = find_vague(house);
    let often = declared.into_iter().filter(|(_, locations)| locations.len() > MOST);
    violations.extend(often.map(|((_, name), locations)| {
        let text = format!("`{name}` is declared {} times: {}", locations.len(), locations[1..].join(", "));
        Violation::new(&locations[0], text)
    }));
    Ok(violations)
}

/// Where identifiers must say which kind of place they are.
const KERNEL: &str = "kernel/";
/// The words that do not say it, in small letters.
const VAGUE: [&str; 2] = ["place", "places"];

fn find_vague(house: &House) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in house.rust().filter(|file| file.path.starts_with(KERNEL)) {
        let Ok(syntax) = syn::parse_file(&file.text) else { continue };
        let mut found = Vague::default();
        found.visit_file(&syntax);
        violations.extend(found.0.into_iter().map(|(name, line)| {
            let text = format!("`{name}`: say address, offset, slot, position or location");
            Violation::new(format!("{}:{line}", file.path), text)
        }));
    }
    violations
}

/// Identifiers with a vague word in them, with their lines. What grows or is read "in place" stays where it is.
#[derive(Default)]
struct Vague(Vec<(String, usize)>);

impl<'ast> Visit<'ast> for Vague {
    fn visit_ident(&mut self, ident: &'ast Ident) {
        let name = ident.to_string();
        let plain = name.to_lowercase().replace("in_place", "");
        if plain.split('_').any(|word| VAGUE.contains(&word)) {
            self.0.push((name, ident.span().start().line));
        }
    }
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The types a file declares, with their lines.
#[derive(Default)]
struct Types(Vec<(String, usize)>);

impl Types {
    fn add(&mut self, name: &Ident) {
        self.0.push((name.to_string(), name.span().start().line));
    }
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add(&item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add(&item.ident);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !item.attrs.iter().any(is_test_only) {
            visit::visit_item_mod(self, item);
        }
    }
}

fn is_test_only(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|word| word == "test")
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    #[test]
    fn a_name_declared_four_times_is_found_with_all_its_lines() {
        let text = "mod a { struct Row; }\nmod b { enum Row {} }\ntype Row = u8;\nfn f() { union Row { a: u8 } }\n";
        let found = check(&of("kwab/src/x.rs", text)).unwrap();
        let lines = "kwab/src/x.rs:2, kwab/src/x.rs:3, kwab/src/x.rs:4";
        assert_eq!(found[0].to_string(), format!("kwab/src/x.rs:1: `Row` is declared 4 times: {lines}"));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_identifier_of_the_kernel_says_which_kind_of_place_it_is() {
        let text = "struct Row { place: u8 }\nfn same_place(placement: u8) {}\nfn grow_in_place() {}\n";
        let found = check(&of("kernel/src/x.rs", text)).unwrap();
        assert_eq!(found.len(), 2);
        let first = "kernel/src/x.rs:1: `place`: say address, offset, slot, position or location";
        assert_eq!(found[0].to_string(), first);
        assert!(found[1].to_string().starts_with("kernel/src/x.rs:2: `same_place`"));
        assert!(check(&of("kwab/src/x.rs", text)).unwrap().is_empty());
    }

    #[test]
    fn three_are_allowed_and_tests_and_associated_types_do_not_count() {
        let text = "struct Row;\nmod a { struct Row; }\nmod b { struct Row; }\n\
                    #[cfg(test)]\nmod tests { struct Row; }\nimpl Iterator for Row { type Row = u8; }\n";
        assert!(check(&of("kwab/src/x.rs", text)).unwrap().is_empty());
        assert!(check(&of("kwab/src/x/tests.rs", &"struct Row;\n".repeat(4))).unwrap().is_empty());
    }
}
