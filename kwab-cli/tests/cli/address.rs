//! Questions about addresses, asked of dumps of our kernel and of the core of a machine.

use std::path::Path;

use crate::common::{folder, kwab, run, text};
use serde_json::Value;

fn dump(name: &str) -> String {
    format!("{}/../testing/dumps/{name}.kwab", env!("CARGO_MANIFEST_DIR"))
}

/// An ELF core of a machine: page tables at 0x1000 map 0x400000 to 0x5000, with words in it; one CPU in QEMU's note.
fn core(folder: &Path) -> String {
    let mut memory = vec![0; 0x6000];
    let mut word = |at: usize, value: u64| memory[at - 0x1000..at - 0x1000 + 8].copy_from_slice(&value.to_le_bytes());
    [(0x1000, 0x2007), (0x2000, 0x3007), (0x3010, 0x4007), (0x4000, 0x5007), (0x5010, 0xfeed_f00d_cafe)]
        .into_iter()
        .for_each(|(at, value)| word(at, value));
    memory[0x4100..0x4105].copy_from_slice(b"hello");
    let mut body = vec![0; 8 + 8 * 18 + 24 * 10 + 8 * 6];
    body[8 + 8 * 16..][..8].copy_from_slice(&0x40_0000_u64.to_le_bytes());
    body[8 + 8 * 18 + 24 * 10 + 24..][..8].copy_from_slice(&0x1000_u64.to_le_bytes());
    let mut note: Vec<u8> = [5, body.len() as u32, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    note.extend(b"QEMU\0\0\0\0");
    note.extend(body);
    let mut core = vec![0; 64];
    core[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    core[16..20].copy_from_slice(&[4, 0, 62, 0]);
    (core[32], core[54], core[56]) = (64, 56, 2);
    let first = 64 + 2 * 56;
    for (kind, at, paddr, length) in [(4_u32, first, 0, note.len()), (1, first + note.len(), 0x1000, memory.len())] {
        core.extend(u64::from(kind).to_le_bytes());
        [at, 0, paddr, length, length, 0].iter().for_each(|word| core.extend((*word as u64).to_le_bytes()));
    }
    core.extend(note);
    core.extend(memory);
    std::fs::write(folder.join("machine.core"), core).expect("written");
    "machine.core".to_owned()
}

fn json(folder: &Path, arguments: &[&str], status: i32) -> Value {
    let output = run(folder, &[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{}.json", arguments[0]));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).expect("there")).expect("JSON");
    let errors: Vec<_> =
        jsonschema::validator_for(&schema).expect("a schema").iter_errors(&value).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    value
}

#[test]
fn a_core_of_a_machine_answers_translate_search_and_whatis() {
    let folder = folder();
    let core = core(folder.path());
    let captured = json(folder.path(), &["capture", "--mem", &core, "-o", "m.kwab"], 0);
    assert_eq!((&captured["ram_bytes"], &captured["processors"]), (&0x6000.into(), &1.into()));
    let led = json(folder.path(), &["translate", "m.kwab", "0x400010"], 0);
    assert_eq!((&led["physical"], &led["captured"]), (&"0x0000000000005010".into(), &true.into()));
    assert_eq!(led["levels"].as_array().map(Vec::len), Some(4));
    let hits = json(folder.path(), &["search", "m.kwab", "0xfeedf00dcafe"], 0);
    assert_eq!(
        (&hits["count"], &hits["hits"][0]["addresses"][0]["address"]),
        (&1.into(), &"0x0000000000400010".into())
    );
    assert_eq!(json(folder.path(), &["search", "m.kwab", "hello"], 0)["count"], 1);
    assert_eq!(json(folder.path(), &["search", "m.kwab", "--as", "hex", "68 656c"], 0)["count"], 1);
    assert_eq!(json(folder.path(), &["search", "m.kwab", "absent"], 0)["count"], 0);
    let what = json(folder.path(), &["whatis", "m.kwab", "0x1000", "--physical"], 0);
    assert!(what["facts"].to_string().contains("page table of level 4"), "{what}");
    // Another root, whose table was not captured: what is missing is told.
    let lost = json(folder.path(), &["translate", "m.kwab", "0x400010", "--cr3", "0x77000"], 3);
    assert_eq!(lost["incomplete"], true);
    // The dump is sound to every other command.
    assert_eq!(run(folder.path(), &["check", "m.kwab"]).status.code(), Some(0));
    assert_eq!(run(folder.path(), &["inspect", "m.kwab"]).status.code(), Some(0));
    let piped = std::fs::read(folder.path().join(&core)).expect("there");
    let output =
        kwab(folder.path()).args(["capture", "--mem", "-", "-o", "p.kwab"]).write_stdin(piped).output().expect("runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn recorded_page_tables_of_our_kernel_translate_and_addresses_are_told() {
    let folder = folder();
    let dump = dump("null-dereference");
    let led = json(folder.path(), &["translate", &dump, "0x62b838"], 0);
    assert_eq!((&led["source"], &led["physical"]), (&"records".into(), &"0x0000000000611838".into()));
    assert_eq!(led["rights"], "rw- user");
    assert_eq!(json(folder.path(), &["translate", &dump, "0xffffffff80211000"], 3)["physical"], Value::Null);
    let what = json(folder.path(), &["whatis", &dump, "0x7ffd49d18bd0"], 0);
    let facts = what["facts"].to_string();
    for words in ["[stack] of process 2", "rbx of thread 2", "captured (user stack"] {
        assert!(facts.contains(words), "{words}: {facts}");
    }
    let hits = json(folder.path(), &["search", &dump, "/bin/exam"], 0);
    assert_eq!(hits["hits"][0]["addresses"][0]["space"], "process 2");
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_reason() {
    let folder = folder();
    let dump = dump("clean");
    for (arguments, words) in [
        (vec!["translate", &dump, "12x"], "expected a number"),
        (vec!["translate", &dump, "0x1", "--pid", "77"], "process 77"),
        (vec!["translate", &dump, "0x1", "--cpu", "77"], "CPU 77"),
        (vec!["translate", &dump, "0x1", "--cpu", "7", "--pid", "7"], "cannot be used with"),
        (vec!["search", &dump, ""], "empty"),
        (vec!["search", &dump, "0x0"], "only zeros"),
        (vec!["search", &dump, "--as", "hex", "123"], "pairs of hexadecimal digits"),
        (vec!["capture", "--mem", &dump, "-o", "x.kwab"], "not an ELF core"),
        (vec!["capture", "-o", "x.kwab"], "--qmp"),
    ] {
        let output = run(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains(words), "{arguments:?}: {}", text(&output.stderr));
    }
}
