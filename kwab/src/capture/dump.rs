//! Writes a guest that was read through the monitor as a dump.

use std::io::{self, Write};

use kwab_format::record::{
    Arch, Cause, CauseKind, Cpu, CpuState, Identity, Memory, MemoryKind, Note, NoteKind, Reason, Reg, RegId,
    RegisterRole, Registers, Source, Stamp,
};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind};

use super::registers::Processor;
use super::{Nmi, Snapshot};
use crate::model::emit::DumpWriter;

/// Memory of a processor's code or stack.
#[derive(Debug)]
pub struct MemoryPiece {
    /// Number of the processor whose registers these are.
    pub cpu: u32,
    /// Code, not stack.
    pub is_code: bool,
    /// Address of the first byte.
    pub start: u64,
    /// Address behind the last byte that was wanted.
    pub wanted: u64,
    /// What could be read.
    pub bytes: Vec<u8>,
}

pub(super) fn write(snapshot: &Snapshot, id: u64, wall_ns: i64, out: &mut dyn Write) -> io::Result<()> {
    let mut boot = [0; 16];
    boot[..8].copy_from_slice(&id.to_le_bytes());
    let mut writer = DumpWriter::new(out, FileHeader::new(DumpId(id), BootId(boot)));
    writer.put(
        SectionKind::IDENTITY,
        &Identity {
            arch: Some(Arch::X86_64),
            wall_ns: Some(wall_ns),
            reason: Some(Reason::HANG),
            reason_text: Some(b"captured through QEMU's monitor"),
            producer: Some(concat!("kwab capture ", env!("CARGO_PKG_VERSION")).as_bytes()),
            cpus: u32::try_from(snapshot.processors.len()).ok(),
            page_size: Some(4096),
            hardware: Some(snapshot.qemu.as_bytes()),
            ..Identity::default()
        },
    );
    // The one that does something says most about a hang.
    let chosen = snapshot.processors.iter().find(|one| !one.halted).or(snapshot.processors.first());
    if let Some(chosen) = chosen {
        cause(&mut writer, snapshot, chosen);
    }
    for processor in &snapshot.processors {
        let role = if chosen == Some(processor) { RegisterRole::FAULT } else { RegisterRole::STOPPED };
        of_processor(&mut writer, processor, role);
    }
    for piece in &snapshot.pieces {
        of_memory(&mut writer, snapshot, piece);
    }
    for text in &snapshot.missing {
        let note = Note { kind: Some(NoteKind::DEFECT), text: Some(text.as_bytes()), ..Note::default() };
        writer.put(SectionKind::NOTES, &note);
    }
    writer.put(SectionKind::NOTES, &Source { dialect: Some(b"qmp"), ..Source::default() });
    writer.finish()?;
    Ok(())
}

fn cause(writer: &mut DumpWriter<&mut dyn Write>, snapshot: &Snapshot, processor: &Processor) {
    let message: &[u8] = match snapshot.nmi {
        Nmi::NotSent => b"captured from outside; no non-maskable interrupt was sent",
        Nmi::Refused => b"captured from outside; this machine has no non-maskable interrupt",
        Nmi::Ignored | Nmi::Taken => b"captured from outside; the guest did not act on a non-maskable interrupt",
    };
    let record = Cause {
        kind: Some(CauseKind::LIVE),
        message: Some(message),
        ip: Some(processor.ip()),
        sp: Some(processor.sp()),
        in_kernel: Some(!processor.in_user),
        stamp: Stamp { cpu: Some(processor.number), ..Stamp::default() },
        ..Cause::default()
    };
    writer.put(SectionKind::CAUSE, &record);
}

fn of_processor(writer: &mut DumpWriter<&mut dyn Write>, processor: &Processor, role: RegisterRole) {
    let regs: Vec<Reg<'_>> = processor.registers.iter().map(|(id, value)| Reg::new(*id, *value)).collect();
    let record = Registers {
        role: Some(role),
        arch: Some(Arch::X86_64),
        regs: Some(List::new(&regs)),
        stamp: Stamp { cpu: Some(processor.number), ..Stamp::default() },
        ..Registers::default()
    };
    writer.put(SectionKind::REGISTERS, &record);
    let record = Cpu {
        number: Some(processor.number),
        state: Some(if processor.halted { CpuState::IDLE } else { CpuState::STOPPED }),
        interrupts_on: Some(processor.interrupts_on()),
        page_table_root: Some(processor.get(RegId::CR3)).filter(|root| *root != 0),
        ..Cpu::default()
    };
    writer.put(SectionKind::REGISTERS, &record);
}

fn of_memory(writer: &mut DumpWriter<&mut dyn Write>, snapshot: &Snapshot, piece: &MemoryPiece) {
    let processor = snapshot.processors.iter().find(|one| one.number == piece.cpu);
    let kind = match (piece.is_code, processor.is_some_and(|one| one.in_user)) {
        (true, _) => MemoryKind::CODE,
        (false, true) => MemoryKind::USER_STACK,
        (false, false) => MemoryKind::KERNEL_STACK,
    };
    let label = format!("cpu {}", piece.cpu);
    let wanted = piece.wanted.saturating_sub(piece.start);
    let marked = processor.filter(|_| piece.is_code).map(|one| one.ip().saturating_sub(piece.start));
    let record = Memory {
        kind: Some(kind),
        vaddr: Some(piece.start),
        bytes: Some(&piece.bytes),
        wanted: Some(wanted).filter(|wanted| *wanted > piece.bytes.len() as u64),
        marked,
        label: Some(label.as_bytes()),
        ..Memory::default()
    };
    writer.put(SectionKind::STACKS, &record);
}
