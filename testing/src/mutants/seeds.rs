//! The seeds that the repository keeps, `testing/mutants/SEED.json`, with every mutant: what the page of results has.
//!
//! Each was judged by the commit that it names, before anything was changed for it; a seed that was looked at is not
//! judged again.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::report::Record;
use crate::paths;

/// All of them, by seed.
pub fn all() -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for entry in fs::read_dir(folder()).with_context(|| format!("cannot read {}", paths::shown(&folder())))? {
        let file = entry?.path();
        let record: Record = serde_json::from_str(&paths::read(&file)?).with_context(|| paths::shown(&file))?;
        records.push(record);
    }
    records.sort_by_key(|record| record.seed);
    Ok(records)
}

/// Writes one, a mutant a line.
pub fn write(record: &Record) -> Result<()> {
    paths::write(&folder().join(format!("{}.json", record.seed)), text(record)?.as_bytes())
}

fn text(record: &Record) -> Result<String> {
    let bare = Record { rows: Vec::new(), ..record.clone() };
    let rows = record.rows.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    let whole =
        serde_json::to_string(&bare)?.replacen("\"rows\":[]", &format!("\"rows\":[\n{}\n]", rows.join(",\n")), 1);
    // Programs of the guest say where their sources lie on this machine.
    Ok(whole.replace(&format!("{}/", paths::root().display()), "") + "\n")
}

fn folder() -> PathBuf {
    paths::root().join("testing/mutants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_written_as_it_lies_there() {
        let records = all().expect("sound files");
        assert!(!records.is_empty());
        for record in records {
            let kept = paths::read(&folder().join(format!("{}.json", record.seed))).expect("a file of that seed");
            assert_eq!(text(&record).expect("text"), kept, "seed {}", record.seed);
            assert!(record.circumstances.is_some() && !record.rows.is_empty());
        }
    }
}
