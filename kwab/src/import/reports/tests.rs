//! Whole reports, family by family. The fixtures are written for these tests; each names the source of its shape.

mod linux;
mod others;
mod properties;

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
