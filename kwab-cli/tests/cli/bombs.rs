//! Dumps of a few kilobytes that claim to be gigabytes: every command stays within its promise and says what it left
//! out.

use crate::common::peak;
use crate::common::{folder, run, text};
use kwab::format::armour::{LINE_LEN, encode_line};
use kwab::format::lz4::{TABLE_LEN, compress};
use kwab::format::section::{SECTION_HEADER_LEN, SECTION_TRAILER_LEN, SectionHeader, seal};
use kwab::format::{BootId, DumpId, FileHeader, Flags, SectionKind};

/// A dump with compressed sections that nothing ends.
struct Bomb(Vec<u8>, u32);

impl Bomb {
    fn new() -> Self {
        Self(FileHeader::new(DumpId(7), BootId([0; 16])).encode().to_vec(), 0)
    }

    /// A section that unpacks to `records`.
    fn packed(mut self, kind: u16, count: u32, records: &[u8]) -> Self {
        let room = SECTION_HEADER_LEN + 4;
        let mut buf = vec![0; room + records.len() / 128 + 4096];
        buf[SECTION_HEADER_LEN..room].copy_from_slice(&(records.len() as u32).to_le_bytes());
        let length = compress(records, &mut buf[room..], &mut [0; TABLE_LEN]).expect("it packs well");
        buf.truncate(room + length);
        buf.resize(room + length + SECTION_TRAILER_LEN, 0);
        let header = SectionHeader {
            kind: SectionKind(kind),
            version: 0,
            flags: Flags::COMPRESSED,
            payload_len: (4 + length) as u32,
            seq: self.1,
            dump_id: DumpId(7),
            position: self.0.len() as u64,
            records: count,
        };
        self.0.extend_from_slice(seal(&mut buf, &header).expect("room"));
        self.1 += 1;
        self
    }
}

/// A record of this kind with `body`.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let [l0, l1, l2, _] = (body.len() as u32).to_le_bytes();
    [&[kind, l0, l1, l2], body].concat()
}

/// Field 31 does not exist in any record here, so this is the field `number`: a run of `length` bytes, all zero.
fn zeros(number: u8, length: u32) -> Vec<u8> {
    let mut field = vec![number << 3 | 6, 255];
    field.extend_from_slice(&length.to_le_bytes());
    field.resize(field.len() + length as usize, 0);
    field
}

/// The most that one section may unpack to, less its record's header.
const WHOLE: u32 = (16 << 20) - 16;

fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let memory = record(8, &zeros(4, WHOLE));
    let many = (0..12).fold(Bomb::new(), |bomb, _| bomb.packed(17, 1, &memory));
    let count = 128 << 10;
    // Every kind of record, with nothing in it.
    let tiny = (1..=50).fold(Bomb::new(), |bomb, kind| {
        let records = record(kind, &[]).repeat(count);
        bomb.packed(if kind == 6 { 2 } else { 15 }, count as u32, &records)
    });
    // Lists of elements that take one byte: mappings of a crash report, rows of profiles, registers, frames.
    let lists = [(25, 9), (25, 10), (25, 8), (27, 1), (27, 2), (29, 1), (29, 2), (7, 8), (7, 9), (26, 3), (35, 3)];
    let lists = lists
        .iter()
        .fold(Bomb::new(), |bomb, (kind, field)| bomb.packed(15, 1, &record(*kind, &zeros(*field, WHOLE / 4))));
    let kinds = (0..24).fold(Bomb::new(), |bomb, number| bomb.packed(number + 1, 1, &record(48, &zeros(2, WHOLE))));
    vec![("many", many.0), ("tiny", tiny.0), ("lists", lists.0), ("kinds", kinds.0)]
}

const COMMANDS: &[&[&str]] = &[
    &["inspect", "bomb.kwab"],
    &["inspect", "--json", "bomb.kwab"],
    &["triage", "bomb.kwab"],
    &["audit-vm", "bomb.kwab"],
    &["verify-pages", "bomb.kwab"],
    &["check", "bomb.kwab"],
    &["list", "bomb.kwab"],
    &["diff", "bomb.kwab", "bomb.kwab"],
    &["diff", "--json", "bomb.kwab", "bomb.kwab"],
    &["report", "bomb.kwab", "-o", "-"],
    &["report", "--md", "bomb.kwab", "-o", "-"],
    &["ci", "bomb.kwab", "--baseline", "known.toml", "--write-baseline"],
    &["ci", "bomb.kwab", "--baseline", "known.toml", "--json"],
    &["follow", "bomb.kwab", "--once", "--silence", "1", "-o", "live"],
    &["cat", "bomb.kwab", "events"],
    &["cat", "bomb.kwab", "memory"],
    &["salvage", "bomb.kwab", "-o", "good.kwab", "--force"],
    &["redact", "bomb.kwab", "-o", "shared.kwab", "--force", "--keep", "kernel"],
    &["redact", "bomb.kwab", "-o", "shared.kwab", "--force", "--keep", "structure", "--json-out", "removed.json"],
    &["pack", "bomb.kwab", "-o", "pack.zip", "--force"],
    &["pack", "bomb.kwab", "-o", "pack.zip", "--force", "--redact", "kernel"],
    &["open", "pack.zip", "-o", "opened"],
    &["export", "--to", "jsonl", "bomb.kwab"],
    &["export", "--to", "json", "bomb.kwab"],
    &["export", "--to", "csv", "bomb.kwab"],
    &["export", "--to", "elf-core", "bomb.kwab"],
    &["export", "--to", "minidump", "bomb.kwab"],
    &["export", "--to", "chrome-trace", "bomb.kwab"],
    &["export", "--to", "perfetto", "bomb.kwab"],
    &["export", "--to", "folded", "bomb.kwab"],
];

#[test]
fn every_command_reads_every_bomb_within_64_mib_and_four_times_the_file() {
    // Two at a time: it is the longest test there is.
    let bombs = bombs();
    let over: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = bombs
            .chunks(bombs.len().div_ceil(2))
            .map(|part| scope.spawn(|| part.iter().flat_map(over).collect()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_else(|_| vec!["a panic".to_owned()])).collect()
    });
    assert!(over.is_empty(), "{over:#?}");
}

/// The commands that broke their promise on this bomb.
fn over((name, bytes): &(&str, Vec<u8>)) -> Vec<String> {
    let folder = folder();
    std::fs::write(folder.path().join("bomb.kwab"), bytes).expect("written");
    let promised = (64 << 20) + 4 * bytes.len() as u64;
    let mut over = Vec::new();
    for arguments in COMMANDS {
        let began = std::time::Instant::now();
        let (status, peak) = peak::of(folder.path(), arguments);
        let took = began.elapsed().as_millis();
        // 1: findings, 2: nothing that this form could be made of.
        let orderly = matches!(status, Some(0..=3));
        println!("{name}, {} bytes: {} MiB, {took} ms, status {status:?}: {arguments:?}", bytes.len(), peak >> 20);
        if peak > promised || !orderly {
            over.push(format!("{name}: {arguments:?}: {} MiB, status {status:?}", peak >> 20));
        }
    }
    over
}

#[test]
fn what_is_left_out_is_said_and_the_limit_can_be_set() {
    let folder = folder();
    let (_, bytes) = bombs().remove(1);
    std::fs::write(folder.path().join("bomb.kwab"), bytes).expect("written");
    for command in ["inspect", "triage"] {
        let output = run(folder.path(), &[command, "--json", "bomb.kwab"]);
        assert!(matches!(output.status.code(), Some(1 | 3)), "{command}: {:?}", output.status);
        let told = text(&output.stdout);
        assert!(told.contains("of 131072 records"), "{command}: {told}");
    }
    let output = run(folder.path(), &["inspect", "bomb.kwab"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("--max-mem"), "{}", text(&output.stdout));
    let more = run(folder.path(), &["inspect", "--max-mem", "8G", "bomb.kwab"]);
    assert!(!text(&more.stdout).contains("the memory limit is reached"), "{}", text(&more.stdout));
    let wrong = run(folder.path(), &["inspect", "--max-mem", "many", "bomb.kwab"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn an_armoured_line_with_a_far_position_costs_what_it_holds() {
    let folder = folder();
    let mut out = [0; LINE_LEN + 1];
    let mut log = Vec::new();
    for number in 0..200_u64 {
        log.extend_from_slice(encode_line(DumpId(number), u32::MAX - 4096, &[1; 48], &mut out));
    }
    std::fs::write(folder.path().join("far.log"), &log).expect("written");
    let (status, peak) = peak::of(folder.path(), &["import", "--dry-run", "far.log"]);
    assert_eq!(status, Some(0));
    assert!(peak < 48 << 20, "{} MiB", peak >> 20);
}

/// The minidump of the repository's samples with 20,000 threads, 60,000 pieces of memory and 10,000 mappings: 3.7 MB.
fn crowded() -> Vec<u8> {
    use std::io::Read as _;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/data/exchange/process.dmp.gz");
    let packed = std::fs::File::open(path).expect("a sample");
    let mut file = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut file).expect("gzip");
    let word = |file: &[u8], at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("a word"));
    let (count, directory) = (word(&file, 8) as usize, word(&file, 12) as usize);
    let row_of = |file: &[u8], kind: u32| {
        let mut rows = (0..count).map(|number| directory + 12 * number);
        rows.find(|row| word(file, *row) == kind).expect("the stream")
    };
    let first_thread = word(&file, row_of(&file, 3) + 8) as usize + 4;
    let thread = file[first_thread..first_thread + 48].to_vec();
    let mut threads = 20_000_u32.to_le_bytes().to_vec();
    (100_000..120_000_u32).for_each(|id| threads.extend([&id.to_le_bytes(), &thread[4..]].concat()));
    let (pieces, length) = (60_000_u32, 10);
    let bytes_at = file.len() as u32 + threads.len() as u32 + 4 + 16 * pieces;
    let mut memory = pieces.to_le_bytes().to_vec();
    for number in 0..pieces {
        memory.extend((0x100_0000_0000 + u64::from(number) * 8192).to_le_bytes());
        memory.extend([length, bytes_at + number * length].map(u32::to_le_bytes).concat());
    }
    let listed = memory.len();
    memory.resize(listed + (pieces * length) as usize, 7);
    let name = "y".repeat(80);
    let maps: String = (0..10_000_u64)
        .map(|number| 0x1_0000_0000 + number * 0x2000)
        .map(|start| format!("{start:x}-{:x} r-xp 0 0:0 0 /{name}{start}\n", start + 0x1000))
        .collect();
    for (kind, bytes, length) in [(3, threads, None), (5, memory, Some(listed)), (0x4767_0009, maps.into_bytes(), None)]
    {
        let (row, at) = (row_of(&file, kind), file.len() as u32);
        let length = length.unwrap_or(bytes.len()) as u32;
        file[row + 4..row + 12].copy_from_slice(&[length, at].map(u32::to_le_bytes).concat());
        file.extend(bytes);
    }
    file
}

#[test]
fn a_crowded_process_goes_out_again_within_64_mib_and_four_times_the_file() {
    let folder = folder();
    let bytes = crowded();
    std::fs::write(folder.path().join("crowded.dmp"), &bytes).expect("written");
    let promised = (64 << 20) + 4 * bytes.len() as u64;
    for form in ["minidump", "elf-core"] {
        let (status, peak) = peak::of(folder.path(), &["export", "crowded.dmp", "--to", form, "-o", "out", "--force"]);
        println!("{form}: {} MiB of {}", peak >> 20, promised >> 20);
        assert!(matches!(status, Some(0 | 3)), "{form}: {status:?}");
        assert!(peak <= promised, "{form}: {} MiB of {}", peak >> 20, promised >> 20);
    }
}

/// A kdump-compressed file whose 60,000 page frames all have the same packed page, in makedumpfile's flattened form.
fn pages_that_share() -> Vec<u8> {
    const PAGES: u64 = 60_000;
    let mut core = vec![0; 4 * 4096];
    let mut put = |at: usize, value: &[u8]| core[at..at + value.len()].copy_from_slice(value);
    put(0, b"KDUMP   ");
    put(8, &6_u32.to_le_bytes());
    put(428, &[4096_u32, 1, 4].map(u32::to_le_bytes).concat());
    put(4096 + 96, &PAGES.to_le_bytes());
    core.resize(6 * 4096, 0xff);
    let page: Vec<u8> = (0..4096_u32).map(|at| ((at * at) >> 7) as u8).collect();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &page).expect("memory");
    let packed = encoder.finish().expect("memory");
    let place = core.len() as u64 + 24 * PAGES;
    for _ in 0..PAGES {
        core.extend(place.to_le_bytes());
        core.extend([packed.len() as u32, 1, 0, 0].map(u32::to_le_bytes).concat());
    }
    core.extend(&packed);
    let mut flat = b"makedumpfile\0\0\0\0".to_vec();
    flat.extend([1_u64, 1].map(u64::to_be_bytes).concat());
    flat.resize(4096, 0);
    for (number, part) in core.chunks(300).enumerate() {
        flat.extend([300 * number as u64, part.len() as u64].map(u64::to_be_bytes).concat());
        flat.extend(part);
    }
    flat.extend([0xff; 16]);
    flat
}

#[test]
fn packed_pages_that_share_their_bytes_are_captured_within_64_mib_and_four_times_the_file() {
    let folder = folder();
    let bytes = pages_that_share();
    std::fs::write(folder.path().join("shared.kdump"), &bytes).expect("written");
    let promised = (64 << 20) + 4 * bytes.len() as u64;
    for command in [["capture", "--mem", "shared.kdump"], ["import", "shared.kdump", "--force"]] {
        let arguments = [&command[..], &["-o", "out.kwab"]].concat();
        let (status, peak) = peak::of(folder.path(), &arguments);
        println!("{}: {} MiB of {}", command[0], peak >> 20, promised >> 20);
        assert_eq!(status, Some(3), "it has no registers");
        assert!(peak <= promised, "{}: {} MiB of {}", command[0], peak >> 20, promised >> 20);
    }
    let again = run(folder.path(), &["translate", "out.kwab", "0xffffffff80000000"]);
    assert_ne!(again.status.code(), Some(101), "{}", text(&again.stderr));
}
