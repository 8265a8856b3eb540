//! `cargo xtask house-rules`: checks what a test can check of the house style, and prints each violation.
//!
//! The rules are listed with what they demand; the tests run the same ones.

use std::process::ExitCode;

use anyhow::Result;

use crate::house::{self, House};
use crate::results;

/// Runs the command.
pub fn run() -> Result<ExitCode> {
    let broken = house::check(&House::read()?)?;
    let mut failures = Vec::new();
    for (rule, violations) in &broken {
        println!("{}: {}", rule.name, rule.demand);
        for violation in violations {
            println!("  {violation}");
            failures.push(format!("{}: {violation}", rule.name));
        }
    }
    println!("{} house rules, {} violations", house::RULES.len(), failures.len());
    results::verdict(&failures)
}
