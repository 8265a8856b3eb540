//! Requires the same lints in every crate, and a reason for each that is turned off.

use std::str::FromStr as _;

use anyhow::{Context as _, Result};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use toml::{Table, Value};

use super::{House, Violation};

/// The crate that cannot inherit `forbid(unsafe_code)` and repeats the others.
const MACHINE: &str = "kernel/machine/Cargo.toml";

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let mut violations = manifests(house)?;
    for file in house.rust() {
        if let Ok(tokens) = TokenStream::from_str(&file.text) {
            attributes(tokens, &file.path, &mut violations);
        }
    }
    Ok(violations)
}

fn manifests(house: &House) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    let root = crate::paths::root();
    let workspace: Table = toml::from_str(&crate::paths::read(&root.join("Cargo.toml"))?)?;
    let workspace = workspace.get("workspace").and_then(|table| table.get("lints")).context("no [workspace.lints]")?;
    for package in house.metadata.workspace_packages() {
        let path = package.manifest_path.strip_prefix(root)?.to_string();
        let manifest: Table = toml::from_str(&crate::paths::read(package.manifest_path.as_std_path())?)?;
        let lints = manifest.get("lints");
        if path == MACHINE {
            violations.extend(missing_in_machine(workspace, lints));
        } else if lints.and_then(|lints| lints.get("workspace")) != Some(&Value::Boolean(true)) {
            violations.push(Violation::new(path, "does not inherit the workspace's lints"));
        }
    }
    Ok(violations)
}

/// The lints of the workspace that `machine` leaves out or relaxes.
fn missing_in_machine(workspace: &Value, machine: Option<&Value>) -> Vec<Violation> {
    let strength = |level: &str| ["allow", "warn", "deny", "forbid"].iter().position(|name| *name == level);
    let level = |value: Option<&Value>| value.and_then(Value::as_str).and_then(strength).unwrap_or(0);
    let mut violations = Vec::new();
    for (tool, lints) in workspace.as_table().into_iter().flatten() {
        for (lint, wanted) in lints.as_table().into_iter().flatten().filter(|row| row.0 != "unsafe_code") {
            let own = machine.and_then(|lints| lints.get(tool)).and_then(|lints| lints.get(lint));
            if level(own) < level(Some(wanted)) {
                violations.push(Violation::new(MACHINE, format!("has {tool} lint {lint} weaker than the workspace")));
            }
        }
    }
    violations
}

/// `allow` and `expect` without a reason, and ignored tests without one.
fn attributes(tokens: TokenStream, path: &str, violations: &mut Vec<Violation>) {
    let mut hash = false;
    for token in tokens {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                hash = true;
                continue;
            }
            TokenTree::Punct(mark) if hash && mark.as_char() == '!' => continue,
            TokenTree::Group(group) if hash && group.delimiter() == Delimiter::Bracket => {
                if let Some(text) = unreasoned(&group.stream()) {
                    let location = format!("{path}:{}", group.span_open().start().line);
                    violations.push(Violation::new(location, text));
                }
            }
            TokenTree::Group(group) => attributes(group.stream(), path, violations),
            _ => {}
        }
        hash = false;
    }
}

fn unreasoned(attribute: &TokenStream) -> Option<String> {
    let text = attribute.to_string();
    let name = attribute.clone().into_iter().next()?.to_string();
    let tail = text.replace(' ', "");
    match name.as_str() {
        "allow" | "expect" if !tail.contains("reason=") => Some(format!("`{text}` gives no reason")),
        "cfg_attr" if tail.contains(",allow(") && !tail.contains("reason=") => {
            Some(format!("`{text}` gives no reason"))
        }
        "ignore" if !tail.contains('=') => Some("an ignored test gives no reason".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::of;
    use super::*;

    fn found(text: &str) -> usize {
        check(&of("kwab/src/x.rs", text)).unwrap().iter().filter(|v| v.location.starts_with("kwab/src/x.rs")).count()
    }

    #[test]
    fn a_lint_turned_off_without_a_word_is_found_wherever_it_is() {
        assert_eq!(found("#![allow(dead_code)]\nmod m { #[expect(unused)] fn f() {} }"), 2);
        assert_eq!(found("#[allow(dead_code, reason = \"used by the other architecture\")] fn f() {}"), 0);
        assert_eq!(found("#[test]\n#[ignore]\nfn f() {}"), 1);
    }
}
