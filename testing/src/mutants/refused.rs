//! The mutations that the compiler refused, remembered as long as their file is the same: finding them takes minutes.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use anyhow::Result;

use super::list::Mutant;
use crate::paths;

/// Of each file its checksum, and of each refused mutation in it the reason by its id.
type Refused = BTreeMap<String, (u32, BTreeMap<String, String>)>;

const FILE: &str = "refused.json";

/// Those of these mutations that were refused before, by their index.
pub fn known(mutants: &[Mutant]) -> Result<BTreeMap<u32, String>> {
    let file = paths::build("mutants")?.join(FILE);
    let refused = fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Refused>(&bytes).ok());
    let mut refused = refused.unwrap_or_default();
    let mut checksums = Checksums::default();
    for (file, (checksum, _)) in refused.clone() {
        if checksums.of(&file).ok() != Some(checksum) {
            refused.remove(&file);
        }
    }
    let reason = |mutant: &Mutant| refused.get(&mutant.file)?.1.get(&mutant.id()).cloned();
    Ok((0..).zip(mutants).filter_map(|(number, mutant)| Some((number, reason(mutant)?))).collect())
}

/// Remembers which of these mutations were refused.
pub fn remember(mutants: &[Mutant], left_out: &BTreeMap<u32, String>) -> Result<()> {
    let mut refused = Refused::new();
    let mut checksums = Checksums::default();
    for (number, mutant) in (0..).zip(mutants) {
        if let Some(reason) = left_out.get(&number) {
            let checksum = checksums.of(&mutant.file)?;
            let file = refused.entry(mutant.file.clone()).or_insert_with(|| (checksum, BTreeMap::new()));
            file.1.insert(mutant.id(), reason.clone());
        }
    }
    paths::write(&paths::build("mutants")?.join(FILE), &serde_json::to_vec(&refused)?)
}

/// Checksums of source files, each read once.
#[derive(Default)]
struct Checksums(HashMap<String, u32>);

impl Checksums {
    fn of(&mut self, file: &str) -> Result<u32> {
        if let Some(checksum) = self.0.get(file) {
            return Ok(*checksum);
        }
        let checksum = crc32fast::hash(paths::read(&paths::root().join(file))?.as_bytes());
        self.0.insert(file.to_owned(), checksum);
        Ok(checksum)
    }
}
