//! What a dump lacks, as records for a copy of it: a copy that is sound must not seem to hold everything.

use std::collections::BTreeMap;

use kwab_format::record::{DropReason, DroppedSection, KindTotal};
use kwab_format::{DefectKind, Fields as _, RecordType as _, Records, SectionKind};

use super::file::DumpFile;

/// What the writer of `file` left out, and what of it is damaged or cut off. A kind that cannot be told is absent.
#[must_use]
pub fn losses(file: &DumpFile) -> Vec<DroppedSection<'_>> {
    let mut all: Vec<DroppedSection<'_>> = Vec::new();
    let mut lost: BTreeMap<Option<u16>, u32> = BTreeMap::new();
    for defect in &file.defects {
        let is_whole = matches!(defect.kind, DefectKind::NotRead { .. });
        let Some((first, last)) = defect.sections.filter(|_| !is_whole) else { continue };
        let kind = defect.section_kind.filter(|kind| *kind < SectionKind::INDEX).map(|kind| kind.0);
        let count = lost.entry(kind).or_default();
        *count = count.saturating_add(last.saturating_sub(first).saturating_add(1));
    }
    for raw in Records::new(&file.end) {
        match raw.kind {
            DroppedSection::KIND => all.extend(DroppedSection::decode(raw.body).ok().map(|(record, _)| record)),
            KindTotal::KIND => {
                let Ok((total, _)) = KindTotal::decode(raw.body) else { continue };
                let (Some(kind), Some(written)) = (total.kind, total.sections) else { continue };
                let found = file.sections.iter().filter(|section| section.header.kind.0 == kind).count();
                let missing = written.saturating_sub(u32::try_from(found).unwrap_or(u32::MAX));
                if missing == 0 || kind >= SectionKind::INDEX.0 {
                    continue;
                }
                // The sections that are too damaged to tell their kind are among these.
                let told = lost.insert(Some(kind), missing).unwrap_or(0);
                if let Some(unknown) = lost.get_mut(&None) {
                    *unknown = unknown.saturating_sub(missing.saturating_sub(told));
                }
            }
            _ => {}
        }
    }
    all.extend(lost.into_iter().filter(|(_, sections)| *sections > 0).map(|(kind, sections)| DroppedSection {
        kind,
        reason: Some(DropReason::DAMAGED),
        sections: Some(sections),
        ..DroppedSection::default()
    }));
    if !file.ended {
        all.push(DroppedSection { reason: Some(DropReason::CUT), ..DroppedSection::default() });
    }
    all
}
