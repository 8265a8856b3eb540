//! Kdump-compressed files as makedumpfile and QEMU lay them out, whole, damaged and hostile.

use super::super::tests::{file, machine, qemu_note};
use super::super::vmcore::{Stored, Vmcore};
use super::super::{Snapshot, Written, of_core};
use super::unpack::{LZO, SNAPPY, ZLIB, ZSTD};
use super::*;
use crate::model::Dump;

/// Bytes of page frames that the bitmaps of the sample have room for.
const BITMAP: usize = 4 * PAGE as usize;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// A page as a writer packs it; as it is when it does not become smaller.
fn packed(page: &[u8], how: u32) -> (Vec<u8>, u32) {
    let bytes = match how {
        ZLIB => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, page).expect("memory");
            encoder.finish().expect("memory")
        }
        LZO => lzokay::compress::compress(page).expect("memory"),
        SNAPPY => snap::raw::Encoder::new().compress_vec(page).expect("memory"),
        ZSTD => ruzstd::encoding::compress_to_vec(page, ruzstd::encoding::CompressionLevel::Fastest),
        _ => page.to_vec(),
    };
    if bytes.len() < page.len() { (bytes, how) } else { (page.to_vec(), 0) }
}

/// A dump of this memory in which pages are packed so. `leave_out` says of a page frame whether a rule of the level
/// left it out.
fn dump_of(memory: &[(u64, Vec<u8>)], how: u32, level: u32, leave_out: impl Fn(u64, &[u8]) -> bool) -> Vec<u8> {
    let notes = qemu_note(0x100_0000, 0xffff_ffff_8010_1080);
    let words = b"OSRELEASE=6.1.0\nBUILD-ID=00112233445566778899aabbccddeeff\nPAGESIZE=4096\n";
    let mut bytes = vec![0; 3 * PAGE as usize + 2 * BITMAP];
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 8, &6_u32.to_le_bytes());
    put(&mut bytes, 12 + 4 * 65, b"x86_64");
    put(&mut bytes, 428, &(PAGE as u32).to_le_bytes());
    put(&mut bytes, 432, &2_u32.to_le_bytes());
    put(&mut bytes, 436, &(2 * BITMAP as u32 / PAGE as u32).to_le_bytes());
    let sub = PAGE as usize;
    put(&mut bytes, sub + 8, &level.to_le_bytes());
    put(&mut bytes, sub + 96, &(8 * BITMAP as u64 - 5).to_le_bytes());
    let mut tail = sub + 512;
    for (at, text) in [(32, &words[..]), (48, &notes)] {
        put(&mut bytes, sub + at, &(tail as u64).to_le_bytes());
        put(&mut bytes, sub + at + 8, &(text.len() as u64).to_le_bytes());
        put(&mut bytes, tail, text);
        tail += text.len();
    }
    let mut pages = Vec::new();
    for (paddr, data) in memory {
        for (number, page) in data.chunks(PAGE as usize).enumerate() {
            let frame = paddr / PAGE + number as u64;
            let mut page = page.to_vec();
            page.resize(PAGE as usize, 0);
            let bit = |map: usize| (3 * PAGE as usize + map * BITMAP + frame as usize / 8, 1 << (frame % 8));
            let (at, mask) = bit(0);
            bytes[at] |= mask;
            if !leave_out(frame, &page) {
                let (at, mask) = bit(1);
                bytes[at] |= mask;
                pages.push(packed(&page, how));
            }
        }
    }
    let mut place = (bytes.len() + pages.len() * DESCRIPTOR as usize) as u64;
    for (page, flags) in &pages {
        bytes.extend(place.to_le_bytes());
        bytes.extend((page.len() as u32).to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend([0; 8]);
        place += page.len() as u64;
    }
    pages.iter().for_each(|(page, _)| bytes.extend_from_slice(page));
    bytes
}

const TABLE: usize = 3 * PAGE as usize + 2 * BITMAP;

fn written(bytes: &[u8]) -> (Snapshot, Written) {
    let snapshot = of_core(file(bytes)).expect("a dump");
    let written = snapshot.write(1, 1, &mut Vec::new()).expect("memory");
    (snapshot, written)
}

fn refused(bytes: &[u8]) -> String {
    of_core(file(bytes)).expect_err("refused").to_string()
}

#[test]
fn every_packing_has_the_memory_and_registers_of_the_machine() {
    for how in [0, ZLIB, LZO, SNAPPY, ZSTD] {
        let bytes = dump_of(&machine(), how, 0, |_, _| false);
        let core = Vmcore::open(file(&bytes)).expect("a dump");
        assert_eq!((core.missing.len(), core.told("OSRELEASE")), (0, Some("6.1.0")), "{how}");
        assert_eq!((core.processors.len(), core.processors[0].ip()), (1, 0xffff_ffff_8010_1080));
        for (paddr, wanted) in &machine() {
            let mut found = vec![0xff; wanted.len()];
            assert_eq!((core.read(*paddr, &mut found).expect("read"), &found), (wanted.len(), wanted), "{how}");
        }
        assert_eq!(core.word(0x100_7000), None, "{how}");
        let (snapshot, written) = written(&bytes);
        assert_eq!((written.bytes, written.lost.len()), (8 * 4096, 0), "{how}");
        assert_eq!(snapshot.kernel.and_then(|kernel| kernel.build_id).expect("a kernel").0, b"BUILD-ID");
    }
}

#[test]
fn a_page_that_was_left_out_is_missing_and_zero_only_where_zeros_are_all_that_is_left_out() {
    let is_zero = |_: u64, page: &[u8]| page.iter().all(|byte| *byte == 0);
    let core = Vmcore::open(file(&dump_of(&machine(), ZLIB, ZEROS_ONLY, is_zero))).expect("a dump");
    let loads: Vec<_> = core.loads.iter().map(|load| (load.paddr, load.length, load.stored)).collect();
    let wanted = [
        (0x100_0000, 0x5000, Stored::Page(0)),
        (0x100_5000, 0x2000, Stored::Zeros),
        (0x200_0000, 0x1000, Stored::Page(5)),
    ];
    assert_eq!(loads, wanted);
    assert_eq!((core.word(0x100_6ff8), core.word(0x100_7000)), (Some(0), None));
    for level in [0, 2, 3, 31] {
        let core = Vmcore::open(file(&dump_of(&machine(), ZLIB, level, is_zero))).expect("a dump");
        assert_eq!((core.word(0x100_5000), core.word(0x200_0000)), (None, Some(0x0707_0707_0707_0707)), "{level}");
    }
}

#[test]
fn a_page_that_cannot_be_read_is_told_with_descriptor_place_and_reason_and_the_others_are_there() {
    let whole = dump_of(&machine(), ZLIB, 0, |_, _| false);
    // Offset, size, flags of the fifth page, the code, and what is said of it.
    let cases: [(usize, &[u8], &str); 6] = [
        (0, &u64::MAX.to_le_bytes(), "descriptor 4 has 73 bytes at offset 0xffffffffffffffff: the file has 0 of them"),
        (0, &[0; 8], "offset 0x0: not zlib"),
        (8, &0x7fff_ffff_u32.to_le_bytes(), "has 2147483647 bytes"),
        (8, &[0; 4], "has 0 bytes at"),
        (8, &20_u32.to_le_bytes(), "zlib data without its end"),
        (12, &0x40_u32.to_le_bytes(), "packed in a way that is not known, 0x40"),
    ];
    for (at, value, wanted) in cases {
        let mut bytes = whole.clone();
        put(&mut bytes, TABLE + 4 * DESCRIPTOR as usize + at, value);
        let (_, written) = written(&bytes);
        let lost = written.lost.first().map_or("", String::as_str);
        assert!(lost.starts_with("1 pages of memory that cannot be read, the first at 0x1004000: "), "{lost}");
        assert!(lost.contains(wanted.split_once("73 bytes").map_or(wanted, |(_, rest)| rest)), "{lost}");
        assert_eq!(written.bytes, 7 * 4096);
    }
    for how in [LZO, SNAPPY, ZSTD] {
        let mut bytes = dump_of(&machine(), how, 0, |_, _| false);
        put(&mut bytes, TABLE + 12, &ZLIB.to_le_bytes());
        let (_, written) = written(&bytes);
        assert!(written.lost[0].contains("the first at 0x1000000: descriptor 0"), "{:?}", written.lost);
    }
}

#[test]
fn a_kernel_whose_build_id_was_left_out_has_that_of_its_own_words() {
    let id = |left_out: u64| {
        let bytes = dump_of(&machine(), ZLIB, 31, |frame, _| frame == left_out);
        let mut dump = Vec::new();
        of_core(file(&bytes)).expect("a dump").write(1, 1, &mut dump).expect("memory");
        let dump = Dump::from_bytes(dump).expect("a dump");
        let (identity, image) = (dump.case().identities[0].kernel_build_id, dump.case().images[0].build_id);
        assert_eq!(identity, image);
        identity.expect("a build-id").to_vec()
    };
    assert_eq!(id(0x1004), (0..16).map(|digit| digit * 0x11).collect::<Vec<u8>>());
    assert_eq!(id(0x2000), b"BUILD-ID", "the note in memory comes first");
}

#[test]
fn headers_that_lie_are_refused_with_their_numbers() {
    let whole = dump_of(&machine(), ZLIB, 0, |_, _| false);
    let with = |at: usize, value: &[u8]| {
        let mut bytes = whole.clone();
        put(&mut bytes, at, value);
        bytes
    };
    let cases = [
        (with(428, &65536_u32.to_le_bytes()), "its blocks have 65536 bytes"),
        (with(432, &u32::MAX.to_le_bytes()), "its second header has 4294967295 blocks"),
        (with(436, &u32::MAX.to_le_bytes()), "its bitmaps have 17592186040320 bytes for 131067 page frames"),
        (with(436, &3_u32.to_le_bytes()), "its bitmaps have 12288 bytes for 131067 page frames"),
        (with(PAGE as usize + 96, &[0xff; 8]), "for 1099511627776 page frames"),
        (with(12 + 4 * 65, b"aar\x1b[1m\0"), "it is of a machine called aar\\x1b[1m"),
        (whole[..400].to_vec(), "shorter than its first header"),
        (whole[..4100].to_vec(), "it ends before its second header"),
    ];
    for (bytes, wanted) in cases {
        let why = refused(&bytes);
        assert!(why.contains(wanted), "{why}");
    }
    let far = written(&with(PAGE as usize + 48, &(1_u64 << 60).to_le_bytes())).0;
    assert!(
        far.missing[0].contains("bytes at offset 0x1000000000000000 are claimed, 0 can be read"),
        "{:?}",
        far.missing
    );
    let cut = written(&whole[..TABLE + 60]).0;
    assert_eq!(cut.missing[0], "6 pages of memory from 0x1002000 on: the file ends before their descriptors");
}

#[test]
fn a_part_of_a_split_dump_has_its_own_pages_and_says_so() {
    let inside = 0x1002..0x2000_u64;
    let mut bytes = dump_of(&machine(), LZO, 0, |frame, _| !inside.contains(&frame));
    let map = 3 * PAGE as usize;
    let known = bytes[map..map + BITMAP].to_vec();
    put(&mut bytes, map + BITMAP, &known);
    put(&mut bytes, PAGE as usize + 12, &1_u32.to_le_bytes());
    put(&mut bytes, PAGE as usize + 80, &inside.start.to_le_bytes());
    put(&mut bytes, PAGE as usize + 88, &inside.end.to_le_bytes());
    let core = Vmcore::open(file(&bytes)).expect("a dump");
    assert!(core.missing[0].contains("this one has page frames 0x1002 to 0x2000"), "{:?}", core.missing);
    assert_eq!((core.word(0x100_1000), core.word(0x100_4800)), (None, Some(0x9090_9090_9090_9090)));
}

#[test]
fn mutated_dumps_end_without_a_panic_and_within_their_bytes() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    // Where lengths, offsets, bits and packed bytes are; the bitmaps are mostly empty.
    let places = [0..600, PAGE as usize..PAGE as usize + 700, 3 * PAGE as usize..TABLE, TABLE..TABLE + 400];
    for how in [ZLIB, LZO, SNAPPY, ZSTD] {
        let whole = dump_of(&machine(), how, random() as u32 % 2, |_, _| false);
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random() % 4 {
                let place = places.get(random() as usize % 8).cloned().unwrap_or(TABLE..bytes.len());
                let at = place.start + random() as usize % place.len();
                bytes[at] = random() as u8;
            }
            bytes.truncate(bytes.len() - if random() % 8 == 0 { random() as usize % bytes.len() } else { 0 });
            if let Ok(snapshot) = of_core(file(&bytes)) {
                let mut dump = Vec::new();
                let written = snapshot.write(1, 1, &mut dump).expect("memory");
                assert!(dump.len() < 4 * whole.len(), "{} bytes of {}", dump.len(), whole.len());
                let stored = written.bytes - written.zeros;
                assert!(stored <= (bytes.len() as u64 / DESCRIPTOR + 1) * PAGE, "{stored} bytes of {}", bytes.len());
            }
        }
    }
}
