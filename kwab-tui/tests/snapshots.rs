//! Every view on real dumps, a dump with everything, an empty one and each kind of damage, at three sizes, cell by
//! cell.
//!
//! A snapshot holds whole buffers without loss and stays small: lines that are those of the dump with everything, in
//! the same view at the same size, are counted, as are empty ones; the styles of a buffer are a number behind its name.

mod common;

use common::{Driven, folder, text_of};

/// The keys that lead to every view of a crash.
const VIEWS: &[(&str, &[&str])] = &[
    ("triage", &["1"]),
    ("backtrace", &["2", "j"]),
    ("registers", &["3"]),
    ("syscalls", &["4"]),
    ("timeline", &["5"]),
    ("mappings", &["6"]),
    ("pages", &["v"]),
    ("audit", &["v"]),
    ("checks", &["v"]),
    ("hex", &["7"]),
    ("tasks", &["8"]),
    ("log", &["9"]),
    ("integrity", &["0"]),
    ("locks", &["L"]),
    ("profile", &["P"]),
    ("spans", &["v"]),
    ("marks", &["'"]),
];

const SIZES: [(u16, u16); 3] = [(40, 10), (80, 24), (200, 60)];

/// A screen: its name, its lines, and its styles as a number.
struct Screen {
    name: &'static str,
    lines: Vec<String>,
    styles: u64,
}

fn screen(name: &'static str, driven: &Driven) -> Screen {
    let buffer = driven.buffer();
    let styles = buffer.content().iter().map(|cell| format!("{:?}", cell.style()));
    // FNV-1a: the same number on every machine and with every compiler.
    let sum = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let styles = styles.fold(0xcbf2_9ce4_8422_2325, |seen, style| style.bytes().fold(seen, sum)) & 0xff_ffff;
    Screen { name, lines: text_of(&buffer).lines().map(str::to_string).collect(), styles }
}

fn screens(dump: &str, size: (u16, u16)) -> Vec<Screen> {
    folder();
    let mut driven = Driven::new(format!("crashes/{dump}.kwab"), size);
    let mut screens = Vec::new();
    for (name, keys) in VIEWS {
        driven.keys(keys);
        screens.push(screen(name, &driven));
    }
    screens
}

/// Screens as text; lines that the same screen of `known` has too are counted.
fn written(screens: &[Screen], known: &[Screen]) -> String {
    let mut out = String::new();
    for (at, screen) in screens.iter().enumerate() {
        out.push_str(&format!("=== {} (styles {:06x})\n", screen.name, screen.styles));
        let base = known.get(at).map_or(&[] as &[String], |known| known.lines.as_slice());
        let mut runs: Vec<(Option<&str>, usize)> = Vec::new();
        for (number, line) in screen.lines.iter().enumerate() {
            let kind = match line.as_str() {
                "" => Some("empty"),
                line if base.get(number).is_some_and(|base| base == line) => Some("as rich"),
                _ => None,
            };
            match runs.last_mut() {
                Some((last, count)) if kind.is_some() && *last == kind => *count += 1,
                _ => runs.push((kind, 1)),
            }
        }
        let mut lines = screen.lines.iter();
        for (kind, count) in runs {
            let shown: Vec<&String> = lines.by_ref().take(count).collect();
            match kind {
                Some(kind) if count > 1 => out.push_str(&format!("    ({count} lines {kind})\n")),
                _ => shown.into_iter().for_each(|line| out.push_str(&format!("{line}\n"))),
            }
        }
    }
    out
}

fn at_every_size(dump: &str) {
    for size in SIZES {
        let known = if dump == "rich" { Vec::new() } else { screens("rich", size) };
        let text = written(&screens(dump, size), &known);
        insta::assert_snapshot!(format!("{dump}_{}x{}", size.0, size.1), text);
    }
}

macro_rules! snapshots {
    ($($test:ident: $dump:literal;)*) => {$(
        #[test]
        fn $test() {
            at_every_size($dump);
        }
    )*};
}

snapshots! {
    a_dump_with_everything: "rich";
    a_kernel_panic_from_a_log: "kevlar-panic-socket";
    a_program_that_died: "kevlar-segv-children";
    a_recording_without_a_crash: "kevlar-pipe-profile";
    a_linux_panic: "linux-6.1-sysrq-panic";
    a_null_dereference_of_our_kernel: "null-dereference";
    a_poisoned_page_cache_of_our_kernel: "cache-writable";
    an_empty_dump: "empty";
    a_dump_that_was_cut: "damaged-cut";
    a_dump_with_a_wrong_bit: "damaged-bit";
    a_dump_with_a_hole: "damaged-hole";
    a_text_that_is_no_dump: "damaged-text";
    a_file_of_no_bytes: "damaged-nothing";
}

#[test]
fn two_crashes_side_by_side() {
    folder();
    for size in SIZES {
        let mut driven = Driven::new("crashes", size);
        for (name, keys) in [("rich", &["enter", "c"][..]), ("segv-children", &["enter", "c"])] {
            driven.keys(&["g", "/", "ctrl-u"]).text(&format!("file:{name}")).keys(keys);
        }
        let mut shown = vec![screen("facts", &driven)];
        for (name, keys) in VIEWS.iter().filter(|(name, _)| *name != "marks") {
            driven.keys(keys);
            shown.push(screen(name, &driven));
        }
        insta::assert_snapshot!(format!("compare_{}x{}", size.0, size.1), written(&shown, &[]));
    }
}

#[test]
fn the_list_of_dumps_at_every_size() {
    folder();
    for size in SIZES {
        let driven = Driven::new("crashes", size);
        insta::assert_snapshot!(format!("catalogue_{}x{}", size.0, size.1), written(&[screen("dumps", &driven)], &[]));
    }
}

#[test]
fn overlays_at_every_size() {
    folder();
    for size in SIZES {
        let mut driven = Driven::new("crashes/rich.kwab", size);
        let mut shown = Vec::new();
        for (name, keys) in [
            ("help", &["?"][..]),
            ("palette", &["esc", ":", "z", "o"]),
            ("copy", &["esc", "6", "y"]),
            ("filter", &["esc", "5", "/", "p", "i", "d", ":", "1", "2", "1"]),
        ] {
            driven.keys(keys);
            shown.push(screen(name, &driven));
        }
        insta::assert_snapshot!(format!("overlays_{}x{}", size.0, size.1), written(&shown, &[]));
    }
}
