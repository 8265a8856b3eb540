//! Changes fields of records: the record stays well formed, and says what no kernel would.
//!
//! Damage of bytes seldom makes a sound record with an extreme number in it, since a number's width stands in its key.
//! Here records are taken apart, some numbers are replaced by those at which arithmetic goes wrong, and the records are
//! put together again.

use kwab_format::record::SCHEMA;
use kwab_format::wire::{Encoder, FieldIter, Raw, SLACK};
use kwab_format::{FieldSchema, RawRecord, Records, Shape};

use super::random::Random;

/// Replaces numbers of one to eight records of a payload; sometimes one of them comes again and again.
pub(super) fn edit(payload: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(8) {
        let count = Records::new(payload).count();
        let Some(record) = Records::new(payload).nth(random.below(count)) else { return };
        let body = changed(&record, random);
        let start = record.body.as_ptr() as usize - payload.as_ptr() as usize - RECORD_HEADER;
        let whole = start..start + RECORD_HEADER + record.body.len();
        let [l0, l1, l2, ..] = (body.len() as u32).to_le_bytes();
        let times = if random.below(4) == 0 { 1 + random.below(40) } else { 1 };
        let new = [&[record.kind.0, l0, l1, l2][..], &body].concat().repeat(times);
        payload.splice(whole, new);
    }
}

/// Bytes before a record's body: kind and length.
const RECORD_HEADER: usize = 4;

/// A body with some numbers changed; the same body when it cannot be taken apart.
fn changed(record: &RawRecord<'_>, random: &mut Random) -> Vec<u8> {
    let schema = SCHEMA.iter().find(|schema| schema.kind == record.kind.0);
    let fields = schema.map_or(&[][..], |schema| schema.fields);
    body(record.body, fields, random).unwrap_or_else(|| record.body.to_vec())
}

fn body(bytes: &[u8], schema: &[FieldSchema], random: &mut Random) -> Option<Vec<u8>> {
    // A number takes at most a wide key and eight bytes, whatever it took.
    let mut room = vec![0; 10 * bytes.len() + SLACK];
    let mut out = Encoder::new(&mut room, 0);
    put(bytes, schema, random, &mut out)?;
    let end = out.position()?;
    room.truncate(end);
    Some(room)
}

/// Writes fields with some numbers changed.
fn put(bytes: &[u8], schema: &[FieldSchema], random: &mut Random, out: &mut Encoder<'_>) -> Option<()> {
    let mut fields = Vec::new();
    let mut walk = FieldIter::new(bytes);
    while let Some(field) = walk.next_field().ok()? {
        fields.push(field);
    }
    let numbers: Vec<u64> =
        fields.iter().filter_map(|(_, raw)| if let Raw::Int(value) = raw { Some(*value) } else { None }).collect();
    // One number of a record, or all: a sum of two extremes overflows where one of them does not.
    let all = random.below(4) == 0;
    let chosen = random.below(fields.len());
    for (at, (number, raw)) in fields.iter().enumerate() {
        let shape = schema.iter().find(|field| field.number == *number).map(|field| field.shape);
        let changes = all || at == chosen;
        match (*raw, shape) {
            (Raw::Int(_), Some(Shape::Bool)) if changes => out.int(*number, random.next() & 1),
            (Raw::Int(_), Some(Shape::Enum { names, .. })) if changes && !names.is_empty() => {
                out.int(*number, names[random.below(names.len())].0);
            }
            (Raw::Int(value), shape) if changes => {
                let bits = if let Some(Shape::Unsigned(bits)) = shape { bits } else { 64 };
                out.int(*number, extreme(value, &numbers, random) & (u64::MAX >> (64 - bits.clamp(1, 64))));
            }
            (Raw::Int(value), _) => out.int(*number, value),
            (Raw::Bytes(bytes), Some(Shape::List { fields, .. })) if changes => {
                let elements = elements(bytes)?;
                let chosen = random.below(elements.len());
                let mut sound = true;
                out.nested(*number, |out| {
                    for (at, element) in elements.iter().enumerate() {
                        out.prefixed(|out| {
                            if at == chosen || all {
                                sound &= put(element, fields, random, out).is_some();
                            } else {
                                out.append(element);
                            }
                        });
                    }
                });
                sound.then_some(())?;
            }
            (Raw::Bytes(bytes), _) => out.bytes(*number, bytes),
        }
    }
    Some(())
}

/// The elements of a list; none where one is longer than those of the corpus are.
fn elements(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    const LONG: u8 = 254;
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first() {
        let (element, rest) = rest.split_at_checked(usize::from(*length)).filter(|_| *length < LONG)?;
        found.push(element);
        bytes = rest;
    }
    Some(found)
}

/// A number at which sums, products, differences and lengths go wrong.
fn extreme(value: u64, others: &[u64], random: &mut Random) -> u64 {
    const PAGE: u64 = 4096;
    match random.below(10) {
        0 => 0,
        1 => u64::MAX,
        2 => i64::MAX as u64,
        3 => i64::MIN as u64,
        4 => value.wrapping_add([1, u64::MAX, PAGE, PAGE.wrapping_neg()][random.below(4)]),
        // The last page, the gap between the halves of the address space, the first page of the upper one.
        5 => [PAGE.wrapping_neg(), 0x8000_0000_0000, 0xffff_8000_0000_0000, u64::MAX >> 12][random.below(4)],
        6 => 1 << random.below(64),
        7 => value.wrapping_mul(PAGE),
        // What another field says: ranges that are empty or turned round, records that point at themselves.
        _ => others.get(random.below(others.len())).copied().unwrap_or(value),
    }
}

#[cfg(test)]
mod tests {
    use kwab_format::record::{Reg, RegId, Registers, Task, Vma};
    use kwab_format::{List, RecordKind, RecordType};

    use super::*;

    #[test]
    fn changed_records_are_well_formed_and_most_differ() {
        let mut room = [0; 4096];
        let task = Task { pid: Some(7), state_ns: Some(5), comm: Some(b"sh"), ..Task::default() };
        let value = |id, value| Reg { id: Some(id), value: Some(value), ..Reg::default() };
        let values = [value(RegId::RSP, 7), value(RegId::RIP, 9)];
        let set = Registers { pid: Some(7), regs: Some(List::new(&values)), ..Registers::default() };
        let vma = Vma { pid: Some(7), start: Some(0x1000), end: Some(0x2000), ..Vma::default() };
        let mut payload = Vec::new();
        let mut add = |kind: RecordKind, length: usize, room: &[u8]| {
            payload.extend([kind.0, length as u8, 0, 0]);
            payload.extend(&room[..length]);
        };
        add(Task::KIND, encoded(&task, &mut room), &room);
        add(Vma::KIND, encoded(&vma, &mut room), &room);
        add(Registers::KIND, encoded(&set, &mut room), &room);
        let mut random = Random::new(3);
        let mut differ = 0;
        for _ in 0..1000 {
            let mut mutated = payload.clone();
            edit(&mut mutated, &mut random);
            let records: Vec<RawRecord<'_>> = Records::new(&mutated).collect();
            assert!(records.iter().map(|record| RECORD_HEADER + record.body.len()).sum::<usize>() == mutated.len());
            for record in &records {
                assert!([Task::KIND, Vma::KIND, Registers::KIND].contains(&record.kind));
                record.decode().expect("well formed");
            }
            differ += usize::from(mutated != payload);
        }
        assert!(differ > 800, "{differ}");
    }

    fn encoded<'a>(record: &impl RecordType<'a>, room: &mut [u8]) -> usize {
        let mut out = Encoder::new(room, 0);
        record.encode(&mut out);
        out.position().expect("there is room")
    }
}
