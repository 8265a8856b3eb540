//! Walks the records of a dump section by section, for readers that ask for one after the other.

use std::sync::Arc;

use kwab_format::record::RecordKind;
use kwab_format::{RawRecord, Records, SectionKind};

use crate::model::memory::Payload;
use crate::model::{DumpFile, RecordRef};

/// The records of some sections of a dump; it holds one section at a time.
#[derive(Debug)]
pub struct Walk {
    file: Arc<DumpFile>,
    sections: std::vec::IntoIter<usize>,
    kind: Option<RecordKind>,
    payload: Option<(Payload, RecordRef)>,
    at: usize,
    lost: Vec<String>,
}

/// Texts about what could not be read that are kept.
const MOST_LOST: usize = 4096;

impl Walk {
    /// All records of these sections, or those of one kind.
    #[must_use]
    pub fn new(file: Arc<DumpFile>, sections: Vec<usize>, kind: Option<RecordKind>) -> Self {
        Self { file, sections: sections.into_iter(), kind, payload: None, at: 0, lost: Vec::new() }
    }

    /// Calls `look` with the next record and its position; `None` at the end.
    pub fn next_with<R>(&mut self, mut look: impl FnMut(RawRecord<'_>, RecordRef) -> R) -> Option<R> {
        loop {
            if let Some((payload, place)) = &mut self.payload {
                let mut records = Records::new(payload.get(self.at..).unwrap_or_default());
                while let Some(record) = records.next() {
                    self.at = payload.len() - records.rest().len();
                    let at = *place;
                    place.record = place.record.saturating_add(1);
                    if self.kind.is_none_or(|kind| kind == record.kind) {
                        return Some(look(record, at));
                    }
                }
                // Its room is needed for the next one.
                self.payload = None;
            }
            let index = self.sections.next()?;
            let header = self.file.sections.get(index)?.header;
            match self.file.payload(index) {
                Ok(payload) => {
                    self.payload = Some((payload, RecordRef { section: header.seq, kind: header.kind, record: 0 }));
                    self.at = 0;
                }
                Err(defect) => self.lose(defect.to_string()),
            }
        }
    }

    /// Notes what could not be read.
    pub fn lose(&mut self, text: String) {
        if self.lost.len() < MOST_LOST {
            self.lost.push(text);
        }
    }

    /// What could not be read so far.
    #[must_use]
    pub fn lost(&self) -> &[String] {
        &self.lost
    }
}

/// The sections of a dump that are of a kind, by its name, or have a number; all without either.
#[must_use]
pub fn chosen(file: &DumpFile, kind: Option<&str>, number: Option<u32>) -> Vec<usize> {
    let named = |found: SectionKind| kind.is_none_or(|wanted| found.to_string() == wanted);
    let sections = file.sections.iter().enumerate();
    let fit = sections
        .filter(|(_, section)| named(section.header.kind) && number.is_none_or(|wanted| wanted == section.header.seq));
    fit.map(|(index, _)| index).collect()
}
