//! Holds cargo's metadata against the architecture: who may depend on whom.

use anyhow::Result;

use super::{House, Violation};

/// Each crate and the workspace crates it may depend on, in any section of its manifest.
const ALLOWED: &[(&str, &[&str])] = &[
    ("kwab-format", &[]),
    ("kwab", &["kwab-format", "kernel-logic", "linux-abi"]),
    ("kwab-cli", &["kwab", "kwab-tui"]),
    ("kwab-tui", &["kwab"]),
    ("kwab-python", &["kwab"]),
    ("kernel", &["machine", "kernel-logic", "linux-abi", "kwab-format"]),
    ("linux-abi", &[]),
    ("kernel-logic", &["linux-abi"]),
    ("machine", &[]),
    ("stage", &[]),
    ("testing", &["kwab", "kwab-format", "linux-abi", "stage"]),
];

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    let packages = house.metadata.workspace_packages();
    for package in &packages {
        let name = package.name.as_str();
        let Some((_, allowed)) = ALLOWED.iter().find(|row| row.0 == name) else {
            violations.push(Violation::new(name, "is not in the table of crates (testing/src/house/dependencies.rs)"));
            continue;
        };
        let ours = package.dependencies.iter().filter(|dependency| dependency.path.is_some());
        for dependency in ours.filter(|dependency| !allowed.contains(&dependency.name.as_str())) {
            violations.push(Violation::new(name, format!("must not depend on {}", dependency.name)));
        }
    }
    for (name, _) in ALLOWED.iter().filter(|row| !packages.iter().any(|package| package.name.as_str() == row.0)) {
        violations.push(Violation::new(*name, "is in the table of crates and not in the workspace"));
    }
    Ok(violations)
}
