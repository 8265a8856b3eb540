//! Images of a few hundred kilobytes whose tables point at the same bytes over and over: what is read of them stays in
//! proportion to the file, and the rest of an answer is there.

use crate::common;
use crate::common::peak;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{folder, stdout_of};

/// The build-id of the program of the sample core.
const ID: &str = "d33f473559685f9e1b83c3019c581d0a6b06f136";
/// Where its code lies; the crash is at 0x400155.
const CODE: u64 = 0x40_0000;
const CODE_LENGTH: u64 = 0x9_0000;
/// Bytes of an image, about.
const LENGTH: usize = 200_000;

/// A section: name, type, flags, bytes.
type Section = (&'static str, u32, u64, Vec<u8>);

const PROGBITS: u32 = 1;
const PACKED: u64 = 0x800;

/// An ELF file of the sample's build-id with these sections.
fn image(sections: Vec<Section>) -> Vec<u8> {
    let id: Vec<u8> = (0..20).map(|at| u8::from_str_radix(&ID[2 * at..][..2], 16).expect("digits")).collect();
    let note = [&words(&[4, 20, 3])[..], b"GNU\0", &id].concat();
    let mut all: Vec<Section> = vec![("", 0, 0, Vec::new()), (".text", 8, 6, Vec::new()), (".note", 7, 2, note)];
    all.extend(sections);
    let names: Vec<u8> = all.iter().flat_map(|section| [section.0.as_bytes(), b"\0"].concat()).collect();
    all.push(("", 3, 0, [names, vec![0]].concat()));
    let first = 64 + 56;
    let (mut body, mut headers, mut name) = (Vec::new(), Vec::new(), 0);
    for (number, (text, kind, flags, bytes)) in all.iter().enumerate() {
        body.resize(body.len().next_multiple_of(8), 0);
        let (at, symbols) = ((first + body.len()) as u64, *kind == 2);
        let address = if *flags & 2 == 0 { 0 } else { CODE };
        let size = if *kind == 8 { CODE_LENGTH } else { bytes.len() as u64 };
        headers.extend(words(&[name, *kind]));
        headers.extend([*flags, address, at, size].map(u64::to_le_bytes).concat());
        headers.extend(words(&[if symbols { number as u32 + 1 } else { 0 }, u32::from(symbols)]));
        headers.extend([1, if symbols { 24 } else { 0 }].map(u64::to_le_bytes).concat());
        body.extend(bytes);
        name += text.len() as u32 + 1;
    }
    let table = (first + body.len()) as u64;
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2_u16, 62].map(u16::to_le_bytes).concat());
    file.extend(words(&[1]));
    file.extend([CODE, 64, table].map(u64::to_le_bytes).concat());
    file.extend(words(&[0]));
    let counts = [64, 56, 1, 64, all.len() as u16, all.len() as u16 - 1];
    file.extend(counts.map(u16::to_le_bytes).concat());
    file.extend(words(&[1, 5]));
    file.extend([0, CODE, CODE, first as u64, CODE_LENGTH, 4096].map(u64::to_le_bytes).concat());
    [file, body, headers].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A declaration of an abbreviation: code, tag, whether it has children, names and forms.
fn abbreviation(code: u8, tag: u8, children: bool, attributes: &[(u8, u8)]) -> Vec<u8> {
    let mut out = vec![code, tag, u8::from(children)];
    out.extend(attributes.iter().flat_map(|(name, form)| [*name, *form]));
    out.extend([0, 0]);
    out
}

/// A unit of DWARF 4 with a root for the code, its line program at 0, and these entries below.
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut body = 4_u16.to_le_bytes().to_vec();
    body.extend(words(&[0]));
    body.extend([8, 1]);
    body.extend(words(&[0]));
    body.extend(CODE.to_le_bytes());
    body.extend(words(&[CODE_LENGTH as u32]));
    body.extend(entries);
    body.push(0);
    [words(&[body.len() as u32]), body].concat()
}

/// Bytes of a unit before its entries.
const ROOT: u32 = 28;

/// The abbreviation of the root: `DW_AT_stmt_list`, `low_pc`, `high_pc`.
fn root() -> Vec<u8> {
    abbreviation(1, 0x11, true, &[(0x10, 0x17), (0x11, 1), (0x12, 6)])
}

/// A line program of version 4 with these files and operations.
fn lines(files: usize, operations: &[u8]) -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0];
    (0..files).for_each(|_| header.extend(b"f\0\0\0\0"));
    header.push(0);
    let mut body = 4_u16.to_le_bytes().to_vec();
    body.extend(words(&[header.len() as u32]));
    body.extend(header);
    body.extend([0, 9, 2]);
    body.extend(CODE.to_le_bytes());
    body.extend(operations);
    body.extend([0, 1, 1]);
    [words(&[body.len() as u32]), body].concat()
}

/// An entry with code: a number, the first address, the length, and what more it has.
fn function(code: u8, number: usize, more: &[u8]) -> Vec<u8> {
    [&[code], &(CODE + 16 * number as u64).to_le_bytes()[..], &words(&[16]), more].concat()
}

fn dwarf(info: Vec<u8>, abbreviations: &[Vec<u8>], lines: Vec<u8>, more: Option<Section>) -> Vec<u8> {
    let table = [root(), abbreviations.concat(), vec![0]].concat();
    let sections = [(".debug_info", info), (".debug_abbrev", table), (".debug_line", lines)];
    image(sections.map(|(name, bytes)| (name, PROGBITS, 0, bytes)).into_iter().chain(more).collect())
}

/// The bytes as a packed section has them, and the claim of `claimed` bytes.
fn packed(bytes: &[u8], claimed: u64) -> Vec<u8> {
    let header = [&words(&[1, 0])[..], &claimed.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    let mut encoder = flate2::write::ZlibEncoder::new(header, flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// A symbol table over a string table; symbols begin at these places of it.
fn symbols(names: impl Iterator<Item = usize>, strings: Vec<u8>) -> Vec<u8> {
    let mut table = vec![0; 24];
    for (number, name) in names.enumerate() {
        table.extend(words(&[name as u32]));
        table.extend([0x12, 0, 1, 0]);
        table.extend([CODE + 16 * number as u64, 16].map(u64::to_le_bytes).concat());
    }
    image(vec![(".symtab", 2, 0, table), (".strtab", 3, 0, strings)])
}

/// A mangled name (Rust's symbol mangling, v0) of 300 letters, whose every tuple holds the one before four times.
fn doubling() -> String {
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let digit = |number: usize| char::from(DIGITS[number % 62]);
    let mut name = "_RINvC1a1fTuuuuE".to_owned();
    let mut last = 8;
    while name.len() < 300 {
        let own = name.len() - 2;
        let number = last - 1;
        let digits =
            if number < 62 { format!("{}", digit(number)) } else { format!("{}{}", digit(number / 62), digit(number)) };
        name += &format!("T{}E", format!("B{digits}_").repeat(4));
        last = own;
    }
    name + "E"
}

fn images() -> Vec<(&'static str, Vec<u8>)> {
    let half = LENGTH / 2;
    let strings = |bytes: Vec<u8>| Some((".debug_str", PROGBITS, 0, [b"\0".as_slice(), &bytes, b"\0"].concat()));
    let named = || abbreviation(2, 0x2e, false, &[(0x11, 1), (0x12, 6), (0x6e, 0xe)]);
    let functions = |count: usize, name: fn(usize) -> u32| {
        unit(&(0..count).flat_map(|number| function(2, number, &words(&[name(number)]))).collect::<Vec<u8>>())
    };
    let flags = vec![(0x3f, 0x19); half / 2];
    let list: Vec<u8> = (0..half / 16)
        .flat_map(|number| [32 * number as u64 + 1, 32 * number as u64 + 9])
        .flat_map(u64::to_le_bytes)
        .collect();
    let list = [list, vec![0; 16]].concat();
    let in_ranges = abbreviation(2, 0x2e, false, &[(0x55, 0x17), (3, 8)]);
    let itself = words(&[ROOT]);
    let members =
        [b"\x02S\0\x08\0\0\0".to_vec(), [b"\x03x\0".as_slice(), &itself, b"\0"].concat().repeat(LENGTH / 9), vec![0]];
    let variable = [b"\x04v\0\x09\x03".as_slice(), &CODE.to_le_bytes(), &itself].concat();
    let types = [
        abbreviation(2, 0x13, true, &[(3, 8), (0x0b, 6)]),
        abbreviation(3, 0x0d, false, &[(3, 8), (0x49, 0x13), (0x38, 0xf)]),
        abbreviation(4, 0x34, false, &[(3, 8), (2, 0x18), (0x49, 0x13)]),
    ];
    vec![
        ("units at one line program", dwarf(unit(&[]).repeat(half / 29), &[], lines(1, &vec![0x21; half]), None)),
        ("units at one table of files", dwarf(unit(&[]).repeat(half / 29), &[], lines(half / 5, &[0x21]), None)),
        (
            "units at one table of abbreviations",
            dwarf(
                unit(&[]).repeat(half / 29),
                &vec![abbreviation(9, 0x2e, false, &[(3, 8)]); half / 7],
                lines(1, &[0x21]),
                None,
            ),
        ),
        (
            "entries with an abbreviation of flags",
            dwarf(unit(&vec![2; half]), &[abbreviation(2, 0x2e, false, &flags)], lines(1, &[]), None),
        ),
        (
            "names that are ends of one",
            dwarf(functions(half / 17, |n| 1 + n as u32), &[named()], lines(1, &[]), strings(vec![b'a'; half])),
        ),
        (
            "functions of one long name",
            dwarf(functions(half / 17, |_| 1), &[named()], lines(1, &[]), strings(vec![b'a'; half])),
        ),
        (
            "functions at one list of ranges",
            dwarf(
                unit(&b"\x02\0\0\0\0f\0".repeat(half / 7)),
                &[in_ranges],
                lines(1, &[]),
                Some((".debug_ranges", PROGBITS, 0, list)),
            ),
        ),
        (
            "a structure that holds itself a thousand times",
            dwarf(unit(&[members.concat(), variable].concat()), &types, lines(1, &[]), None),
        ),
    ]
}

/// Images whose sections or names grow when they are unpacked.
fn growing() -> Vec<(&'static str, Vec<u8>)> {
    let zeros = packed(&vec![0; 200 << 20], 200 << 20);
    let doubling = doubling();
    let doubled = doubling.len() + 1;
    vec![
        (
            "sections of zeros",
            image(
                [
                    ".debug_info",
                    ".debug_abbrev",
                    ".debug_line",
                    ".debug_str",
                    ".debug_ranges",
                    ".debug_frame",
                    ".eh_frame",
                ]
                .map(|name| (name, PROGBITS, PACKED, zeros.clone()))
                .into(),
            ),
        ),
        ("a claim of 2^60 bytes", image(vec![(".debug_info", PROGBITS, PACKED, packed(&[0; 100], 1 << 60))])),
        (
            "names that double themselves",
            symbols(
                (0..LENGTH / (24 + doubled)).map(|at| 1 + at * doubled),
                [b"\0".as_slice(), (doubling + "\0").repeat(LENGTH / (24 + doubled)).as_bytes()].concat(),
            ),
        ),
    ]
}

fn seconds_of(folder: &Path, arguments: &[&str]) -> (Option<i32>, u64, Duration) {
    let began = Instant::now();
    let (status, peak) = peak::of(folder, arguments);
    (status, peak, began.elapsed())
}

#[test]
fn an_image_costs_in_proportion_to_its_file() {
    /// Built without optimisation, beside other tests.
    const LONGEST: Duration = Duration::from_secs(20);
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/exchange/process.core.gz");
    let mut over = Vec::new();
    for (name, bytes) in images().into_iter().chain(growing()) {
        let folder = folder();
        let at = folder.path();
        stdout_of(at, &["import", &core.to_string_lossy(), "-o", "core.kwab"]);
        fs::write(at.join("image"), &bytes).expect("written");
        let promised = (64 << 20) + 40 * bytes.len() as u64;
        for arguments in [
            &["inspect", "core.kwab", "--symbols", "image"][..],
            &["print", "core.kwab", "--symbols", "image"],
            &["print", "core.kwab", "v", "--symbols", "image"],
            &["symbols", "add", "image"],
            &["symbols", "slim", "core.kwab", "--symbols", "image"],
        ] {
            let (status, peak, took) = seconds_of(at, arguments);
            assert!(arguments[1] != "add" || status == Some(0), "{name}: the image is not one");
            println!("{name}, {} bytes: {} MiB, {took:?}, {status:?}: {arguments:?}", bytes.len(), peak >> 20);
            if peak > promised || took > LONGEST || !matches!(status, Some(0..=3)) {
                over.push(format!(
                    "{name}: {} MiB of {}, {took:?}, {status:?}: {arguments:?}",
                    peak >> 20,
                    promised >> 20
                ));
            }
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}

#[test]
fn the_sound_units_before_a_greedy_one_are_read() {
    let folder = folder();
    let at = folder.path();
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/exchange/process.core.gz");
    stdout_of(at, &["import", &core.to_string_lossy(), "-o", "core.kwab"]);
    let named = abbreviation(2, 0x2e, false, &[(0x11, 1), (0x12, 6), (3, 8)]);
    let list: Vec<u8> = (0..4000_u64)
        .flat_map(|number| [32 * number + 0x1000, 32 * number + 0x1008])
        .flat_map(u64::to_le_bytes)
        .collect();
    let in_ranges = abbreviation(3, 0x2e, false, &[(0x55, 0x17), (3, 8)]);
    let sound = unit(&function(2, 0x15, b"sound\0"));
    let greedy = unit(&b"\x03\0\0\0\0f\0".repeat(10_000));
    let ranges = Some((".debug_ranges", PROGBITS, 0, [list, vec![0; 16]].concat()));
    fs::write(at.join("image"), dwarf([sound, greedy].concat(), &[named, in_ranges], lines(1, &[]), ranges))
        .expect("written");
    let said =
        common::text(&common::run(at, &["inspect", "core.kwab", "--section", "bt", "--symbols", "image"]).stdout);
    assert!(said.contains("sound"), "{said}");
    let all = common::run(at, &["inspect", "core.kwab", "--symbols", "image"]);
    let all = common::text(&all.stdout) + &common::text(&all.stderr);
    assert!(all.contains("1 unit of DWARF"), "{all}");
}

#[test]
fn a_unit_that_ends_in_the_middle_of_a_function_leaves_the_addresses_before_it() {
    let folder = folder();
    let at = folder.path();
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/exchange/process.core.gz");
    stdout_of(at, &["import", &core.to_string_lossy(), "-o", "core.kwab"]);
    let named = abbreviation(2, 0x2e, false, &[(0x11, 1), (0x12, 6), (3, 8)]);
    let in_ranges = abbreviation(3, 0x2e, false, &[(0x55, 0x17), (3, 8)]);
    let entries = [function(2, 0x15, b"sound\0"), b"\x03\0\0\0\0f\0".to_vec()].concat();
    // A range of the crash, and the beginning of another.
    let list = [[0x150_u64, 0x160].map(u64::to_le_bytes).concat(), vec![1, 0, 0]].concat();
    let ranges = Some((".debug_ranges", PROGBITS, 0, list));
    fs::write(at.join("image"), dwarf(unit(&entries), &[named, in_ranges], lines(1, &[]), ranges)).expect("written");
    let said = common::run(at, &["inspect", "core.kwab", "--section", "bt", "--symbols", "image"]);
    let said = common::text(&said.stdout) + &common::text(&said.stderr);
    assert!(said.contains("sound") && !said.contains("damaged"), "{said}");
}
