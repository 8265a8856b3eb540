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
fn debug_print() {
    for name in ["kevlar-panic-socket.log", "kevlar-segv-children.log", "linux-6.1-sysrq-panic.log", "kevlar-pipe-profile.log"] {
        for t in judged(name) { println!("{name}: {}", serde_json::to_string_pretty(&t).unwrap()); }
    }
}
