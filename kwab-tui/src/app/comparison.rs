//! The crash that another is compared with, and the lists of both as they arrive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kwab::report::inspect::Report;

use crate::load::Job;
use crate::view::{Slot, View};

/// The second crash of a comparison, and the lists of both that have not been paired yet.
pub struct Comparison {
    path: PathBuf,
    generation: u64,
    report: Option<Arc<Report>>,
    left: BTreeMap<Slot, Arc<dyn View>>,
    right: BTreeMap<Slot, Arc<dyn View>>,
}

impl Comparison {
    /// A comparison with the crash of a dump, whose jobs carry `generation`; `left` are the lists of the first crash.
    pub(super) const fn new(path: PathBuf, generation: u64, left: BTreeMap<Slot, Arc<dyn View>>) -> Self {
        Self { path, generation, report: None, left, right: BTreeMap::new() }
    }

    /// Path of the second dump, or of one of the dumps in a file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The generation that its jobs carry.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// What the second crash is about, once that is known.
    #[must_use]
    pub const fn report(&self) -> Option<&Arc<Report>> {
        self.report.as_ref()
    }

    /// Takes what the second crash is about.
    pub(super) fn take_report(&mut self, report: Arc<Report>) {
        self.report = Some(report);
    }

    /// Takes a list of one of the two crashes; gives the job that pairs both once both are there. `first` is the dump
    /// of the first crash, `generation` the one of its jobs.
    pub(super) fn take(
        &mut self,
        slot: Slot,
        view: Arc<dyn View>,
        is_second: bool,
        first: &Path,
        generation: u64,
    ) -> Option<Job> {
        if is_single(slot) {
            return None;
        }
        let side = if is_second { &mut self.right } else { &mut self.left };
        side.insert(slot, view);
        let (left, right) = (Arc::clone(self.left.get(&slot)?), Arc::clone(self.right.get(&slot)?));
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let names = (name(first), name(&self.path));
        Some(Job::Beside { generation, slot, left, right, names })
    }

    /// The lists of the first crash.
    pub(super) fn into_left(self) -> BTreeMap<Slot, Arc<dyn View>> {
        self.left
    }
}

/// Lists that are about one dump by nature.
pub(super) const fn is_single(slot: Slot) -> bool {
    matches!(slot, Slot::Marks | Slot::Compare)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::Marks;

    #[test]
    fn two_lists_are_paired_once_both_are_there_in_either_order() {
        let view = || -> Arc<dyn View> { Arc::new(crate::view::marks::marks(&Marks::default())) };
        for second_comes_first in [false, true] {
            let mut comparison = Comparison::new(PathBuf::from("dir/b.kwab"), 7, BTreeMap::new());
            let first = Path::new("dir/a.kwab");
            assert!(comparison.take(Slot::Log, view(), second_comes_first, first, 3).is_none());
            assert!(comparison.take(Slot::Tasks, view(), !second_comes_first, first, 3).is_none(), "another list");
            let job = comparison.take(Slot::Log, view(), !second_comes_first, first, 3);
            let Some(Job::Beside { generation: 3, slot: Slot::Log, names, .. }) = job else { panic!("no job") };
            assert_eq!(names, ("a.kwab".to_string(), "b.kwab".to_string()));
            assert!(comparison.take(Slot::Marks, view(), true, first, 3).is_none(), "marks are of one dump");
        }
    }
}
