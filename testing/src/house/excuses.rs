//! Holds the list of known differences against the contracts and the calendar.

use anyhow::Result;

use super::{House, Violation};
use crate::contracts::{program, verdict};
use crate::results;

const LIST: &str = "testing/contracts/known-differences.toml";

pub(super) fn check(_house: &House) -> Result<Vec<Violation>> {
    let contracts = program::find(None)?;
    let today = results::today();
    let mut violations = Vec::new();
    for (name, difference) in verdict::known_differences()? {
        if !contracts.iter().any(|contract| contract.name == name) {
            violations.push(Violation::new(LIST, format!("{name}: there is no such contract")));
        }
        if difference.expires < today {
            violations.push(Violation::new(LIST, format!("{name}: its date {} has passed", difference.expires)));
        }
    }
    Ok(violations)
}
