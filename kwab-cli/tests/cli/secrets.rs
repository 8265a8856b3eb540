//! Nothing of a planted secret is in what `kwab redact` and `kwab pack --redact` make, whatever form the input had: a
//! dump, a log with the dump as armoured lines and parity, the same with noise, the import of both.

use std::collections::HashSet;
use std::path::Path;

use crate::common::hostile::dump_of;
use crate::common::{folder, run, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kwab::format::parity::{Parity, ParitySink};
use kwab::format::sink::Sink;
use kwab::format::{DumpId, Item, Reader};

/// What stands in every text of the dump; no name of a function, a source file or a release, which `kernel` keeps.
const SECRET: &[u8] = b"&Tr0ub4dor &3: correct-horse-battery <staple@example.org> \xf0\x9f\x94\x91";
/// Bytes of it that count as found: fewer occur by chance.
const FOUND: usize = 6;

/// Every form in which a part of the secret counts as found.
fn forms() -> Vec<HashSet<Vec<u8>>> {
    let parts = || SECRET.windows(FOUND);
    let wide = |part: &[u8]| part.iter().flat_map(|byte| [*byte, 0]).collect::<Vec<u8>>();
    let digits = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    vec![
        parts().map(<[u8]>::to_vec).collect(),
        parts().map(|part| part.iter().rev().copied().collect()).collect(),
        parts().map(wide).collect(),
        parts().map(|part| digits(part).into_bytes()).collect(),
        parts().map(|part| digits(part).to_uppercase().into_bytes()).collect(),
        SECRET.windows(9).map(|part| STANDARD.encode(part).into_bytes()).collect(),
        parts().map(|part| spelled(part, "%02x ").into_bytes()).collect(),
        parts().map(|part| spelled(part, "0x%02x ").into_bytes()).collect(),
        parts().map(|part| spelled(part, "%d ").into_bytes()).collect(),
    ]
}

/// Bytes as numbers in a row.
fn spelled(bytes: &[u8], form: &str) -> String {
    let one = |byte: &u8| form.replace("%02x", &format!("{byte:02x}")).replace("%d", &byte.to_string());
    bytes.iter().map(one).collect::<String>().trim_end().to_owned()
}

/// Fails when a part of the secret is in the bytes of a file, or in what its sections unpack to.
fn judge(at: &Path, name: &str, what: &str) {
    let file = std::fs::read(at.join(name)).expect("written");
    let unpacked = run(at, &["export", name, "--to", "jsonl"]).stdout;
    assert!(unpacked.len() > 1000, "{what}: {}", text(&unpacked));
    for (bytes, of) in [(&unpacked, "its records"), (&file, "the file")] {
        for forms in forms() {
            let length = forms.iter().next().map_or(1, Vec::len);
            let found = bytes.windows(length).position(|part| forms.contains(part));
            assert_eq!(found.map(|from| text(&bytes[from.saturating_sub(200)..from + length])), None, "{what}: {of}");
        }
    }
}

/// The dump on a console whose lines tell the secret too.
fn console(dump: &[u8], noise: u64) -> Vec<u8> {
    let mut log = b"Linux version 6.1.0\n[    1.000000] init runs\n".to_vec();
    let tell = |log: &mut Vec<u8>| {
        for form in [SECRET.to_vec(), STANDARD.encode(SECRET).into_bytes()] {
            log.extend_from_slice(&[b"[    2.000000] login: ", form.as_slice(), b"\n"].concat());
        }
    };
    tell(&mut log);
    let (from, mut state) = (log.len(), Parity::new());
    let mut sink = ParitySink::new(DumpId(0x5ec4e7), &mut state, |line: &[u8]| {
        log.extend_from_slice(line);
        true
    });
    let reader = Reader::new(dump).expect("a dump");
    let sections = reader.sections().filter_map(|item| match item {
        Item::Section(section) => Some(section.offset..section.offset + section.header.total_len() as usize),
        Item::Defect(_) => None,
    });
    for range in std::iter::once(0..48).chain(sections) {
        sink.write(&dump[range]).expect("printed");
    }
    sink.flush().expect("printed");
    let every = if noise == 0 { usize::MAX } else { 211 };
    log[from..].iter_mut().step_by(every).skip(1).for_each(|byte| *byte ^= noise as u8);
    tell(&mut log);
    log
}

#[test]
fn of_a_secret_in_every_text_of_a_dump_nothing_is_in_what_is_shared() {
    let folder = folder();
    let at = folder.path();
    let dump = dump_of(SECRET, 0);
    std::fs::write(at.join("dump.kwab"), &dump).expect("written");
    std::fs::write(at.join("serial.log"), console(&dump, 0)).expect("written");
    std::fs::write(at.join("noisy.log"), console(&dump, 4)).expect("written");
    for log in ["serial", "noisy"] {
        let output = run(at, &["import", &format!("{log}.log"), "-o", &format!("{log}.kwab")]);
        let said = text(&output.stderr);
        assert!(said.contains("1 panic") && said.contains("mended, 0 B missing") == (log == "noisy"), "{said}");
    }
    for input in ["dump.kwab", "serial.log", "noisy.log", "serial.kwab", "noisy.kwab"] {
        let whole = std::fs::read(at.join(input)).expect("there");
        let is_log = input.ends_with(".log");
        assert!(is_log || whole.windows(SECRET.len()).any(|part| part == SECRET), "{input} tells it");
        for policy in ["kernel", "structure"] {
            let what = format!("{input}, {policy}");
            let output = run(at, &["redact", input, "-o", "shared.kwab", "--force", "--keep", policy, "--json"]);
            assert!(output.status.code().is_some_and(|code| code != 2), "{what}: {}", text(&output.stderr));
            judge(at, "shared.kwab", &what);
            let output = run(at, &["pack", input, "-o", "shared.zip", "--force", "--redact", policy]);
            assert!(output.status.code().is_some_and(|code| code != 2), "{what}: {}", text(&output.stderr));
            let _ = std::fs::remove_dir_all(at.join("opened"));
            assert_eq!(run(at, &["open", "shared.zip", "-o", "opened"]).status.code(), Some(0), "{what}");
            judge(at, "opened/dump.kwab", &format!("{what}, packed"));
            let list = std::fs::read(at.join("opened/kwab-pack.json")).expect("a list");
            assert!(!list.windows(FOUND).any(|part| SECRET.windows(FOUND).any(|of| of == part)), "{what}: the list");
        }
    }
}

/// The secret as programs write it: in base64, in digits, in pieces. A log tells each form in a line of its own, in two
/// lines, and in the message of the panic.
#[test]
fn of_a_secret_that_is_encoded_or_split_in_a_log_nothing_is_in_what_is_shared() {
    let folder = folder();
    let at = folder.path();
    let mut tellings = vec![String::from_utf8_lossy(SECRET).into_owned(), STANDARD.encode(SECRET)];
    tellings.extend(["%02x", "%02x ", "0x%02x ", "%d ", "%d,", "%%02x", "\\x%02x"].map(|form| spelled(SECRET, form)));
    tellings.push(text(&SECRET.iter().rev().copied().collect::<Vec<_>>()));
    for telling in &tellings {
        let half = telling.floor_char_boundary(telling.len() / 2);
        let (first, second) = telling.split_at(half);
        let lines = [
            "Linux version 6.1.0 (joe@build) (gcc-12) #1 SMP".to_string(),
            format!("Command line: console=ttyS0 token={telling}"),
            format!("login[77]: password {telling}"),
            format!("login[77]: password is {first}"),
            format!("login[77]: {second} it ends"),
            format!("Kernel panic - not syncing: page fault {telling}"),
            "CPU: 0 PID: 1 Comm: init Not tainted 6.1.0 #1".to_string(),
            "Call Trace:".to_string(),
            " panic+0x113/0x31e".to_string(),
            format!("---[ end Kernel panic - not syncing: page fault {telling} ]---"),
        ];
        let stamped = lines.iter().enumerate().map(|(number, line)| format!("[    {number}.000000] {line}\n"));
        std::fs::write(at.join("serial.log"), stamped.collect::<String>()).expect("written");
        let imported = run(at, &["import", "serial.log", "-o", "whole.kwab", "--force"]);
        assert!(text(&imported.stderr).contains("1 panic"), "{}", text(&imported.stderr));
        for policy in ["kernel", "structure"] {
            let output = run(at, &["redact", "whole.kwab", "-o", "shared.kwab", "--force", "--keep", policy]);
            assert_eq!(output.status.code(), Some(0), "{telling}: {}", text(&output.stderr));
            judge(at, "shared.kwab", &format!("{telling}, {policy}"));
        }
        let kept = run(at, &["redact", "whole.kwab", "-o", "shared.kwab", "--force", "--keep", "kernel"]);
        assert_eq!(kept.status.code(), Some(0));
        let page = text(&run(at, &["inspect", "shared.kwab"]).stdout);
        assert!(page.contains("panic+0x113"), "what is not a secret stays: {page}");
    }
}
