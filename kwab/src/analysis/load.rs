//! Reads the records of a dump that the analyses need: from bytes, from an open file, or from what was loaded of one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kwab_format::SectionKind;

use super::dump::{Dump, Needs};
use super::keep::Keeper;
use crate::model::{DumpFile, OpenError, SectionInfo};

impl Dump {
    /// Reads all sections, keeping the sound ones and noting what is wrong with the others.
    ///
    /// # Errors
    /// [`OpenError`] when the bytes are no dump.
    pub fn open(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Ok(Self::of_file(DumpFile::from_bytes(bytes)?, Needs::Everything))
    }

    /// Reads the sections one by one and keeps the records that are needed, as far as the dump's budget goes. What is left
    /// out is among the defects.
    #[must_use]
    pub fn of_file(mut file: DumpFile, needs: Needs) -> Self {
        let mut keeper = Keeper::new(Arc::clone(&file.budget), needs);
        for index in 0..file.sections.len() {
            match file.payload(index) {
                Ok(payload) => {
                    if let Some(defect) = keeper.add(&file.sections[index], payload) {
                        file.add_defect(defect);
                    }
                }
                Err(defect) => file.add_defect(defect),
            }
        }
        keeper.add_end(&file.end);
        let mut present = BTreeMap::new();
        count_sections(&file, &mut present);
        keeper.finish(file.defects, present, file.ended)
    }

    /// Takes the sections that were loaded of a dump, for dumps too long to hold whole; those that were left out count
    /// as sound, and conclusions rest on what was loaded.
    #[must_use]
    pub fn of_loaded(dump: crate::model::Dump) -> Self {
        let mut file = dump.file;
        let mut present: BTreeMap<SectionKind, u32> = BTreeMap::new();
        count_sections(&file, &mut present);
        let mut keeper = Keeper::new(Arc::clone(&file.budget), Needs::Everything);
        let by_number: HashMap<u32, SectionInfo> = file.sections.iter().map(|info| (info.header.seq, *info)).collect();
        for section in dump.loaded {
            let info = by_number.get(&section.number);
            if let Some(defect) = info.and_then(|info| keeper.add(info, section.payload)) {
                file.add_defect(defect);
            }
        }
        keeper.finish(file.defects, present, file.ended)
    }
}

fn count_sections(file: &DumpFile, present: &mut BTreeMap<SectionKind, u32>) {
    for section in file.sections.iter().chain(&file.tables) {
        *present.entry(section.header.kind).or_default() += 1;
    }
}
