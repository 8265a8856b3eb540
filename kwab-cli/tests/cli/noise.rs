//! What a noisy serial line, a lost header or a damaged payload takes of a dump, and what is still delivered.

use std::path::Path;

use crate::common::{folder, run, stdout_of, text};
use kwab::format::armour::ArmourSink;
use kwab::format::parity::{Parity, ParitySink};
use kwab::format::sink::Sink;
use kwab::format::{DumpId, Item, Reader, SectionKind};

/// A dump of a real kernel, as that prints it.
fn console(parity: bool) -> Vec<u8> {
    let dump = std::fs::read("../testing/dumps/null-dereference.kwab").expect("checked in");
    let (mut text, mut state) = (b"Linux version 6.1.0\n[    1.000000] init runs\n".to_vec(), Parity::new());
    let print = |line: &[u8]| {
        text.extend_from_slice(line);
        true
    };
    let reader = Reader::new(&dump).expect("a dump");
    let sections = reader.sections().filter_map(|item| match item {
        Item::Section(section) => Some(section.offset..section.offset + section.header.total_len() as usize),
        Item::Defect(_) => None,
    });
    let write = |sink: &mut dyn Sink| {
        for range in std::iter::once(0..48).chain(sections) {
            sink.write(&dump[range]).expect("printed");
        }
        sink.flush().expect("printed");
    };
    if parity {
        write(&mut ParitySink::new(DumpId(0x5eed), &mut state, print));
    } else {
        write(&mut ArmourSink::new(DumpId(0x5eed), print));
    }
    text
}

/// One byte of a hundred is another one.
fn noisy(text: &[u8], mut state: u64) -> Vec<u8> {
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let begins = text.iter().position(|byte| *byte == b'K').expect("lines");
    let byte =
        |(at, byte): (usize, &u8)| if random() % 100 == 0 && at >= begins { (random() >> 20) as u8 } else { *byte };
    text.iter().enumerate().map(byte).collect()
}

/// The hypotheses of `kwab triage`, in which the name of the file does not stand.
fn hypotheses(at: &Path, name: &str) -> serde_json::Value {
    let output = run(at, &["triage", name, "--json"]);
    let triage: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut all = triage["hypotheses"].as_array().expect("a list").clone();
    for hypothesis in &mut all {
        hypothesis.as_object_mut().expect("an object").remove("next");
    }
    assert!(!all.is_empty(), "{triage}");
    all.into()
}

#[test]
fn one_percent_of_noise_on_the_line_changes_nothing_that_triage_says() {
    let folder = folder();
    let at = folder.path();
    std::fs::write(at.join("clean.log"), console(true)).expect("written");
    stdout_of(at, &["import", "clean.log", "-o", "clean.kwab"]);
    let expected = hypotheses(at, "clean.kwab");
    for seed in 1..=2 {
        std::fs::write(at.join("noisy.log"), noisy(&console(true), seed)).expect("written");
        let imported = run(at, &["import", "noisy.log", "-o", "noisy.kwab", "--force"]);
        let said = text(&imported.stderr);
        assert!(said.contains(" lines mended, 0 B missing"), "{said}");
        assert_eq!(hypotheses(at, "noisy.kwab"), expected, "seed {seed}");
        let page = text(&run(at, &["inspect", "noisy.kwab"]).stdout).to_string();
        assert!(page.contains("are mended by its parity"), "{page}");
        assert!(!page.contains("of the dump the kernel printed are missing"), "{page}");
    }
    // Without parity the same noise costs most of the dump, and the page says so.
    std::fs::write(at.join("bare.log"), noisy(&console(false), 1)).expect("written");
    let imported = run(at, &["import", "bare.log", "-o", "bare.kwab", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&imported.stdout).expect("JSON");
    let printed = &report["dumps"][0]["printed"];
    assert!(printed["mended_lines"] == 0 && printed["missing_bytes"].as_u64() > Some(1000), "{report}");
    let page = text(&run(at, &["inspect", "bare.kwab"]).stdout).to_string();
    assert!(page.contains("of the dump the kernel printed are missing"), "{page}");
}

#[test]
fn a_dump_whose_file_header_and_first_section_header_are_lost_says_the_same_in_triage() {
    let folder = folder();
    let at = folder.path();
    let dump = std::fs::read("../testing/dumps/null-dereference.kwab").expect("checked in");
    std::fs::write(at.join("whole.kwab"), &dump).expect("written");
    let expected = hypotheses(at, "whole.kwab");
    // Only boot id and version are in the file header, and what the first section holds is lost with its header.
    for (name, lost) in [("magic", 0..8), ("header", 0..48), ("both", 0..88)] {
        let mut bent = dump.clone();
        bent[lost].fill(0);
        std::fs::write(at.join("bent.kwab"), bent).expect("written");
        let told = hypotheses(at, "bent.kwab");
        if name == "both" {
            assert_eq!(told[0]["rule"], expected[0]["rule"], "{name}");
        } else {
            assert_eq!(told, expected, "{name}");
        }
    }
}

#[test]
fn records_of_a_section_with_a_wrong_checksum_are_delivered_marked_on_request_and_else_not() {
    let folder = folder();
    let at = folder.path();
    let mut dump = std::fs::read("../testing/dumps/null-dereference.kwab").expect("checked in");
    let reader = Reader::new(&dump).expect("a dump");
    let is_registers = |item: &Item<'_>| matches!(item, Item::Section(it) if it.header.kind == SectionKind::REGISTERS);
    let Some(Item::Section(section)) = reader.sections().find(is_registers) else { panic!("it has registers") };
    let last = section.offset + section.header.total_len() as usize - 5;
    std::fs::write(at.join("whole.kwab"), &dump).expect("written");
    let whole = stdout_of(at, &["cat", "whole.kwab", "registers"]);
    assert_eq!(stdout_of(at, &["cat", "whole.kwab", "registers", "--untrusted"]), whole, "nothing is wrong");
    let before = hypotheses(at, "whole.kwab");
    dump[last] ^= 1;
    std::fs::write(at.join("bent.kwab"), dump).expect("written");
    let without = run(at, &["cat", "bent.kwab", "registers"]);
    let with = run(at, &["cat", "bent.kwab", "registers", "--untrusted"]);
    assert_eq!((without.status.code(), with.status.code()), (Some(2), Some(3)));
    let lines: Vec<serde_json::Value> =
        text(&with.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["untrusted"] == true), "{lines:?}");
    assert_eq!(lines.len(), whole.lines().count(), "a bit of a value is wrong, every record is there");
    assert!(text(&with.stderr).contains("is wrong: what it says is marked"), "{}", text(&with.stderr));
    // What triage concludes from registers is gone with them.
    assert_ne!(hypotheses(at, "bent.kwab"), before);
    assert!(!text(&run(at, &["inspect", "bent.kwab", "--json"]).stdout).contains("untrusted"));
}

#[test]
fn damaged_lines_that_are_mended_do_not_count_for_strict_and_others_do() {
    let folder = folder();
    let at = folder.path();
    for (parity, status) in [(true, 0), (false, 3)] {
        let mut text = console(parity);
        let starts: Vec<usize> =
            text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
        for line in [20, 90, 200] {
            let digit = &mut text[starts[line] + 40];
            *digit = if *digit == b'A' { b'B' } else { b'A' };
        }
        std::fs::write(at.join("damaged.log"), text).expect("written");
        let imported = run(at, &["import", "damaged.log", "-o", "damaged.kwab", "--force", "--strict", "--json"]);
        assert_eq!(imported.status.code(), Some(status), "{}", text_of(&imported));
    }
}

fn text_of(output: &std::process::Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}
