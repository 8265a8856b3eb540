//! The importer accounts for every event of a generated, damaged log, in either dialect, and keeps the rest.

use kwab::import::{Options as ImportOptions, import};
use testing::genlog::{Dialect, Options, Written, generate};

fn log(dialect: Dialect, damage: u32, crashes: u32) -> (Vec<u8>, Written) {
    let mut log = Vec::new();
    let options = Options { size: 3_000_000, seed: 11, dialect, damage, crashes };
    let written = generate(&mut log, &options).expect("a vector takes everything");
    (log, written)
}

#[test]
fn every_whole_and_every_torn_event_is_counted_and_every_cut_one_is_kept() {
    for dialect in [Dialect::Hex, Dialect::Json, Dialect::Mixed] {
        let (log, written) = log(dialect, 20_000, 0);
        assert!(written.interleaved > 10 && written.cut > 10, "{written:?}");
        let options = ImportOptions { source: "generated.log".to_string(), folder: None };
        let (report, dumps) = import(&log[..], &options, &mut |_| {}).expect("it imports");
        assert_eq!(report.events, written.whole + written.interleaved, "{dialect:?}");
        assert_eq!(report.rejoined, written.interleaved, "{dialect:?}");
        assert_eq!(report.not_understood.count, written.cut, "{dialect:?}");
        assert_eq!(report.bytes, written.bytes);
        assert_eq!(dumps.len(), 1, "the panic at the end is the only crash");
    }
}

#[test]
fn fifty_dead_processes_and_a_panic_are_fifty_one_dumps_that_hold_every_event_once() {
    let (log, written) = log(Dialect::Json, 0, 50);
    let folder = tempfile::TempDir::new().expect("a folder");
    let options = ImportOptions { source: "generated.log".to_string(), folder: Some(folder.path().to_path_buf()) };
    let (report, dumps) = import(&log[..], &options, &mut |_| {}).expect("it imports");
    assert_eq!(dumps.len(), 51);
    assert_eq!(dumps.iter().map(|dump| dump.summary.events).sum::<u64>(), written.whole);
    assert_eq!(report.events, written.whole);
    assert!(dumps[..50].iter().all(|dump| dump.summary.kind == "process"));
    assert_eq!(dumps[50].summary.kind, "panic");
}
