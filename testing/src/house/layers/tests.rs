//! Small crates with one fault each.

use super::super::{House, Source};
use super::*;

const TWO: &str = "[[crate]]\nroot = \"x/src\"\norder = [\"top\", \"low\"]\n";

fn house(table: &str, files: &[(&str, &str)]) -> House {
    let mut house = House::read().unwrap();
    let source = |(path, text): &(&str, &str)| Source { path: (*path).into(), text: (*text).into() };
    house.files = files.iter().map(source).collect();
    house.files.push(Source { path: TABLE.into(), text: table.into() });
    house
}

fn found(table: &str, files: &[(&str, &str)]) -> Vec<String> {
    check(&house(table, files)).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn an_import_downwards_is_allowed_and_one_upwards_is_found_with_its_line() {
    let down = [("x/src/lib.rs", "mod top; mod low;"), ("x/src/top.rs", "use crate::low::A;"), ("x/src/low.rs", "")];
    assert!(found(TWO, &down).is_empty());
    let up = [("x/src/lib.rs", "mod top; mod low;"), ("x/src/top.rs", ""), ("x/src/low.rs", "\nuse crate::top::A;")];
    assert_eq!(found(TWO, &up), ["x/src/low.rs:2: imports upwards: low -> top"]);
}

#[test]
fn a_path_without_a_use_counts_also_inside_a_macro() {
    let path = [("x/src/top.rs", ""), ("x/src/low.rs", "fn f() { crate::top::g(); }")];
    assert_eq!(found(TWO, &path).len(), 1);
    let inside = [("x/src/top.rs", ""), ("x/src/low.rs", "fn f() { println!(\"{}\", super::top::g()); }")];
    assert_eq!(found(TWO, &inside).len(), 1);
    let visibility = [("x/src/top.rs", ""), ("x/src/low.rs", "m! { pub(crate) fn f() {} }")];
    assert!(found(TWO, &visibility).is_empty());
}

#[test]
fn a_re_export_counts_as_the_module_it_is_from() {
    let through_root = [("x/src/lib.rs", "pub use top::A;"), ("x/src/top.rs", ""), ("x/src/low.rs", "use crate::A;")];
    assert_eq!(found(TWO, &through_root), ["x/src/low.rs:1: imports upwards: low -> top"]);
    let harmless = [("x/src/lib.rs", "pub use low::A;"), ("x/src/top.rs", "use crate::A;"), ("x/src/low.rs", "")];
    assert!(found(TWO, &harmless).is_empty());
}

#[test]
fn what_the_root_itself_declares_is_above_every_module() {
    let files = [("x/src/lib.rs", "pub struct A;"), ("x/src/top.rs", ""), ("x/src/low.rs", "use crate::A;")];
    assert_eq!(found(TWO, &files), ["x/src/low.rs:1: imports upwards: low -> (root)"]);
}

#[test]
fn tests_may_look_at_everything() {
    let inline = [("x/src/top.rs", ""), ("x/src/low.rs", "#[cfg(test)] mod tests { use crate::top::A; }")];
    assert!(found(TWO, &inline).is_empty());
    let file = [("x/src/top.rs", ""), ("x/src/low.rs", ""), ("x/src/low/tests.rs", "use crate::top::A;")];
    assert!(found(TWO, &file).is_empty());
}

#[test]
fn a_module_missing_in_the_order_and_one_that_does_not_exist_are_found() {
    let files = [("x/src/top.rs", ""), ("x/src/other.rs", "")];
    let texts = found(TWO, &files);
    assert!(texts.iter().any(|text| text.contains("`other` is missing in the order")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("`low` is in the order")), "{texts:?}");
}

#[test]
fn a_circle_of_files_is_found_and_one_with_the_parent_is_not() {
    let with_parent =
        [("x/src/top.rs", "mod a; use self::a::A;"), ("x/src/top/a.rs", "use super::B;"), ("x/src/low.rs", "")];
    assert!(found(TWO, &with_parent).is_empty());
    let siblings = [
        ("x/src/top.rs", "mod a; mod b;"),
        ("x/src/top/a.rs", "use super::b::B;"),
        ("x/src/top/b.rs", "use super::a::A;"),
        ("x/src/low.rs", ""),
    ];
    let texts = found(TWO, &siblings);
    assert_eq!(texts, ["x/src: circle: x/src/top/a.rs, x/src/top/b.rs"]);
}

#[test]
fn the_children_of_a_split_module_are_layers_of_their_own() {
    let table = r#"
        [[crate]]
        root = "x/src"
        order = ["arch::high", "top", "arch::low"]
        split = ["arch"]
    "#;
    let files = |low| {
        [
            ("x/src/arch/high.rs", "use crate::top::A; use super::low::B;"),
            ("x/src/top.rs", "use crate::arch::low::B;"),
            ("x/src/arch/low/mod.rs", low),
        ]
    };
    assert!(found(table, &files("")).is_empty());
    assert_eq!(
        found(table, &files("use crate::arch::high::C;")),
        ["x/src/arch/low/mod.rs:1: imports upwards: arch::low -> arch::high"]
    );
}
