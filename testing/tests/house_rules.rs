//! Fails when a house rule is broken anywhere in the workspace; `cargo xtask house-rules` prints the same.

use testing::house::{self, House};

#[test]
fn every_house_rule_holds_in_every_file() {
    let broken = house::check(&House::read().unwrap()).unwrap();
    let text: Vec<String> = broken
        .iter()
        .flat_map(|(rule, violations)| violations.iter().map(move |violation| format!("[{}] {violation}", rule.name)))
        .collect();
    assert!(text.is_empty(), "\n{}", text.join("\n"));
}
