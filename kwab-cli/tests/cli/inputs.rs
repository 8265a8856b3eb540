//! `kwab import` reads logs as they are kept, and refuses everything else by its name.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::common::{folder, imported, kwab, log, run, text};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use lzma_rust2::{XzOptions, XzWriter};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).expect("a preset is sound");
    encoder.write_all(bytes).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

fn utf16(bytes: &[u8], big: bool, mark: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let units = mark.then_some(0xfeff).into_iter().chain(text.encode_utf16());
    units.flat_map(|unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

/// The dumps that a log becomes, as exported JSON without the name of the file.
fn records(folder: &Path, name: &str) -> String {
    let output = run(folder, &["import", "-f", name, "-o", "out.kwab"]);
    assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
    let events = run(folder, &["export", "out.kwab", "--to", "jsonl", "--section", "events,log,cause"]);
    assert!(events.stdout.len() > 1000, "{name}");
    text(&events.stdout)
}

#[test]
fn a_log_is_the_same_plain_compressed_and_in_utf16() {
    let folder = folder();
    let at = folder.path();
    let plain = fs::read(log("kevlar-panic-socket")).expect("the log is there");
    let half = plain.len() / 2;
    let members = [gzip(&plain[..half]), gzip(&plain[half..])].concat();
    let skipped = [&b"\x50\x2a\x4d\x18\x04\0\0\0skip"[..], &zstd(&plain[half..])].concat();
    let frames = [zstd(&plain[..half]), skipped].concat();
    fs::write(at.join("plain.log"), &plain).expect("written");
    let wanted = records(at, "plain.log");
    for (name, bytes) in [
        ("x.gz", gzip(&plain)),
        ("two.gz", members),
        ("x.zz", zlib(&plain)),
        ("x.zst", zstd(&plain)),
        ("x.xz", xz(&plain)),
        ("two.xz", [xz(&plain[..half]), xz(&plain[half..])].concat()),
        ("two.zst", frames),
        ("le.log", utf16(&plain, false, true)),
        ("be.log", utf16(&plain, true, true)),
        ("bare-le.log", utf16(&plain, false, false)),
        ("bare-be.log", utf16(&plain, true, false)),
        ("le.log.gz", gzip(&utf16(&plain, false, true))),
    ] {
        fs::write(at.join(name), &bytes).expect("written");
        assert!(records(at, name) == wanted, "{name} gives other records");
        let piped = kwab(at).args(["import", "-", "-o", "-"]).write_stdin(bytes).output().expect("runs");
        assert_eq!(piped.status.code(), Some(0), "{name}: {}", text(&piped.stderr));
    }
}

#[test]
fn a_cut_or_damaged_compressed_log_gives_what_came_before_and_says_so() {
    let folder = folder();
    let at = folder.path();
    let plain: Vec<u8> = (0..400_000)
        .flat_map(|n: u32| format!("[ {n:9}.000000] line {}\n", n.wrapping_mul(0x9e37_79b9)).into_bytes())
        .collect();
    for (name, packed) in [("x.gz", gzip(&plain)), ("x.zst", zstd(&plain)), ("x.xz", xz(&plain))] {
        let mut flipped = packed.clone();
        flipped[packed.len() / 2] ^= 0x40;
        for (what, bytes) in [("cut", &packed[..packed.len() * 3 / 4]), ("flipped", &flipped[..])] {
            fs::write(at.join(name), bytes).expect("written");
            let output = run(at, &["import", "-f", name, "-o", "out.kwab", "--json"]);
            assert_eq!(output.status.code(), Some(3), "{name} {what}: {}", text(&output.stderr));
            assert!(text(&output.stderr).contains("data ends at byte"), "{}", text(&output.stderr));
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert!(report["lines"].as_u64() > Some(100_000), "{name} {what}: {}", report["lines"]);
            assert!(report["cut"].is_string());
        }
    }
}

#[test]
fn a_bomb_ends_at_its_limit() {
    let folder = folder();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let block = vec![b'x'; 1 << 20];
    (0..128).try_for_each(|_| encoder.write_all(&block)).expect("a vector takes everything");
    let bomb = encoder.finish().expect("a vector takes everything");
    fs::write(folder.path().join("bomb.gz"), &bomb).expect("written");
    let output = run(folder.path(), &["import", "bomb.gz", "--json", "--dry-run"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("it unpacks to more than"), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["bytes"].as_u64() < Some(100 << 20), "{}", report["bytes"]);
    // Wrapped once more it is refused at once.
    fs::write(folder.path().join("twice.gz"), gzip(&bomb)).expect("written");
    let output = run(folder.path(), &["import", "twice.gz"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("gzip data, and in it gzip data"), "{}", text(&output.stderr));
}

#[test]
fn what_is_not_a_log_is_refused_by_its_name() {
    let folder = folder();
    let at = folder.path();
    let dump = imported(at, "kevlar-pipe-profile");
    let bytes = fs::read(at.join(&dump)).expect("there");
    let elf = |kind: u8| [&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..], &[kind, 0], &[0; 100]].concat();
    let mut tar = vec![b'a'; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let noise: Vec<u8> = (0..9000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x80).collect();
    for (name, bytes, telling) in [
        ("empty", vec![], "is empty: 0 bytes; nothing was written to it"),
        ("core", elf(4), "is not an ELF core of x86-64: it is an ELF file of another kind or machine"),
        ("vmlinux", elf(2), "is an ELF image, not a log; --symbols takes it"),
        ("noise", noise, "% of its beginning is text), not a log; strings FILE | kwab import - reads the text in it"),
        ("zeros", vec![0; 5000], "is binary data"),
        ("channel", vec![0; 8192], "is a dump channel without a dump"),
        ("dump", bytes.clone(), "is a kwab dump already, not a log; kwab inspect shows it"),
        ("dump.gz", gzip(&bytes), "is gzip data, and in it a kwab dump already, not a log; gzip -dc FILE unpacks it"),
        ("hollow.gz", gzip(b""), "is gzip data without content"),
        ("x.xz", b"\xfd7zXZ\0\0\0".to_vec(), "is xz data without content"),
        ("dump.xz", xz(&bytes), "is xz data, and in it a kwab dump already, not a log; xz -dc FILE unpacks it"),
        ("x.bz2", b"BZh91AY".to_vec(), "is bzip2 data"),
        ("x.tar", tar, "is a tar archive"),
        ("x.cpio", b"070701000".to_vec(), "is an initramfs, not a log; --backing and --symbols take it"),
        ("x.qcow2", b"QFI\xfb\0\0\0\x03".to_vec(), "is a qcow2 disk image"),
    ] {
        fs::write(at.join(name), &bytes).expect("written");
        for from_pipe in [false, true] {
            if from_pipe && name == "channel" {
                continue;
            }
            let output = if from_pipe {
                kwab(at).args(["import", "-", "-o", "x.kwab"]).write_stdin(bytes.clone()).output().expect("runs")
            } else {
                run(at, &["import", name, "-o", "x.kwab"])
            };
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
            assert!(stderr.contains(telling) && stderr.lines().count() == 1, "{name}: {stderr}");
            assert!(!at.join("x.kwab").exists(), "{name}: something was written");
        }
    }
    let output = run(at, &["inspect", "dump.gz"]);
    assert!(
        text(&output.stderr).contains("is gzip data, not a dump; gzip -dc FILE | kwab inspect - reads it"),
        "{}",
        text(&output.stderr)
    );
    let output = run(at, &["inspect", "core"]);
    assert!(text(&output.stderr).contains("is not an ELF core of x86-64"), "{}", text(&output.stderr));
}

#[test]
fn the_log_of_a_kernel_that_boot_moved_finds_the_code_of_its_image() {
    let folder = folder();
    let at = folder.path();
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/unwind/chain-cfi.elf");
    let image = image.to_str().expect("a path in text");
    let id = "9458ce9522815ff907e47a8f3feedb9b16848448";
    // `middle` of the image calls `innermost`, which is linked at 0x401000 and at 0xffffffff80001000 after the move.
    let call = "call 0xffffffff80001000";
    let panic = format!(
        "[PANIC] CPU=0 at src/main.rs:7\nout of luck\nPID=1 TID=1 comm=init\n\
         RIP=ffffffff80001010 RSP=ffffc08000017f00 RBP=ffffc08000017f40\n\
         Kernel Offset: 0xffffffff7fc00000 from 0x401000, build-id {id}\n\
         0: ffffffff80001010\n1: ffffffff80001060\n"
    );
    fs::write(at.join("moved.log"), &panic).expect("written");
    assert!(run(at, &["import", "moved.log", "-o", "moved.kwab"]).status.success());
    let page = text(&run(at, &["inspect", "moved.kwab", "--symbols", image]).stdout);
    assert!(page.contains(call), "{page}");
    assert!(page.contains("0xffffffff7fc00000") && page.contains(id), "{page}");
    // Without the line nothing is known at these addresses.
    let fixed: Vec<&str> = panic.lines().filter(|line| !line.starts_with("Kernel")).collect();
    fs::write(at.join("fixed.log"), fixed.join("\n")).expect("written");
    assert!(run(at, &["import", "fixed.log", "-o", "fixed.kwab"]).status.success());
    let page = text(&run(at, &["inspect", "fixed.kwab", "--symbols", image]).stdout);
    assert!(!page.contains(call), "{page}");
}

#[test]
fn the_kernel_of_a_dialect_file_is_read_and_a_wrong_row_is_named() {
    let folder = folder();
    let at = folder.path();
    let log = "lemon OS 3 boots\n*** lemon: core 1 died of bad access at 0xdeadb000\n\
        task 12 \"shell\", pc 0xffffffff80001234\n\
        [0] 0xffffffff80001234 vfs_read+0x24\n[1] 0xffffffff80005678 sys_read+0x18\n*** lemon: halted\n";
    fs::write(at.join("lemon.log"), log).expect("written");
    // The example of the help is the file.
    let help = text(&run(at, &["import", "--help"]).stdout);
    let example = help.split_once("  [[dialect]]").map(|(_, rest)| format!("[[dialect]]{rest}")).expect("an example");
    fs::write(at.join("lemon.toml"), &example).expect("written");
    let unknown = run(at, &["import", "lemon.log", "-o", "before.kwab"]);
    assert!(text(&unknown.stderr).contains("1 boot, 0 events, no crash"), "{}", text(&unknown.stderr));
    let output = run(at, &["import", "lemon.log", "-o", "lemon.kwab", "--dialects", "lemon.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&run(at, &["inspect", "lemon.kwab"]).stdout);
    for said in ["CPU 1", "shell[12]", "bad access", "vfs_read+0x24", "sys_read+0x18", "read as a report of lemon"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // The functions that the row skips are not blamed.
    let skipping = example.replacen("frames = [", "skip = [\"vfs_\"]\n  frames = [", 1);
    fs::write(at.join("skip.toml"), skipping).expect("written");
    for (rows, blamed) in [("lemon.toml", "vfs_read"), ("skip.toml", "sys_read")] {
        assert!(run(at, &["import", "lemon.log", "-f", "-o", "lemon.kwab", "--dialects", rows]).status.success());
        let triage = text(&run(at, &["triage", "lemon.kwab"]).stdout);
        let first = triage.lines().find(|line| line.starts_with(" 1 ")).unwrap_or_default();
        assert!(first.contains(blamed), "{rows}: {triage}");
    }
    fs::write(at.join("wrong.toml"), example.replace("page-fault", "lemonade")).expect("written");
    let output = run(at, &["import", "lemon.log", "--dialects", "wrong.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("wrong.toml: dialect lemon: unknown class \"lemonade\""),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn an_old_report_that_was_printed_is_no_crash_of_this_boot_and_no_banner_hides_one() {
    let banner = |version: &str| format!("[    0.000000] Linux version {version} (cc) #1 SMP\n");
    let report = |version: &str| {
        format!(
            "[   42.000000] BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
             [   42.000003] Oops: 0000 [#1] PREEMPT SMP NOPTI\n\
             [   42.000004] CPU: 0 PID: 999 Comm: evil Not tainted {version} #1\n\
             [   42.000005] RIP: 0010:ext4_readdir+0x12/0x40\n\
             [   42.000006] Call Trace:\n[   42.000007]  iterate_dir+0x9a/0x1a0\n\
             [   42.000008] ---[ end trace 0000000000000000 ]---\n\
             [   42.000009] Kernel panic - not syncing: Fatal exception\n"
        )
    };
    let folder = folder();
    let triaged = |lines: String| {
        fs::write(folder.path().join("a.log"), lines).expect("written");
        let output = run(folder.path(), &["triage", "a.log"]);
        (output.status.code(), text(&output.stdout))
    };
    let (status, said) = triaged(format!("{}$ cat report\n{}", banner("6.1.0-18-amd64"), report("5.4.0-1-amd64")));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("line 3 may announce a death"), "{said}");
    assert!(said.contains("a report of Linux 5.4.0-1-amd64 #1, not of this boot"), "{said}");
    // Who prints another banner hides nothing, and a log without one is believed.
    let two = format!("{}{}{}", banner("6.1.0-18-amd64"), banner("9.9.9"), report("6.1.0-18-amd64"));
    // A line may be cut, or say less of the version.
    let cut = banner("6.1.0-18-amd64") + &report("6.1");
    for lines in [two, cut, report("5.4.0-1-amd64"), banner("5.4.0-1-amd64") + &report("5.4.0-1-amd64")] {
        let (status, said) = triaged(lines);
        assert!(status == Some(1) && said.starts_with("kernel oops") && said.contains("running evil[999]"), "{said}");
    }
}

#[test]
fn a_reader_of_a_fifo_says_that_it_waits_for_a_writer() {
    use std::io::{BufRead as _, BufReader, Read as _};
    let folder = folder();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("console")).status().expect("runs");
    assert!(made.success());
    for arguments in [&["console"][..], &["inspect", "console"], &["import", "console", "-o", "a.kwab", "--force"]] {
        let mut reader = std::process::Command::new(assert_cmd::cargo::cargo_bin("kwab"))
            .current_dir(folder.path())
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("kwab runs");
        let mut stderr = BufReader::new(reader.stderr.take().expect("a pipe"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("a line");
        assert_eq!(said, "kwab: console: a FIFO that no program writes; waiting for one\n", "{arguments:?}");
        // A writer comes, and what it writes is read as from any other file.
        let bytes = fs::read(log("kevlar-panic-socket")).expect("read");
        fs::write(folder.path().join("console"), bytes).expect("written");
        let mut rest = String::new();
        reader.stdout.take().expect("a pipe").read_to_string(&mut rest).expect("text");
        stderr.read_to_string(&mut rest).expect("text");
        assert!(reader.wait().expect("ends").code().is_some_and(|code| code <= 1), "{arguments:?}: {rest}");
        assert!(rest.contains("page fault"), "{arguments:?}: {rest}");
    }
}
