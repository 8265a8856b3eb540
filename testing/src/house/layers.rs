//! Holds each crate's imports against its order of layers: an import points downwards, and files form no circle.
//!
//! `testing/layers.toml` has a table per crate: its top-level modules from top to bottom. There are no exceptions.
//! [`imports`] reads who imports whom; [`circles`] finds the circles.
//!
//! A circle between a `mod.rs` (or `name.rs`) and its own children does not count: a module and its parts are one
//! thing.

mod circles;
mod imports;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use self::imports::Graph;
use super::{House, Violation};

/// Where the orders are written down.
const TABLE: &str = "testing/layers.toml";

/// The content of the table file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// One entry per crate that has more than one module.
    #[serde(rename = "crate")]
    crates: Vec<Order>,
}

/// The order of one crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    /// Its source folder, relative to the workspace.
    root: String,
    /// Its layers, top to bottom: top-level modules, and children of the modules in `split`. The crate's root file is
    /// above all of them.
    order: Vec<String>,
    /// Top-level modules whose children are layers of their own, written `parent::child`.
    #[serde(default)]
    split: Vec<String>,
}

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let text = match house.text(TABLE) {
        Ok(text) => text,
        Err(violation) => return Ok(vec![violation]),
    };
    let table: Table = toml::from_str(text).with_context(|| format!("reading {TABLE}"))?;
    let mut violations = Vec::new();
    for order in &table.crates {
        let files = house.rust().filter(|file| file.path.starts_with(&format!("{}/", order.root)));
        let graph = Graph::read(&order.root, &order.split, files)?;
        violations.extend(modules(order, &graph));
        violations.extend(upwards(order, &graph));
        violations.extend(circles_of_files(order, &graph));
    }
    Ok(violations)
}

/// The table names each top-level module once, and no other.
fn modules(order: &Order, graph: &Graph) -> Vec<Violation> {
    let there = graph.top_level();
    let listed: BTreeSet<&str> = order.order.iter().map(String::as_str).collect();
    let missing = there.difference(&listed).map(|name| format!("`{name}` is missing in the order of {}", order.root));
    let gone =
        listed.difference(&there).map(|name| format!("`{name}` is in the order of {} and not there", order.root));
    missing.chain(gone).map(|text| Violation::new(TABLE, text)).collect()
}

/// Imports between top-level modules that point upwards.
fn upwards(order: &Order, graph: &Graph) -> Vec<Violation> {
    let height: BTreeMap<&str, usize> = order.order.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut violations = Vec::new();
    for import in graph.imports() {
        let (from, to) = (graph.top_of(import.from), graph.top_of(import.to));
        let points_up = match (from, to) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(from), Some(to)) => from != to && height.get(from) > height.get(to),
        };
        if points_up {
            let location = format!("{}:{}", graph.path(import.from), import.line);
            let name = format!("{} -> {}", from.unwrap_or("(root)"), to.unwrap_or("(root)"));
            violations.push(Violation::new(location, format!("imports upwards: {name}")));
        }
    }
    violations
}

/// The circles of files inside a top-level module.
fn circles_of_files(order: &Order, graph: &Graph) -> Vec<Violation> {
    let circles = circles::within_modules(graph);
    circles.iter().map(|circle| Violation::new(&order.root, format!("circle: {}", circle.join(", ")))).collect()
}

#[cfg(test)]
mod tests;
