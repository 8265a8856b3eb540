//! Plants secrets in every field of every kind and in the memory of real dumps, and looks for them after redaction.

use std::path::Path;

use kwab_format::record::*;
use kwab_format::section::{SECTION_HEADER_LEN, SECTION_TRAILER_LEN, SectionHeader, seal};
use kwab_format::wire::{Encoder, FieldIter, Raw, zigzag};
use kwab_format::{
    BootId, DumpId, FieldSchema, FileHeader, Flags, RawRecord, RecordType as _, SectionKind, Shape, lz4,
};

use super::secrets::{Searched, Seed, is_in};
use crate::model::DumpFile;
use crate::model::bulk;
use crate::model::emit::DumpWriter;
use crate::model::fields::{columns, split_prefixed};
use crate::redact::table::{self, Field, Holds};
use crate::redact::{Policy, RedactReport, redact};

pub(super) const POLICIES: [Policy; 2] = [Policy::Kernel, Policy::Structure];

/// A secret and where it was planted.
struct Planted {
    secret: Vec<u8>,
    place: String,
    holds: Holds,
}

pub(super) fn redacted(bytes: &[u8], policy: Policy) -> (Vec<u8>, RedactReport) {
    let mut file = DumpFile::from_bytes(bytes.to_vec()).expect("a dump");
    file.verify_all();
    let mut out = Vec::new();
    let report = redact(&file, "planted.kwab", policy, &mut out).expect("a vector takes everything");
    (out, report)
}

/// All records of a dump, with the kind of their section.
fn records(bytes: &[u8], mut each: impl FnMut(SectionKind, RawRecord<'_>)) {
    let file = DumpFile::from_bytes(bytes.to_vec()).expect("a dump");
    for (index, section) in file.sections.iter().enumerate() {
        let payload = file.payload(index).expect("sound");
        Records::new(&payload).for_each(|raw| each(section.header.kind, raw));
    }
}

/// How the secrets of a dump look.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Names and random numbers.
    Name,
    /// Any bytes, and numbers that are six letters.
    Bytes,
}

/// Encodes a body with a secret in every field.
fn plant(
    place: &str,
    rows: &[Field],
    schema: &[&FieldSchema],
    (seed, form): (&mut Seed, Form),
    planted: &mut Vec<Planted>,
    out: &mut Encoder<'_>,
) {
    for (field, schema) in rows.iter().zip(schema) {
        let place = format!("{place}.{}", field.name);
        let number = match form {
            Form::Name => seed.next() | 1 << 62 & !(1 << 63),
            Form::Bytes => seed.name(6).iter().fold(0, |value, byte| value << 8 | u64::from(*byte)),
        };
        let (secret, holds) = match schema.shape {
            Shape::Bytes => {
                let secret = match form {
                    Form::Name => seed.name(24),
                    Form::Bytes => seed.bytes(24),
                };
                out.bytes(field.number, &secret);
                (secret, field.holds)
            }
            Shape::Unsigned(64) => {
                out.int(field.number, number);
                (number.to_le_bytes().to_vec(), field.holds)
            }
            Shape::Signed => {
                let number = number & (u64::MAX >> 2);
                out.int(field.number, zigzag(number.cast_signed()));
                (zigzag(number.cast_signed()).to_le_bytes().to_vec(), field.holds)
            }
            Shape::List { fields, .. } => {
                let Holds::List(own) = field.holds else { panic!("{place}") };
                let fields: Vec<&FieldSchema> = fields.iter().collect();
                out.nested(field.number, |out| {
                    out.prefixed(|out| plant(&place, own, &fields, (&mut *seed, form), planted, out));
                });
                continue;
            }
            // Too short for a secret.
            Shape::Bool => continue,
            Shape::Unsigned(bits) | Shape::Enum { bits, .. } => {
                out.int(field.number, number >> 16 & (u64::MAX >> (64 - bits)));
                continue;
            }
        };
        planted.push(Planted { secret, place, holds });
    }
}

/// A dump with one record of a kind.
fn dump_with(kind: u8, form: Form, seed: &mut Seed) -> (Vec<u8>, Vec<Planted>) {
    let schema = SCHEMA.iter().find(|schema| schema.kind == kind).expect("a kind");
    let rows = table::rows(kind).expect("a row");
    let own: Vec<Field> = rows.fields.iter().chain(table::STAMP).copied().collect();
    let shapes: Vec<&FieldSchema> = columns(schema).collect();
    let (mut body, mut planted) = (vec![0; 64 << 10], Vec::new());
    let mut encoder = Encoder::new(&mut body, 0);
    plant(schema.name, &own, &shapes, (seed, form), &mut planted, &mut encoder);
    let end = encoder.position().expect("it fits");
    let mut bytes = Vec::new();
    let mut writer = DumpWriter::new(&mut bytes, FileHeader::new(DumpId(seed.next()), BootId([7; 16])));
    writer.put_raw(SectionKind::EVENTS, RawRecord { kind: RecordKind(kind), body: &body[..end] });
    writer.finish().expect("a vector takes everything");
    (bytes, planted)
}

/// Whether the table lets a secret of this form stay.
fn may_stay(holds: Holds, form: Form, policy: Policy) -> bool {
    match holds {
        Holds::Count => true,
        Holds::Clock | Holds::BuildId => policy == Policy::Kernel,
        Holds::Symbol | Holds::Source | Holds::Version => policy == Policy::Kernel && matches!(form, Form::Name),
        // Six letters are a physical address to a page table.
        Holds::Entry => matches!(form, Form::Bytes),
        _ => false,
    }
}

#[test]
fn of_a_secret_in_every_field_nothing_stays_but_what_the_table_allows() {
    let mut seed = Seed(0x5ec7_e700);
    let mut fields = 0;
    for form in [Form::Name, Form::Bytes] {
        for schema in SCHEMA.iter().filter(|schema| !matches!(schema.kind, 250 | 251 | 253)) {
            let (bytes, planted) = dump_with(schema.kind, form, &mut seed);
            let searched = Searched::of(planted.iter().map(|planted| planted.secret.as_slice()));
            assert_eq!(searched.found(&bytes).len(), planted.len(), "{}", schema.name);
            for policy in POLICIES {
                let (out, report) = redacted(&bytes, policy);
                let found = searched.found(&out);
                for (number, planted) in planted.iter().enumerate() {
                    fields += 1;
                    let stays = found.contains(&number);
                    let allowed = may_stay(planted.holds, form, policy);
                    assert!(!stays || allowed, "{policy:?} {form:?}: {} is still there", planted.place);
                    // Numbers that count stay, so that the test would see a redaction that removes everything.
                    if planted.holds == Holds::Count {
                        assert!(stays, "{policy:?} {form:?}: {} is gone", planted.place);
                    }
                }
                assert_eq!(report.records, 1, "{}", schema.name);
            }
        }
    }
    assert!(fields > 800, "{fields}");
}

/// A body with secrets in place of every text, byte and number that may be a user's.
fn spoiled(
    kind: RecordKind,
    own: &[Field],
    body: &[u8],
    (seed, secrets): (&mut Seed, &mut Vec<Vec<u8>>),
    out: &mut Encoder<'_>,
) {
    // Code of the kernel stays as it is: its bytes are those of its image.
    let code = kind == Memory::KIND
        && kwab_format::Fields::decode(body).is_ok_and(|(memory, _): (Memory<'_>, u32)| {
            memory.kind == Some(MemoryKind::CODE) && memory.vaddr.is_some_and(|addr| addr >> 47 == 0x1_ffff)
        });
    // Of registers those that hold what code put there, and the stack pointer.
    let is_register = own.first().is_some_and(|field| field.name == "id") && own.len() == 3;
    let general = !is_register
        || kwab_format::Fields::decode(body).is_ok_and(|(reg, _): (Reg<'_>, u32)| reg.id.is_some_and(|id| id.0 < 16));
    let mut fields = FieldIter::new(body);
    while let Ok(Some((number, raw))) = fields.next_field() {
        let holds = own.iter().find(|field| field.number == number).map(|field| field.holds);
        match (raw, holds) {
            (Raw::Bytes(bytes), Some(Holds::Memory)) if !code => {
                let mut bytes = bytes.to_vec();
                for part in bytes.chunks_exact_mut(56) {
                    let secret = seed.bytes(24);
                    let at = seed.next() as usize % 32;
                    part[at..at + 24].copy_from_slice(&secret);
                    secrets.push(secret);
                }
                out.bytes(number, &bytes);
            }
            (Raw::Bytes(_), Some(Holds::Private | Holds::Known | Holds::Prose)) => {
                let secret = [b"/srv/joe/".to_vec(), seed.name(20)].concat();
                out.bytes(number, &secret);
                secrets.push(secret[10..].to_vec());
            }
            (Raw::Int(_), Some(Holds::Word | Holds::Private)) if general => {
                let secret = seed.next() | 1 << 62 & !(1 << 63);
                out.int(number, secret);
                secrets.push(secret.to_le_bytes().to_vec());
            }
            (Raw::Bytes(bytes), Some(Holds::List(fields))) => out.nested(number, |out| {
                let mut rest = bytes;
                while let Some((element, behind)) = split_prefixed(rest) {
                    rest = behind;
                    out.prefixed(|out| spoiled(kind, fields, element, (&mut *seed, &mut *secrets), out));
                }
            }),
            (Raw::Bytes(bytes), _) => out.bytes(number, bytes),
            (Raw::Int(value), _) => out.int(number, value),
        }
    }
}

#[test]
fn of_secrets_in_the_memory_and_texts_of_real_dumps_nothing_stays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let old = ["null-dereference", "lock-order", "stack-overflow", "cache-writable"];
    // Of later kernels: texts of calls, names of wait objects, all memory.
    let new = ["docs/first/crash.kwab", "testing/data/one-death/memory.kwab", "testing/data/timeline/lock-wait.kwab"];
    let old = old.into_iter().map(|name| format!("testing/dumps/{name}.kwab"));
    for name in old.chain(new.map(str::to_owned)) {
        let whole = std::fs::read(folder.join(&name)).expect("a dump");
        let (mut seed, mut secrets) = (Seed(7), Vec::new());
        let mut bytes = Vec::new();
        let mut writer = DumpWriter::new(&mut bytes, FileHeader::new(DumpId(7), BootId([7; 16])));
        records(&whole, |kind, raw| {
            if raw.kind.0 >= 250 {
                return;
            }
            let rows = table::rows(raw.kind.0).expect("known");
            let own: Vec<Field> = rows.fields.iter().chain(table::STAMP).copied().collect();
            let mut body = vec![0; raw.body.len() * 12 + 4096];
            let mut out = Encoder::new(&mut body, 0);
            spoiled(raw.kind, &own, raw.body, (&mut seed, &mut secrets), &mut out);
            let end = out.position().expect("it fits");
            writer.put_raw(kind, RawRecord { kind: raw.kind, body: &body[..end] });
        });
        writer.finish().expect("a vector takes everything");
        let searched = Searched::of(secrets.iter().map(Vec::as_slice));
        assert!(secrets.len() > 200 && searched.found(&bytes).len() == secrets.len(), "{name}: {}", secrets.len());
        for policy in POLICIES {
            let (out, report) = redacted(&bytes, policy);
            assert!(report.lost.is_empty(), "{name}: {:?}", report.lost);
            let found = searched.found(&out);
            assert!(found.is_empty(), "{name}, {policy:?}: {} of {} secrets", found.len(), secrets.len());
        }
    }
}

/// Sections as a kernel and `kwab symbols slim` pack them: the bytes of the file do not show the secret.
#[test]
fn of_secrets_in_packed_sections_nothing_stays() {
    let mut seed = Seed(13);
    let secrets: Vec<Vec<u8>> = (0..5).map(|_| seed.bytes(24)).collect();
    let long = |number: usize| [&[0x90; 64][..], &secrets[number], &[0; 8000]].concat();
    let (stack, ram, log, image) = (long(0), long(1), long(2), long(3));
    let memory =
        Memory { kind: Some(MemoryKind::KERNEL_STACK), vaddr: Some(0xffff_ffff_8020_0000), ..Memory::default() };
    let plain = Memory { paddr: Some(0x1000), bytes: Some(&ram), ..Memory::default() };
    let call = SyscallRecord { nr: Some(1), text1: Some(&secrets[4]), ..SyscallRecord::default() };
    let mut bytes = Vec::new();
    let mut writer = DumpWriter::new(&mut bytes, FileHeader::new(DumpId(8), BootId([8; 16])));
    let mut table = Box::new([0; lz4::TABLE_LEN]);
    let mut put = |kind, append: &dyn Fn(&mut Vec<u8>) -> bool| {
        let mut records = Vec::new();
        assert!(append(&mut records), "it fits");
        writer.put_compressed(kind, 1, &records, None, &mut table);
    };
    let room = 9000;
    put(SectionKind::STACKS, &|to| bulk::append(to, &Memory { bytes: Some(&stack), ..memory }, room));
    put(SectionKind::MEMORY, &|to| bulk::append(to, &plain, room));
    put(SectionKind::LOG, &|to| bulk::append(to, &LogChunk { bytes: Some(&log), ..LogChunk::default() }, room));
    put(SectionKind::IMAGE_FILES, &|to| {
        bulk::append(to, &ImageFile { bytes: Some(&image), ..ImageFile::default() }, room)
    });
    put(SectionKind::SYSCALLS, &|to| bulk::append(to, &call, room));
    writer.finish().expect("a vector takes everything");
    let searched = Searched::of(secrets.iter().map(Vec::as_slice));
    let unpacked = |bytes: &[u8]| {
        let file = DumpFile::from_bytes(bytes.to_vec()).expect("a dump");
        let payloads = (0..file.sections.len()).map(|index| file.payload(index).expect("sound").to_vec());
        payloads.collect::<Vec<_>>().concat()
    };
    assert!(bytes.len() < 2000, "packed: {}", bytes.len());
    assert_eq!(searched.found(&unpacked(&bytes)).len(), secrets.len());
    for policy in POLICIES {
        let (out, report) = redacted(&bytes, policy);
        assert!(report.lost.is_empty() && report.values() >= 5, "{report:?}");
        assert!(searched.found(&out).is_empty() && searched.found(&unpacked(&out)).is_empty(), "{policy:?}");
    }
}

#[test]
fn what_the_format_does_not_know_and_bytes_around_sections_are_removed() {
    let mut seed = Seed(11);
    let secrets: Vec<Vec<u8>> = (0..6).map(|_| seed.name(24)).collect();
    let mut bytes = FileHeader::new(DumpId(1), BootId([9; 16])).encode().to_vec();
    let mut number = 0;
    let mut section = |kind: u16, version: u8, payload: &[u8], records: u32, bytes: &mut Vec<u8>| {
        let mut whole = vec![0; SECTION_HEADER_LEN + payload.len() + SECTION_TRAILER_LEN];
        whole[SECTION_HEADER_LEN..][..payload.len()].copy_from_slice(payload);
        let header = SectionHeader {
            kind: SectionKind(kind),
            version,
            flags: Flags(0),
            payload_len: payload.len() as u32,
            seq: number,
            dump_id: DumpId(1),
            position: bytes.len() as u64,
            records,
        };
        number += 1;
        bytes.extend_from_slice(seal(&mut whole, &header).expect("room"));
    };
    let field = |key: u8, secret: &[u8]| [&[key << 3 | 6, secret.len() as u8], secret].concat();
    let record = |kind: u8, body: Vec<u8>| [&[kind, body.len() as u8, 0, 0], &body[..]].concat();
    // A task with a field that the format does not have, a kind that it does not have, then known ones.
    let unknown_field = [&[1 << 3 | 1, 5][..], &field(23, &secrets[0]), &[31 << 3 | 6, 99, 24], &secrets[1]].concat();
    let task = record(43, unknown_field);
    section(10, 0, &[task, record(200, field(1, &secrets[2]))].concat(), 2, &mut bytes);
    bytes.extend_from_slice(&secrets[3]);
    section(0x8000, 0, &record(43, field(4, &secrets[4])), 1, &mut bytes);
    section(10, 1, &record(43, field(4, &secrets[5])), 1, &mut bytes);
    bytes.extend_from_slice(&seed.name(64));
    for policy in POLICIES {
        let (out, report) = redacted(&bytes, policy);
        for (at, secret) in secrets.iter().enumerate() {
            assert!(is_in(secret, &bytes) && !is_in(secret, &out), "{policy:?}: secret {at}");
        }
        assert_eq!((report.unknown_sections, report.records), (2, 1));
        assert!(report.removed.iter().any(|field| field.field == "kind 200"), "{:?}", report.removed);
        assert!(report.removed.iter().any(|field| field.field == "Task.field 99"), "{:?}", report.removed);
        assert!(!report.lost.is_empty(), "the bytes between sections and the missing end are told");
        assert!(!out.windows(16).any(|part| part == [9; 16]), "the boot's id");
    }
}

#[test]
fn a_redacted_dump_is_sound_says_so_and_is_not_changed_by_another_redaction() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    let whole = std::fs::read(folder.join("null-dereference.kwab")).expect("a dump");
    for policy in POLICIES {
        let (once, first) = redacted(&whole, policy);
        let (twice, second) = redacted(&once, policy);
        let mut file = DumpFile::from_bytes(once.clone()).expect("a dump");
        file.verify_all();
        assert!(file.defects.is_empty() && file.ended, "{:?}", file.defects);
        assert!(first.values() > 40 && first.bytes() > 1000, "{first:?}");
        // The first note is text of kwab, which is not a fixed one, and the second says so.
        assert_eq!(
            second.removed.iter().map(|field| (&*field.field, field.values)).collect::<Vec<_>>(),
            [("Note.text", 1)]
        );
        assert_eq!(redacted(&whole, policy).0, once, "the same every time");
        let mut told = 0;
        records(&twice, |_, raw| {
            if let Ok(AnyRecord::Counter(counter)) = raw.decode() {
                told += usize::from(counter.group == Some(b"redacted"));
            }
        });
        assert_eq!(told, 2 * (first.removed.len() + 1), "both redactions are told");
    }
}
