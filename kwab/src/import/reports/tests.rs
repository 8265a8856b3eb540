//! Whole reports, family by family. The fixtures are written for these tests; each names the source of its shape.

mod beside;
mod kernels;
mod linux;
mod lost;
mod others;
mod properties;
mod told;
mod transports;

use super::{LogPosition, Recogniser, Report};

/// The reports of a log.
fn reports(log: &str) -> Vec<Report> {
    let mut recogniser = Recogniser::new();
    let mut found = Vec::new();
    let mut offset = 0;
    for (index, line) in log.split('\n').enumerate() {
        recogniser.line(line.as_bytes(), LogPosition { offset, line: index as u64 + 1 });
        offset += line.len() as u64 + 1;
        found.extend(std::iter::from_fn(|| recogniser.next_report()));
    }
    recogniser.finish();
    found.extend(std::iter::from_fn(|| recogniser.next_report()));
    found
}

/// The only report of a log.
fn only(log: &str) -> Report {
    let mut found = reports(log);
    assert_eq!(found.len(), 1, "{log}{found:#?}");
    found.remove(0)
}

#[test]
fn reports_come_in_the_order_of_their_numbers_also_when_a_stack_without_a_head_comes_late() {
    let (task, frame) = ("[    C1] CPU: 1 PID: 2 Comm: a Not tainted\n", "[    C1]  foo+0x1c/0x40 [m]\n");
    let others = "[   T12] WARNING: CPU: 0 PID: 1 at a.c:2 f+0x1/0x2\n\
                  [   T12] INFO: task a:1 blocked for more than 1 seconds.\n";
    for log in [format!("{task}{frame}{others}"), format!("{task}{others}{frame}")] {
        let found = reports(&log);
        let numbers: Vec<_> = found.iter().map(|report| report.number).collect();
        assert_eq!(numbers.len(), 3, "{log}{found:#?}");
        assert!(numbers.is_sorted(), "{numbers:?} of {log}");
    }
}
