//! Judges every rule on dumps written for it: where it must speak, where it must be silent, and with parts lost.

mod answers;
mod audit;
mod damage;
mod deaths;
mod evidence;
mod hangs;
mod logs;
mod stuck;
mod triage;
mod verify;
mod wakes;
mod work;

use kwab_format::record::*;
use kwab_format::wire::RecordType;
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind, Sink, SinkError, Writer};

use super::verify::Backing;
use super::*;
use crate::model::{Case, Dump};
use crate::symbols::Symbols;

/// Memory as a sink.
struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A dump in the making: sections are begun by the kind of the record's place.
struct Maker {
    parts: Vec<(SectionKind, Vec<u8>)>,
}

impl Maker {
    fn new() -> Self {
        Self { parts: Vec::new() }
    }

    /// Adds a record to the section of `kind`.
    fn put<'r, R: RecordType<'r>>(mut self, kind: SectionKind, record: &R) -> Self {
        let mut buf = vec![0; 1 << 20];
        let mut writer = Writer::new(Bytes(Vec::new()), &mut buf, header());
        writer.begin(kind).unwrap();
        writer.put(record).unwrap();
        let (Bytes(bytes), done) = writer.finish();
        done.unwrap();
        // The record's own bytes: header and body, out of the dump that holds nothing else.
        let reader = kwab_format::Reader::new(&bytes).unwrap();
        let payload = reader.sections().find_map(|item| match item {
            kwab_format::Item::Section(section) if section.header.kind == kind => Some(section.payload.to_vec()),
            _ => None,
        });
        self.parts.push((kind, payload.unwrap()));
        self
    }

    /// The finished dump: one section per kind, in the order in which kinds came up.
    fn bytes(&self) -> Vec<u8> {
        let mut buf = vec![0; 1 << 20];
        let mut writer = Writer::new(Bytes(Vec::new()), &mut buf, header());
        let mut kinds: Vec<SectionKind> = Vec::new();
        for (kind, _) in &self.parts {
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        for kind in kinds {
            writer.begin(kind).unwrap();
            for (_, payload) in self.parts.iter().filter(|(other, _)| *other == kind) {
                for record in Records::new(payload) {
                    writer.put_raw(&record).unwrap();
                }
            }
        }
        let (Bytes(bytes), done) = writer.finish();
        done.unwrap();
        bytes
    }

    /// The dump with one more section of each of these kinds, damaged.
    fn bytes_with_lost(&self, lost: &[SectionKind]) -> Vec<u8> {
        let mut buf = vec![0; 1 << 20];
        let mut writer = Writer::new(Bytes(Vec::new()), &mut buf, header());
        for (kind, payload) in &self.parts {
            writer.begin(*kind).unwrap();
            for record in Records::new(payload) {
                writer.put_raw(&record).unwrap();
            }
        }
        for kind in lost {
            writer.begin(*kind).unwrap();
            writer.put(&Note { text: Some(MARK), ..Note::default() }).unwrap();
        }
        let (Bytes(mut bytes), done) = writer.finish();
        done.unwrap();
        let marks: Vec<usize> = memchr::memmem::find_iter(&bytes, MARK).collect();
        assert_eq!(marks.len(), lost.len());
        for at in marks {
            bytes[at] ^= 1;
        }
        bytes
    }
}

const MARK: &[u8] = b"this section is lost";

fn header() -> FileHeader {
    FileHeader::new(DumpId(0x1122_3344_5566_7788), BootId([7; 16]))
}

fn judge(bytes: Vec<u8>) -> Triage {
    judge_with(bytes, &Backing::none())
}

fn judge_with(bytes: Vec<u8>, backing: &Backing) -> Triage {
    let dump = Dump::from_bytes(bytes).unwrap();
    let case = dump.case();
    triage(&case, &Symbols::new(), backing, "crash.kwab")
}

fn regs(values: &[(RegId, u64)]) -> Vec<Reg<'static>> {
    values.iter().map(|&(id, value)| Reg::new(id, value)).collect()
}

fn kernel_fault(fault_addr: u64, ip: u64, error_code: u64) -> Cause<'static> {
    Cause {
        kind: Some(CauseKind::EXCEPTION),
        message: Some(b"page fault in the kernel"),
        pid: Some(7),
        comm: Some(b"worker"),
        fault_addr: Some(fault_addr),
        ip: Some(ip),
        vector: Some(14),
        error_code: Some(error_code),
        in_kernel: Some(true),
        ..Cause::default()
    }
}

fn user_death(signal: u32, ip: u64, fault_addr: Option<u64>) -> Cause<'static> {
    Cause {
        kind: Some(CauseKind::FATAL_SIGNAL),
        pid: Some(7),
        comm: Some(b"prog"),
        signal: Some(signal),
        ip: Some(ip),
        fault_addr,
        in_kernel: Some(false),
        ..Cause::default()
    }
}

fn vma(start: u64, end: u64, prot: u32, path: &'static str) -> Vma<'static> {
    let path = (!path.is_empty()).then_some(path.as_bytes());
    Vma {
        pid: Some(7),
        start: Some(start),
        end: Some(end),
        prot: Some(prot),
        path,
        file_offset: Some(0),
        ..Vma::default()
    }
}

/// Rights bits of a [`Pte`]: present, and what the letters say.
fn pte(vaddr: u64, frame: u64, rights: &str) -> Pte<'static> {
    let bit = |letter: char, bit: u32| if rights.contains(letter) { 1 << bit } else { 0 };
    let bits = 1 | bit('w', 1) | bit('x', 2) | bit('u', 3) | bit('c', 7);
    Pte { pid: Some(7), vaddr: Some(vaddr), paddr: Some(frame), size: Some(4096), rights: Some(bits), ..Pte::default() }
}

fn frame(paddr: u64, refcount: u64, flags: u32) -> FrameInfo<'static> {
    FrameInfo { frame: Some(paddr / 4096), refcount: Some(refcount), flags: Some(flags), ..FrameInfo::default() }
}

fn one_level(levels: &[PteLevel<'static>], entry: Pte<'static>) -> Vec<u8> {
    // Lists borrow, so the record is encoded while they live.
    let record = Pte { levels: Some(List::new(levels)), ..entry };
    Maker::new().put(SectionKind::PAGE_TABLE, &record).parts.remove(0).1
}
