//! What an attacker tried: digests of removed bytes, bases in the place of selectors, names of a program in the list of
//! a kernel.

use kwab_format::record::*;
use kwab_format::{BootId, DumpId, FileHeader, List, RecordType, SectionKind};

use super::planted::{POLICIES, redacted};
use super::secrets::is_in;
use crate::model::DumpFile;
use crate::model::emit::DumpWriter;
use crate::redact::Policy;

/// A dump of a process whose private texts are all this one.
fn dump_of(secret: &[u8; 12], id: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = DumpWriter::new(&mut bytes, FileHeader::new(DumpId(id), BootId([id as u8; 16])));
    let some = Some(&secret[..]);
    let identity = Identity { kernel_name: Some(b"kwab"), mono_ns: Some(7), hostname: some, ..Identity::default() };
    writer.put(SectionKind::IDENTITY, &Identity { command_line: some, ..identity });
    let cause = Cause { kind: Some(CauseKind::FATAL_SIGNAL), pid: Some(2), comm: some, ..Cause::default() };
    writer.put(SectionKind::CAUSE, &Cause { cmdline: some, ..cause });
    writer.put(SectionKind::TASKS, &Task { pid: Some(2), comm: some, cmdline: some, ..Task::default() });
    writer.put(SectionKind::MEMORY_MAP, &Vma { start: Some(4096), end: Some(8192), path: some, ..Vma::default() });
    let stack = Memory { kind: Some(MemoryKind::USER_STACK), vaddr: Some(4096), bytes: some, ..Memory::default() };
    writer.put(SectionKind::MEMORY, &stack);
    writer.put(SectionKind::LOG, &Text { kind: Some(TextKind::CONSOLE), bytes: some, ..Text::default() });
    writer.finish().expect("a vector takes everything");
    bytes
}

#[test]
fn dumps_that_differ_only_in_what_is_removed_are_one_dump_when_redacted() {
    // The id of an imported dump is a digest of the log that it was made of.
    let dumps = [dump_of(b"hunter2 1234", 0x1234_5678), dump_of(b"swordfish 99", 0x8765_4321)];
    for policy in POLICIES {
        let [one, other] = dumps.each_ref().map(|bytes| redacted(bytes, policy).0);
        assert!(one == other, "{policy:?}: {} of {} bytes differ", differing(&one, &other), one.len());
    }
    // The checksum of a damaged section is a digest too, as it was stored and as it is now.
    let damaged = dumps.map(|mut bytes| {
        let log = memchr::memmem::rfind(&bytes, &[0xf5, b'K', b'W', b'S']).expect("a section");
        let text = memchr::memmem::rfind(&bytes[..log], b"1234").or(memchr::memmem::rfind(&bytes[..log], b"h 99"));
        bytes[text.expect("the last text") - 6] ^= 1;
        bytes
    });
    for policy in POLICIES {
        let [one, other] = damaged.each_ref().map(|bytes| redacted(bytes, policy));
        assert!(one.1.lost.iter().any(|lost| lost.contains("the payload's CRC is wrong")), "{:?}", one.1.lost);
        assert!(one.0 == other.0, "{policy:?}: {} of {} bytes differ", differing(&one.0, &other.0), one.0.len());
    }
}

fn differing(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).filter(|(a, b)| a != b).count() + one.len().abs_diff(other.len())
}

/// A dump of one record.
fn dump_with<'r, R: RecordType<'r>>(record: &R) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = DumpWriter::new(&mut bytes, FileHeader::new(DumpId(7), BootId([7; 16])));
    writer.put(SectionKind::REGISTERS, record);
    writer.finish().expect("a vector takes everything");
    bytes
}

/// What stays of registers.
fn kept(arch: Option<Arch>, role: RegisterRole, regs: &[Reg<'_>]) -> Vec<(u16, Option<u64>)> {
    let registers = Registers { role: Some(role), arch, regs: Some(List::new(regs)), ..Registers::default() };
    let bytes = redacted(&dump_with(&registers), Policy::Kernel).0;
    let file = DumpFile::from_bytes(bytes).expect("a dump");
    let mut kept = Vec::new();
    for index in 0..file.sections.len() {
        let payload = file.payload(index).expect("sound");
        for raw in Records::new(&payload) {
            if let Ok(AnyRecord::Registers(registers)) = raw.decode() {
                let regs = registers.regs.iter().flat_map(List::iter);
                kept.extend(regs.filter_map(|reg| Some((reg.id?.0, reg.value))));
            }
        }
    }
    kept
}

#[test]
fn a_base_that_stands_for_a_selector_and_the_numbers_of_other_processors_are_judged_by_their_values() {
    let reg = |id: u16, value: u64| Reg { id: Some(RegId(id)), value: Some(value), ..Reg::default() };
    // Linux: `FS:  00007f8d5e3c1740(0000)`; the letters are an address that a program gave itself.
    let letters = u64::from_le_bytes(*b"hunter\0\0");
    let regs = [reg(51, 0x10), reg(54, letters), reg(55, 0xffff_8880_3ec0_0000), reg(53, 0x2b)];
    let stays = [(51, Some(0x10)), (54, None), (55, Some(0xffff_8880_3ec0_0000)), (53, Some(0x2b))];
    assert_eq!(kept(Some(Arch::X86_64), RegisterRole::FAULT, &regs), stays);
    // On RISC-V these are floating-point registers, x7 and x16.
    let regs = [reg(51, letters), reg(49, letters), reg(7, letters), reg(16, 0x10)];
    assert_eq!(kept(Some(Arch::RISCV64), RegisterRole::USER, &regs), []);
    let stays = [(51, None), (49, None), (7, None), (16, Some(0x10))];
    assert_eq!(kept(Some(Arch::RISCV64), RegisterRole::FAULT, &regs), stays);
}

#[test]
fn a_panic_keeps_the_names_of_the_kernel_s_frames_and_not_those_of_a_program_s() {
    let frame =
        |addr: u64, sym: &'static [u8]| PanicFrame { addr: Some(addr), sym: Some(sym), ..PanicFrame::default() };
    let frames = [frame(0xffff_ffff_8010_0000, b"kernel::fault"), frame(0x5555_0000_1000, b"wallet::unlock_hunter2")];
    let panic = Panic { backtrace: Some(List::new(&frames)), ..Panic::default() };
    let bytes = redacted(&dump_with(&panic), Policy::Kernel).0;
    assert!(is_in(b"kernel::fault", &bytes) && !is_in(b"wallet::unlock_hunter2", &bytes));
}

#[test]
fn elements_without_a_field_stay_between_those_that_are_judged() {
    let secret = Reg { id: Some(RegId(1)), value: Some(u64::from_le_bytes(*b"hunter22")), ..Reg::default() };
    let small = Reg { id: Some(RegId(2)), value: Some(5), ..Reg::default() };
    let kernel = Reg { id: Some(RegId::CS), value: Some(0x10), ..Reg::default() };
    let regs = [kernel, Reg::default(), Reg::default(), secret, Reg::default(), small, Reg::default()];
    let registers = Registers { role: Some(RegisterRole::FAULT), regs: Some(List::new(&regs)), ..Registers::default() };
    let bytes = redacted(&dump_with(&registers), Policy::Kernel).0;
    let file = DumpFile::from_bytes(bytes).expect("a dump");
    let payload = file.payload(0).expect("sound");
    let Some(AnyRecord::Registers(registers)) = Records::new(&payload).next().and_then(|raw| raw.decode().ok()) else {
        panic!("registers")
    };
    let kept: Vec<_> =
        registers.regs.iter().flat_map(List::iter).map(|reg| (reg.id.map(|id| id.0), reg.value)).collect();
    assert_eq!(
        kept[1..],
        [(None, None), (None, None), (Some(1), None), (None, None), (Some(2), Some(5)), (None, None)]
    );
}
