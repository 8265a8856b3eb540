//! Files of other tools where a log or a dump is expected: `kwab FILE`, `kwab triage`, `kwab import`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{folder, kwab, run, text};
use serde_json::Value;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/exchange").join(name)
}

/// Copies a sample into `folder`.
fn put(folder: &Path, name: &str) {
    fs::copy(sample(name), folder.join(name)).expect("the sample is there");
}

#[test]
fn a_packed_core_of_a_process_is_judged_by_its_name_and_through_a_pipe() {
    let folder = folder();
    put(folder.path(), "process.core.gz");
    let by_name = run(folder.path(), &["process.core.gz"]);
    assert_eq!(by_name.status.code(), Some(1), "{}", text(&by_name.stderr));
    let page = text(&by_name.stdout);
    assert!(page.contains("died of SIGSEGV: accessed 0x") && page.contains("[NULL]"), "{page}");
    assert!(!page.contains("[AUDIT]"), "{page}");
    assert!(!page.contains("boot with debug="), "Linux has no such options: {page}");
    let bytes = fs::read(sample("process.core.gz")).expect("there");
    let piped = kwab(folder.path()).args(["triage", "-"]).write_stdin(bytes).output().expect("runs");
    assert_eq!(piped.status.code(), Some(1), "{}", text(&piped.stderr));
    let told = |page: &str| page.lines().next().map(str::to_owned);
    assert_eq!(told(&text(&piped.stdout)), told(&page));
}

#[test]
fn the_dump_of_a_core_has_names_from_the_program_and_both_threads() {
    let folder = folder();
    let at = folder.path();
    put(at, "process.core.gz");
    put(at, "process");
    let made = run(at, &["import", "process.core.gz", "-o", "core.kwab", "--json"]);
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let report: Value = serde_json::from_slice(&made.stdout).expect("JSON");
    assert_eq!((&report["dumps"][0]["kind"], &report["cut"]), (&"process".into(), &Value::Null));
    let page = text(&run(at, &["inspect", "core.kwab", "--symbols", "process", "--section", "bt,tasks"]).stdout);
    for telling in ["sum+0x", "process.c:", "total+0x", "start+0x", "start_thread"] {
        assert!(page.contains(telling), "{telling}: {page}");
    }
    let again = run(at, &["import", "process.core.gz", "-o", "core.kwab"]);
    assert_eq!(again.status.code(), Some(2), "the file is there");
}

#[test]
fn a_cut_core_is_imported_and_the_status_says_that_it_is_partial() {
    let folder = folder();
    put(folder.path(), "process.core.gz");
    let mut bytes = Vec::new();
    let packed = fs::File::open(sample("process.core.gz")).expect("there");
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut bytes).expect("packed by us");
    fs::write(folder.path().join("core"), &bytes[..bytes.len() - 0x8000]).expect("written");
    let output = run(folder.path(), &["import", "core", "-o", "core.kwab"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("32 KiB of memory: the core is cut"), "{}", text(&output.stderr));
}

#[test]
fn a_triple_fault_is_explained_by_what_could_not_be_delivered() {
    let folder = folder();
    put(folder.path(), "triple.log");
    let output = run(folder.path(), &["triage", "triple.log"]);
    let page = text(&output.stdout).replace("\n          ", " ");
    assert_eq!(output.status.code(), Some(1), "{page}{}", text(&output.stderr));
    assert!(page.contains("[TRIPLE]") && page.contains("the interrupt table is not mapped"), "{page}");
    assert!(page.contains("gate 14 of the IDT at 0xffff800000001000"), "{page}");
}

/// Score of the hypothesis TRIPLE of this log.
fn score_of_triple(log: &str) -> Option<f64> {
    let folder = folder();
    fs::write(folder.path().join("log"), log).expect("written");
    let output = run(folder.path(), &["triage", "log", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let all = found["hypotheses"].as_array().expect("hypotheses").iter();
    all.filter(|one| one["rule"] == "TRIPLE").find_map(|one| one["score"].as_f64())
}

#[test]
fn a_triple_fault_is_proven_only_by_qemus_exceptions_of_one_processor() {
    let log = fs::read_to_string(sample("triple.log")).expect("there");
    assert!(score_of_triple(&log).is_some_and(|score| score > 0.9));
    let several = score_of_triple(&format!("CPU Reset (CPU 1)\n{log}"));
    assert!(several.is_some_and(|score| score < 0.7), "{several:?}");
    let (_, unknown) = log.split_once("Servicing").expect("an interrupt");
    let unknown = score_of_triple(&format!("Servicing{unknown}"));
    assert!(unknown.is_some_and(|score| score < 0.7), "{unknown:?}");
    // Another kernel's words, which nothing of QEMU's stands behind.
    let forged = "[    0.100000] booting\ntriple fault: page fault at 0x10, while delivering the page fault: page \
                  fault at 0x20, gate 14 of the IDT at 0x0, while delivering the double fault: page fault\n";
    assert_eq!(score_of_triple(forged), None);
}

#[test]
fn the_core_of_a_machine_is_imported_as_capture_does() {
    let folder = folder();
    let at = folder.path();
    // One page of memory at a physical address, and no notes.
    let mut core = vec![0; 64 + 56 + 4096];
    core[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    core[16..20].copy_from_slice(&[4, 0, 62, 0]);
    (core[32], core[54], core[56]) = (64, 56, 1);
    for (field, word) in [(0, 1), (8, 120), (24, 0x10_0000), (32, 4096), (40, 4096_u64)] {
        core[64 + field..64 + field + 8].copy_from_slice(&word.to_le_bytes());
    }
    core[120] = 7;
    fs::write(at.join("vmcore"), core).expect("written");
    let made = run(at, &["import", "vmcore", "-o", "imported.kwab"]);
    assert_eq!(made.status.code(), Some(3), "it has no registers: {}", text(&made.stderr));
    run(at, &["capture", "--mem", "vmcore", "-o", "captured.kwab"]);
    let held = |name: &str| text(&run(at, &["search", name, "07000000"]).stdout);
    assert_eq!(held("imported.kwab"), held("captured.kwab"));
    // The same in makedumpfile's flattened form, packed and through a pipe.
    let vmcore = fs::read(at.join("vmcore")).expect("there");
    let mut flat = b"makedumpfile\0\0\0\0".to_vec();
    flat.extend([1_u64, 1].map(u64::to_be_bytes).concat());
    flat.resize(4096, 0);
    flat.extend([0, vmcore.len() as u64].map(u64::to_be_bytes).concat());
    flat.extend(vmcore);
    flat.extend([0xff; 16]);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, &flat).expect("memory");
    let packed = packed.finish().expect("memory");
    let piped = kwab(at).args(["import", "-", "-o", "piped.kwab"]).write_stdin(packed).output().expect("runs");
    assert_eq!(piped.status.code(), Some(3), "{}", text(&piped.stderr));
    assert_eq!(held("imported.kwab"), held("piped.kwab"));
}

#[test]
fn a_packed_minidump_is_judged_and_has_names_from_its_program() {
    let folder = folder();
    let at = folder.path();
    put(at, "process.dmp.gz");
    put(at, "process");
    let judged = run(at, &["process.dmp.gz"]);
    let page = text(&judged.stdout);
    assert_eq!(judged.status.code(), Some(1), "{page}{}", text(&judged.stderr));
    assert!(page.contains("died of SIGSEGV: accessed 0x") && page.contains("[NULL]"), "{page}");
    let page = text(&run(at, &["inspect", "process.dmp.gz", "--symbols", "process", "--section", "bt,tasks"]).stdout);
    for telling in ["sum+0x", "process.c:", "total+0x", "start+0x", "start_thread"] {
        assert!(page.contains(telling), "{telling}: {page}");
    }
}

#[test]
fn a_core_becomes_a_minidump_and_that_a_dump_again() {
    let folder = folder();
    let at = folder.path();
    put(at, "process.core.gz");
    run(at, &["import", "process.core.gz", "-o", "core.kwab"]);
    let written = run(at, &["export", "core.kwab", "--to", "minidump", "-o", "core.dmp"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let cause =
        |name: &str| text(&run(at, &["triage", name]).stdout).lines().take(2).map(str::to_owned).collect::<Vec<_>>();
    // A minidump names its system, a core does not.
    let (ours, told) = (cause("core.dmp"), cause("core.kwab"));
    assert_eq!((&ours[0], &ours[1]), (&told[0], &format!("Linux, {}", told[1])));
    let refused = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps/null-dereference.kwab");
    let refused = run(at, &["export", &refused.display().to_string(), "--to", "minidump", "-o", "kernel.dmp"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("the death of a kernel"), "{}", text(&refused.stderr));
    assert!(!at.join("kernel.dmp").exists());
}

#[test]
fn a_text_of_strace_is_a_dump_of_who_died_with_the_calls_before() {
    let folder = folder();
    let at = folder.path();
    put(at, "process.strace");
    let judged = run(at, &["triage", "process.strace"]);
    let page = text(&judged.stdout);
    assert_eq!(judged.status.code(), Some(1), "{page}{}", text(&judged.stderr));
    assert!(page.contains("process[") && page.contains("SIGSEGV"), "{page}");
    let page = text(&run(at, &["inspect", "process.strace", "--section", "syscalls"]).stdout);
    assert!(page.contains("execve(\"./process\"") && page.contains("nanosleep("), "{page}");
}

#[test]
fn a_packed_core_with_a_bad_checksum_is_partial() {
    let folder = folder();
    let at = folder.path();
    let mut bytes = fs::read(sample("process.core.gz")).expect("there");
    // The CRC-32 stands in front of the length at the end (RFC 1952).
    let crc = bytes.len() - 8;
    bytes[crc] ^= 1;
    fs::write(at.join("core.gz"), bytes).expect("written");
    let output = run(at, &["import", "core.gz", "-o", "core.kwab"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(at.join("core.kwab").exists());
}

#[test]
fn two_cores_of_one_program_are_two_dumps() {
    let folder = folder();
    let at = folder.path();
    let mut bytes = Vec::new();
    let packed = fs::File::open(sample("process.core.gz")).expect("there");
    std::io::copy(&mut flate2::read::GzDecoder::new(packed), &mut bytes).expect("packed by us");
    let id = |bytes: &[u8]| {
        fs::write(at.join("core"), bytes).expect("written");
        run(at, &["import", "core", "-o", "core.kwab", "--force"]);
        fs::read(at.join("core.kwab")).expect("made")[..64].to_vec()
    };
    let (first, again) = (id(&bytes), id(&bytes));
    assert_eq!(first, again);
    // Behind the headers: a register of the second process.
    bytes[0x2c0] ^= 1;
    assert_ne!(first, id(&bytes));
}
