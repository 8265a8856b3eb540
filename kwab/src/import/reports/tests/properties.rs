//! What holds for any input.

use proptest::prelude::*;

use super::super::report::{LONGEST_TEXT, MOST_FRAMES, MOST_NOTES, MOST_STACKS};
use super::super::{LogPosition, Recogniser};

/// Pieces that reports are made of, to reach deeper than noise does.
const PIECES: &[&str] = &[
    "BUG: ",
    "KASAN: slab-out-of-bounds in foo+0x1/0x2",
    "Oops: 0002 [#1]",
    "CPU: 1 PID: 2 Comm: a b Not tainted",
    "RIP: 0010:foo+0x1/0x2",
    "Call Trace:",
    " foo+0x1c/0x40 [m]",
    "[   12.345678]",
    "[  T12]",
    "[    C1]",
    "> ",
    "<4>",
    "------------[ cut here ]------------",
    "WARNING: CPU: 0 PID: 1 at a.c:2 f+0x1/0x2",
    "panic: ",
    "panicked at src/a.rs:1:2:",
    "Kernel panic - not syncing: x",
    "---[ end trace 1 ]---",
    "rcu: INFO: rcu_sched self-detected stall on CPU",
    "NMI backtrace for cpu ",
    "{\"MESSAGE\":\"",
    "&lt;",
    "=3D",
    "\u{1b}[31m",
    "task:a state:D pid:1",
    "#0 0xffffffff80001234 at f+0x1",
    "Code: 00 <0f> 0b",
    "RAX: 0000000000000001 RBX: ",
    "Krnl GPRS: 0000000000000001",
    "INFO: task a:1 blocked for more than 1 seconds.",
    "=====================",
    "0x",
    "[<",
    ">]",
    " at ",
    ":",
    "+",
    "/",
    "\\",
    "\"",
    "ffffffffffffffffff",
];

fn line() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec());
    let noise = prop::collection::vec(any::<u8>(), 0..12);
    prop::collection::vec(prop_oneof![4 => piece, 1 => noise], 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_lines_give_bounded_reports_in_their_order(lines in prop::collection::vec(line(), 0..80)) {
        let mut recogniser = Recogniser::new();
        let mut found = Vec::new();
        for (index, line) in lines.iter().enumerate() {
            recogniser.line(line, LogPosition { offset: 0, line: index as u64 + 1 });
            found.extend(std::iter::from_fn(|| recogniser.next_report()));
        }
        recogniser.finish();
        found.extend(std::iter::from_fn(|| recogniser.next_report()));
        for report in &found {
            prop_assert!(report.first.line >= 1 && report.first.line <= report.last.line);
            prop_assert!(report.last.line <= lines.len() as u64);
            prop_assert!(report.stacks.len() <= MOST_STACKS && report.notes.len() <= MOST_NOTES);
            prop_assert!(report.stacks.iter().map(|stack| stack.frames.len()).sum::<usize>() <= MOST_FRAMES);
            prop_assert!(report.headline.len() <= LONGEST_TEXT && !report.headline.is_empty());
            prop_assert!(!report.headline.chars().any(char::is_control));
            prop_assert!(report.follows.is_none_or(|number| number < report.number));
        }
        prop_assert!(found.windows(2).all(|pair| pair[0].number < pair[1].number));
        prop_assert!(!recogniser.is_open());
    }

    #[test]
    fn console_text_that_says_nothing_deadly_gives_nothing(words in prop::collection::vec("[a-z]{1,8}", 0..40)) {
        let log = words.join(" ");
        prop_assume!(!["panic", "oops", "fault", "assert", "abort"].iter().any(|word| log.contains(word)));
        prop_assert!(super::reports(&log).is_empty());
    }
}
