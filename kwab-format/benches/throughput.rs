//! Measures writing and reading against raw CRC32 and memcpy in the same run: `cargo bench -p kwab-format`.
//!
//! Every figure is the best of several rounds over the same records: three kinds of debug events in the proportions of
//! a real log, in sections of 64 KiB, then pages of memory, then the armoured form. The sink throws bytes away, so that
//! the figure is the format's own.

use kwab_format::armour::{self, ArmourSink, Lines};
use kwab_format::record::{CanaryCheck, Memory, Stamp, SyscallEntry, SyscallExit};
use kwab_format::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

const EVENTS: u64 = 400_000;
const ROUNDS: usize = 7;
const HEADER: FileHeader = FileHeader::new(DumpId(0xD00F), BootId([1; 16]));

/// Counts and forgets.
struct Nowhere(u64);

impl Sink for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0 += black_box(bytes).len() as u64;
        Ok(())
    }
}

/// A sink that keeps all bytes.
struct Collect(Vec<u8>);

impl Sink for Collect {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn main() {
    let mut collected = Collect(Vec::new());
    write_events(&mut collected);
    let dump = collected.0;
    println!("{} events in a dump of {} bytes: {} bytes each", EVENTS, dump.len(), dump.len() as u64 / EVENTS);
    let mut copy = vec![0u8; dump.len()];
    rate("memcpy", dump.len(), None, |dump: &[u8]| copy.copy_from_slice(black_box(dump)), &dump);
    rate(
        "crc32fast",
        dump.len(),
        None,
        |dump: &[u8]| {
            black_box(crc32fast::hash(dump));
        },
        &dump,
    );
    rate(
        "write events",
        dump.len(),
        Some(EVENTS),
        |_: &[u8]| {
            write_events(&mut Nowhere(0));
        },
        &dump,
    );
    rate(
        "read: walk headers",
        dump.len(),
        None,
        |dump: &[u8]| {
            black_box(Reader::new(dump).unwrap().headers().count());
        },
        &dump,
    );
    rate(
        "read: check sections",
        dump.len(),
        None,
        |dump: &[u8]| {
            black_box(Reader::new(dump).unwrap().sections().count());
        },
        &dump,
    );
    rate("read: check and decode", dump.len(), Some(EVENTS), |dump: &[u8]| assert_eq!(decode_all(dump), EVENTS), &dump);
    pages();
    lines(&dump[..1 << 20]);
}

fn write_events(sink: impl Sink) {
    let mut buf = vec![0; 64 << 10];
    let mut writer = Writer::new(sink, &mut buf, HEADER);
    writer.begin(SectionKind::EVENTS).unwrap();
    for i in 0..EVENTS {
        let stamp = Stamp { offset: Some(i * 120), line: Some(i), ..Stamp::default() };
        match i % 4 {
            0 => writer.put(
                &SyscallEntry {
                    pid: Some(1),
                    nr: Some(158),
                    name: Some(b"arch_prctl"),
                    stamp,
                    ..SyscallEntry::default()
                }
                .with_args([0x1002, 0x40_9698 + i, 0xe7, 0x2_0000, 0x9_ffff_eed8, 0].map(Some)),
            ),
            1 => writer.put(&SyscallExit {
                pid: Some(1),
                nr: Some(158),
                name: Some(b"arch_prctl"),
                result: Some(-2),
                errno: Some(b"ENOENT"),
                stamp,
                ..SyscallExit::default()
            }),
            _ => writer.put(&CanaryCheck {
                pid: Some(1),
                fsbase: Some(0x40_9698),
                expected: Some(0x942d_4168_68d4_0011),
                found: Some(0x942d_4168_68d4_0011),
                corrupted: Some(false),
                when: Some(b"post_syscall"),
                syscall: Some(b"arch_prctl"),
                stamp,
            }),
        }
        .unwrap();
    }
    writer.finish().1.unwrap();
}

fn decode_all(dump: &[u8]) -> u64 {
    let mut count = 0;
    for item in Reader::new(dump).unwrap().sections() {
        if let Item::Section(section) = item
            && section.header.kind == SectionKind::EVENTS
        {
            for record in section.records() {
                black_box(record.decode().unwrap());
                count += 1;
            }
        }
    }
    count
}

fn pages() {
    let page: Vec<u8> = (0..4096u32).map(|i| if i % 16 < 10 { 0 } else { ((i * 7) >> 4) as u8 }).collect();
    let total = 4096 * 4000;
    let write = |flags: Flags, sink: &mut dyn Sink| {
        let (mut buf, mut scratch) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        let mut table = [0; lz4::TABLE_LEN];
        let mut writer = Writer::new(sink, &mut buf, HEADER)
            .with_compression(Compression { table: &mut table, scratch: &mut scratch });
        writer.begin_with(SectionKind::MEMORY, flags).unwrap();
        for i in 0..4000 {
            writer.put(&Memory { paddr: Some(i << 12), bytes: Some(&page), ..Memory::default() }).unwrap();
        }
        writer.finish().1.unwrap();
    };
    rate("write pages", total, Some(4000), |_: &[u8]| write(Flags::default(), &mut Nowhere(0)), &[]);
    rate("write pages, LZ4", total, Some(4000), |_: &[u8]| write(Flags::COMPRESSED, &mut Nowhere(0)), &[]);
    let mut packed = Collect(Vec::new());
    write(Flags::COMPRESSED, &mut packed);
    println!("   pages pack to {} % of their bytes", packed.0.len() * 100 / total);
    let mut scratch = vec![0; 64 << 10];
    rate(
        "read pages, LZ4",
        total,
        Some(4000),
        |dump: &[u8]| {
            for item in Reader::new(dump).unwrap().sections() {
                if let Item::Section(section) = item {
                    black_box(section.unpack(&mut scratch).unwrap());
                }
            }
        },
        &packed.0,
    );
}

fn lines(dump: &[u8]) {
    let mut text = Vec::new();
    let mut armoured = |dump: &[u8]| {
        text.clear();
        ArmourSink::new(HEADER.dump_id, |line: &[u8]| {
            text.extend_from_slice(line);
            true
        })
        .write(dump)
        .unwrap();
    };
    rate("armour", dump.len(), None, &mut armoured, dump);
    armoured(dump);
    rate(
        "dearmour",
        dump.len(),
        None,
        |text: &[u8]| {
            let sound = Lines::new(text).filter(|found| matches!(found, armour::Found::Line { .. })).count();
            assert_eq!(sound, dump.len().div_ceil(armour::LINE_BYTES));
        },
        &text,
    );
}

/// Prints bytes of dump per second, and nanoseconds per record where there are any.
fn rate(name: &str, bytes: usize, records: Option<u64>, mut work: impl FnMut(&[u8]), input: &[u8]) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work(input);
            start.elapsed()
        })
        .min()
        .unwrap_or(Duration::ZERO);
    let seconds = best.as_secs_f64();
    let each = records.map(|n| format!("   {:6.1} ns each", seconds * 1e9 / n as f64)).unwrap_or_default();
    println!("{name:24} {:9.0} MB/s{each}", bytes as f64 / 1e6 / seconds);
}
