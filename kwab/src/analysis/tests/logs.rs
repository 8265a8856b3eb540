//! The real logs, imported and judged.

use std::path::Path;

use super::*;
use crate::import::{Options, import};

/// The triage of every dump that a log of `testing/data/logs` becomes.
fn judged(name: &str) -> Vec<Triage> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/logs").join(name);
    let folder = tempfile::tempdir().unwrap();
    let options = Options { source: name.to_owned(), folder: Some(folder.path().to_path_buf()) };
    let log = std::fs::File::open(path).unwrap();
    let (_, dumps) = import(log, &options, &mut |_| {}).unwrap();
    dumps.iter().map(|dump| judge(std::fs::read(dump.file.as_ref().unwrap()).unwrap())).collect()
}

#[test]
fn the_socket_log_is_a_return_through_a_zeroed_context_not_a_call_through_null() {
    let all = judged("kevlar-panic-socket.log");
    assert_eq!(all.len(), 1);
    let top = &all[0].hypotheses[0];
    assert_eq!(top.rule, "JUMP-ZERO");
    assert!(top.claim.starts_with("the kernel returned to 0x0 through a zeroed stack"), "{}", top.claim);
    assert!(top.evidence.iter().any(|fact| fact.text.contains("from_pid=2 to_pid=1")), "{:#?}", top.evidence);
    assert!(all[0].headline.contains("page fault occurred in the kernel: rip=0"), "{}", all[0].headline);
    assert!(all[0].lacking.iter().any(|lack| lack.contains("debug=audit")), "{:?}", all[0].lacking);
}

#[test]
fn the_child_of_the_segv_log_dereferenced_null_and_the_log_lacks_registers_and_map() {
    let all = judged("kevlar-segv-children.log");
    let child = all.iter().find(|triage| triage.headline.contains("SIGSEGV")).unwrap();
    assert_eq!(child.hypotheses[0].rule, "NULL");
    assert!(child.hypotheses[0].claim.contains("null pointer plus 0x10"), "{}", child.hypotheses[0].claim);
    assert!(child.hypotheses.iter().all(|found| found.rule != "JUMP-ZERO"), "ip=0 of the signal event is no jump");
    for lack in ["registers at the fault", "the memory map of the process"] {
        assert!(child.lacking.iter().any(|line| line == lack), "{:?}", child.lacking);
    }
}

#[test]
fn the_linux_log_is_a_deliberate_crash_and_no_bug() {
    let all = judged("linux-6.1-sysrq-panic.log");
    assert_eq!(all.len(), 1);
    let rules: Vec<_> = all[0].hypotheses.iter().map(|found| found.rule).collect();
    assert_eq!(rules, ["DELIBERATE"]);
    assert!(all[0].hypotheses[0].claim.starts_with("deliberate: sysrq by init[1]"));
    assert!(!all[0].has_findings());
}

#[test]
fn the_profile_log_without_a_crash_has_no_hypothesis() {
    for triage in judged("kevlar-pipe-profile.log") {
        assert_eq!(triage.hypotheses, []);
        assert_eq!(triage.headline, "a recording without a crash");
    }
}
