//! `cargo xtask house-rules`: checks what a test can check of the house style, and prints each place that breaks it.
//!
//! The rules are listed with what they demand; the tests run the same ones.

use std::process::ExitCode;

use anyhow::Result;

use crate::house::{self, House};

/// Runs the command.
pub fn run() -> Result<ExitCode> {
    let broken = house::check(&House::read()?)?;
    let mut count = 0;
    for (rule, violations) in &broken {
        println!("{}: {}", rule.name, rule.demand);
        for violation in violations {
            println!("  {violation}");
        }
        count += violations.len();
    }
    println!("{} house rules, {count} violations", house::RULES.len());
    Ok(if count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
