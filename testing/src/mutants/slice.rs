//! The mutants of every test run: a few described changes that are known to be noticed, under few of the loads.
//!
//! What `kwab` must do with each is the least that any case asks for: a sound dump, a finding, no sure blame of another
//! function. That it names the changed one is measured by the whole judge, and asked for here only where the way to it
//! is short: where a sleeper waits for what the function says, where a crash before there is a kernel leaves no dump,
//! so that the log must do, and where the recorded paths of a kernel without the change part in the function.

use super::described::Change;
use super::guest::Sort;
use super::report::Row;

/// The loads, by name.
pub const LOADS: &[&str] = &[
    "descriptors/pipe_reads_what_is_there_then_end_of_file",
    "exam/spawn",
    "files/getdents_lists_every_name_once",
    "programs/shell_pipelines_connect_applets",
    "subsystems/ptys_carry_lines_with_editing",
    "vm/fork_copies_on_write_both_ways",
    "vm/munmap_splits_and_tolerates_gaps",
];

/// The changes, each known to be noticed under [`LOADS`].
pub const CHANGES: &[Change] = &[
    // The parent of a vfork is not woken: a hang.
    Change {
        file: "kernel/src/task/mod.rs",
        function: "finish_vfork",
        from: "self.vfork.lock().take()",
        to: "self.vfork.lock().take().filter(|_| false)",
    },
    // Every terminal seems to be stopped: a hang.
    Change { file: "kernel/src/tty/mod.rs", function: "is_stopped", from: "!wire.has_room()", to: "wire.has_room()" },
    // The initramfs seems to be empty: no init, a death of the kernel.
    Change { file: "kernel/logic/src/cpio.rs", function: "next_entry", from: "self.at >= ", to: "self.at < " },
    // Boot finds no memory for its tables of frames: a crash before there is a kernel.
    Change {
        file: "kernel/machine/src/x86_64/entry/start.rs",
        function: "carve",
        from: "range.frames() > frames",
        to: "range.frames() < frames",
    },
];

/// Functions of [`CHANGES`] that fail before there is a kernel.
const EARLY: &[&str] = &["carve"];

/// Functions of [`CHANGES`] that the first hypothesis names, from a dump and from a log alone.
const NAMED: &[&str] = &["is_stopped"];

/// Functions of [`CHANGES`] in which the recorded paths part first: in a call, and in the boot before any.
const PARTED: &[&str] = &["finish_vfork", "next_entry", "carve"];

/// What is wrong with a case of the slice; nothing when all is well.
#[must_use]
pub fn complaints(row: &Row) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain = |is_bad: bool, text: String| {
        if is_bad {
            complaints.push(format!("{}: {text}", row.name));
        }
    };
    complain(!row.sort.is_case(), format!("is {}, so that there is nothing to diagnose", row.sort.name()));
    let is_early = row.function.as_deref().is_some_and(|function| EARLY.contains(&function));
    if let (true, Some(score)) = (is_early, &row.serial) {
        complain(!score.anywhere, "its log does not name the function".to_owned());
        complain(score.status != Some(1), format!("kwab triage ends with {:?} on its log", score.status));
    }
    if let (false, Some(score)) = (is_early, &row.dump) {
        complain(!score.judged, "left no dump".to_owned());
        complain(score.judged && !score.sound, "its dump is not sound".to_owned());
        let is_silent = row.sort == Sort::KernelDied && score.judged && score.status != Some(1);
        complain(is_silent, format!("kwab triage ends with {:?} on a dead kernel", score.status));
    }
    let is_named = row.function.as_deref().is_some_and(|function| NAMED.contains(&function));
    for (from, score) in [("dump", &row.dump), ("log", &row.serial)] {
        let names = score.as_ref().is_some_and(|score| score.first);
        complain(is_named && !names, format!("the first hypothesis from its {from} does not name the function"));
    }
    let is_parted = row.function.as_deref().is_some_and(|function| PARTED.contains(&function));
    let parts = row.paths.as_ref().is_some_and(|score| score.first);
    complain(is_parted && !parts, "the recorded paths do not part in the function".to_owned());
    for score in [&row.dump, &row.serial].into_iter().flatten() {
        let blames = score.blames.as_deref().unwrap_or_default();
        complain(score.is_wrong(), format!("kwab blames {blames} ({:?} {})", score.score, score.claim));
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::score::Score;
    use super::*;

    fn row(sort: Sort, score: Score) -> Row {
        let change = super::super::described::mutant(crate::paths::root(), &CHANGES[0]).unwrap();
        Row { sort, dump: Some(score), ..Row::of(&change) }
    }

    #[test]
    fn every_change_is_still_in_the_sources() {
        for change in CHANGES {
            super::super::described::mutant(crate::paths::root(), change).unwrap();
        }
    }

    #[test]
    fn a_case_without_a_sound_dump_or_a_finding_and_a_sure_wrong_blame_are_complaints() {
        let good = Score { judged: true, sound: true, status: Some(1), score: Some(0.6), ..Score::default() };
        let parted = Some(Score { first: true, ..good.clone() });
        let of = |sort, score: &Score| Row { paths: parted.clone(), ..row(sort, score.clone()) };
        let count = |sort, score: &Score| complaints(&of(sort, score)).len();
        assert_eq!(complaints(&row(Sort::Hung, good.clone())).len(), 1);
        assert_eq!(count(Sort::KernelDied, &good), 0);
        assert_eq!(count(Sort::KernelDied, &Score { status: Some(0), ..good.clone() }), 1);
        assert_eq!(count(Sort::Hung, &Score { status: Some(0), ..good.clone() }), 0);
        assert_eq!(count(Sort::Hung, &Score { sound: false, ..good.clone() }), 1);
        assert_eq!(count(Sort::Hung, &Score { judged: false, ..good.clone() }), 1);
        assert_eq!(count(Sort::Unnoticed, &good), 1);
        let of_log = |score: Score| Row {
            function: Some("carve".to_owned()),
            serial: Some(score),
            ..of(Sort::KernelDied, &Score::default())
        };
        assert_eq!(complaints(&of_log(Score { anywhere: true, ..good.clone() })).len(), 0);
        assert_eq!(complaints(&of_log(good.clone())).len(), 1);
        let named = |score: Score| Row {
            function: Some("is_stopped".to_owned()),
            serial: Some(score.clone()),
            ..row(Sort::Hung, score)
        };
        assert_eq!(complaints(&named(Score { first: true, ..good.clone() })).len(), 0);
        assert_eq!(complaints(&named(good.clone())).len(), 2);
        let wrong = Score { score: Some(0.9), blames: Some("kernel::f".into()), ..good };
        assert_eq!(count(Sort::Hung, &wrong), 1);
    }
}
