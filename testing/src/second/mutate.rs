//! Makes damaged dumps of sound ones: the bytes are determined by the seed and the samples.
//!
//! One to four mutations each. Some damage bytes without regard for the checksums (flips, bursts, cuts, insertions,
//! deletions), some move whole sections, and some change a payload or a header and put the checksums right again, so
//! that what lies behind them is reached.

use kwab_format::section::{self, SECTION_HEADER_LEN, SECTION_TRAILER_LEN, SYNC_MARK};
use kwab_format::{DumpId, Flags, Item, Reader, SectionHeader, SectionKind, lz4};

use super::random::Random;
use super::{Sample, fields};

/// The mutated dump of this number: one to four mutations of any kind.
#[must_use]
pub fn mutated(samples: &[Sample], seed: u64, number: u64) -> Sample {
    some(samples, seed, number, mutate)
}

/// The re-sealed dump of this number: one to four mutations under right checksums. Every fourth is a dump of a kernel
/// in which only numbers of records are changed: they are the cases that reach farthest into an analysis.
#[must_use]
pub fn resealed(samples: &[Sample], seed: u64, number: u64) -> Sample {
    if number % 4 == 3 { lying(samples, seed, number) } else { some(samples, seed, number, reseal_something) }
}

/// A dump of many records with changed numbers in one to six of its sections.
fn lying(samples: &[Sample], seed: u64, number: u64) -> Sample {
    const SMALLEST: usize = 4096;
    const LARGEST: usize = 64 << 10;
    let mut random = Random::new(seed.rotate_left(32) ^ number);
    random.next();
    let whole: Vec<_> = samples.iter().filter(|sample| (SMALLEST..LARGEST).contains(&sample.bytes.len())).collect();
    let Some(base) = whole.get(random.below(whole.len())) else { return some(samples, seed, number, reseal_something) };
    let mut bytes = base.bytes.clone();
    for _ in 0..=random.below(6) {
        let Some((at, header)) = pick(&bytes, &mut random) else { break };
        if header.flags.contains(Flags::COMPRESSED) {
            continue;
        }
        let mut body = payload(&bytes, at, &header);
        fields::edit(&mut body, &mut random);
        let records = kwab_format::Records::new(&body).count() as u32;
        reseal(&mut bytes, at, &header, SectionHeader { records, ..header }, &body);
    }
    Sample { name: format!("seed {seed} case {number} (numbers of {})", base.name), bytes }
}

fn some(samples: &[Sample], seed: u64, number: u64, each: fn(&mut Vec<u8>, &mut Random, &[Sample])) -> Sample {
    let mut random = Random::new(seed.rotate_left(32) ^ number);
    random.next();
    // The small ones are the vectors: most cases are theirs, so that many cases are cheap.
    let (small, large): (Vec<_>, Vec<_>) = samples.iter().partition(|sample| sample.bytes.len() < 4096);
    let from = if large.is_empty() || (!small.is_empty() && random.below(8) > 0) { &small } else { &large };
    let base = from[random.below(from.len())];
    let mut bytes = base.bytes.clone();
    for _ in 0..=random.below(4) {
        each(&mut bytes, &mut random, samples);
    }
    Sample { name: format!("seed {seed} case {number} (of {})", base.name), bytes }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random, samples: &[Sample]) {
    match random.below(16) {
        0 => damage(bytes, random),
        1 => bytes.truncate(random.below(bytes.len() + 1)),
        2 => {
            let new = random.bytes(100);
            insert(bytes, random, &new);
        }
        3 => remove(bytes, random),
        4 => insert(bytes, random, &[0; 64]),
        5 => bytes.extend(vec![0; random.below(100)]),
        6 => bytes.extend_from_slice(&samples[random.below(samples.len())].bytes),
        7 => copy_header(bytes, random),
        _ => reseal_something(bytes, random, samples),
    }
}

fn reseal_something(bytes: &mut Vec<u8>, random: &mut Random, samples: &[Sample]) {
    match random.below(12) {
        0 => swap_sections(bytes, random),
        1 => copy_section(bytes, random),
        2 => drop_section(bytes, random),
        3 => foreign_section(bytes, random, samples),
        4 => pack(bytes, random),
        5..=7 => edit_header(bytes, random),
        _ => edit_payload(bytes, random),
    }
}

/// Flips bits, or overwrites a run of bytes.
fn damage(bytes: &mut [u8], random: &mut Random) {
    let at = random.below(bytes.len());
    if random.below(2) == 0 {
        let mask = 1 << random.below(8);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= mask;
        }
        return;
    }
    let noise = random.bytes(64);
    bytes.iter_mut().skip(at).zip(noise).for_each(|(byte, new)| *byte = new);
}

fn insert(bytes: &mut Vec<u8>, random: &mut Random, new: &[u8]) {
    let at = random.below(bytes.len() + 1);
    bytes.splice(at..at, new.iter().copied());
}

fn remove(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    let count = random.below(200).min(bytes.len() - at);
    bytes.drain(at..at + count);
}

/// Where the sections of a dump lie.
fn sections(bytes: &[u8]) -> Vec<(usize, SectionHeader)> {
    let items = Reader::new(bytes).map(|reader| reader.sections()).into_iter().flatten();
    let section = |item| if let Item::Section(section) = item { Some((section.offset, section.header)) } else { None };
    items.filter_map(section).collect()
}

fn pick(bytes: &[u8], random: &mut Random) -> Option<(usize, SectionHeader)> {
    let sections = sections(bytes);
    sections.get(random.below(sections.len())).copied()
}

fn end(at: usize, header: &SectionHeader) -> usize {
    at + SECTION_HEADER_LEN + header.payload_len as usize + SECTION_TRAILER_LEN
}

fn swap_sections(bytes: &mut Vec<u8>, random: &mut Random) {
    let (Some(one), Some(other)) = (pick(bytes, random), pick(bytes, random)) else { return };
    let (first, second) = if one.0 < other.0 { (one, other) } else { (other, one) };
    if first.0 == second.0 {
        return;
    }
    let (first, second) = (first.0..end(first.0, &first.1), second.0..end(second.0, &second.1));
    let swapped = [&bytes[second.clone()], &bytes[first.end..second.start], &bytes[first.clone()]].concat();
    bytes.splice(first.start..second.end, swapped);
}

fn copy_section(bytes: &mut Vec<u8>, random: &mut Random) {
    let (Some((at, header)), Some((to, _))) = (pick(bytes, random), pick(bytes, random)) else { return };
    let copy = bytes[at..end(at, &header)].to_vec();
    bytes.splice(to..to, copy);
}

fn drop_section(bytes: &mut Vec<u8>, random: &mut Random) {
    if let Some((at, header)) = pick(bytes, random) {
        bytes.drain(at..end(at, &header));
    }
}

fn foreign_section(bytes: &mut Vec<u8>, random: &mut Random, samples: &[Sample]) {
    let other = &samples[random.below(samples.len())].bytes;
    let (Some((to, _)), Some((at, header))) = (pick(bytes, random), pick(other, random)) else { return };
    bytes.splice(to..to, other[at..end(at, &header)].iter().copied());
}

/// Puts a header, or only a mark, where none belongs.
fn copy_header(bytes: &mut Vec<u8>, random: &mut Random) {
    let Some((at, _)) = pick(bytes, random) else { return };
    let header = bytes[at..at + SECTION_HEADER_LEN].to_vec();
    let what = [&header[..], &SYNC_MARK][random.below(2)].to_vec();
    if random.below(2) == 0 {
        insert(bytes, random, &what);
    } else {
        let to = random.below(bytes.len());
        bytes.iter_mut().skip(to).zip(what).for_each(|(byte, new)| *byte = new);
    }
}

/// Replaces a section by one of this header and payload, checksums and length right.
fn reseal(bytes: &mut Vec<u8>, at: usize, old: &SectionHeader, new: SectionHeader, payload: &[u8]) {
    let header = SectionHeader { payload_len: payload.len() as u32, ..new };
    let mut whole = vec![0; SECTION_HEADER_LEN + payload.len() + SECTION_TRAILER_LEN];
    whole[SECTION_HEADER_LEN..][..payload.len()].copy_from_slice(payload);
    if section::seal(&mut whole, &header).is_some() {
        bytes.splice(at..end(at, old), whole);
    }
}

fn payload(bytes: &[u8], at: usize, header: &SectionHeader) -> Vec<u8> {
    bytes[at + SECTION_HEADER_LEN..end(at, header) - SECTION_TRAILER_LEN].to_vec()
}

/// A section with an LZ4 block, whole or with one byte changed, and an honest or a wrong length.
fn pack(bytes: &mut Vec<u8>, random: &mut Random) {
    let Some((at, header)) = pick(bytes, random) else { return };
    let plain = payload(bytes, at, &header);
    let mut packed = vec![0; plain.len() + plain.len() / 255 + 32];
    let mut table = [0; lz4::TABLE_LEN];
    let Some(length) = lz4::compress(&plain, &mut packed, &mut table) else { return };
    packed.truncate(length);
    let claimed = if random.below(3) == 0 { random.odd() as u32 } else { plain.len() as u32 };
    if random.below(3) == 0 {
        damage(&mut packed, random);
    }
    let packed = [&claimed.to_le_bytes()[..], &packed].concat();
    let new = SectionHeader { flags: header.flags.with(Flags::COMPRESSED), ..header };
    reseal(bytes, at, &header, new, &packed);
}

fn edit_header(bytes: &mut Vec<u8>, random: &mut Random) {
    let Some((at, header)) = pick(bytes, random) else { return };
    let body = payload(bytes, at, &header);
    let mut new = header;
    let value = random.odd();
    match random.below(8) {
        0 => new.kind = SectionKind(value as u16),
        1 => new.kind = SectionKind::END,
        2 => new.version = value as u8,
        3 => new.flags = Flags(value as u8),
        4 => new.seq = if random.below(2) == 0 { value as u32 } else { random.below(8) as u32 },
        5 => new.dump_id = DumpId(value),
        6 => new.position = value,
        _ => new.records = value as u32,
    }
    reseal(bytes, at, &header, new, &body);
}

/// Changes bytes of a payload; the header claims the new length and, half the time, counts the records as they are now.
fn edit_payload(bytes: &mut Vec<u8>, random: &mut Random) {
    let Some((at, header)) = pick(bytes, random) else { return };
    let mut body = payload(bytes, at, &header);
    for _ in 0..=random.below(3) {
        match random.below(9) {
            0 => remove(&mut body, random),
            1 => {
                let new = random.bytes(8);
                insert(&mut body, random, &new);
            }
            2 => edit_record(&mut body, random),
            3..=6 => fields::edit(&mut body, random),
            _ => damage(&mut body, random),
        }
        if body.is_empty() {
            body.push(0);
        }
    }
    let mut new = header;
    if random.below(2) == 0 {
        new.records = kwab_format::Records::new(&body).count() as u32;
    }
    reseal(bytes, at, &header, new, &body);
}

/// Replaces the body of one record by a damaged one under a right length, so that the records behind it stay whole.
fn edit_record(payload: &mut Vec<u8>, random: &mut Random) {
    let bodies: Vec<_> = kwab_format::Records::new(payload)
        .scan(0, |at, raw| {
            let start = *at;
            *at += 4 + raw.body.len();
            Some((start, raw.body.len()))
        })
        .collect();
    let Some(&(at, length)) = bodies.get(random.below(bodies.len())) else { return };
    let mut body = payload[at + 4..at + 4 + length].to_vec();
    match random.below(4) {
        0 => body.truncate(random.below(length)),
        1 => {
            let escaped = [248 | random.below(8) as u8, random.below(40) as u8];
            insert(&mut body, random, &escaped);
        }
        2 => body.extend([random.below(256) as u8, random.below(256) as u8]),
        _ if body.is_empty() => {}
        _ => damage(&mut body, random),
    }
    let kind = if random.below(8) == 0 { random.below(256) as u8 } else { payload[at] };
    let [l0, l1, l2, ..] = (body.len() as u32).to_le_bytes();
    let record = [&[kind, l0, l1, l2][..], &body].concat();
    payload.splice(at..at + 4 + length, record);
}
