//! The report of a program that a signal ends: registers, fault address, mapped ranges.

use kernel_logic::signal::{Cause, SigInfo, SigSet};
use kernel_logic::vma::Prot;
use machine::arch::UserFrame;
use machine::thread::running;

use super::event::{Event, signal_name};
use super::{Category, is_on};
use crate::mm::{Backing, Vma};
use crate::task::Task;

/// Most ranges listed, so that the event fits its line; the count of all is beside them.
const MAX_RANGES: usize = 24;

/// Writes `crash_report` for a signal of the program's own making (a fault, an abort), and nothing for `kill`.
pub fn fatal_signal(task: &Task, user: &UserFrame, info: &SigInfo) {
    let self_made = SigSet::SYNCHRONOUS.has(info.signal) || info.signal == kernel_logic::signal::sig::ABRT;
    if !is_on(Category::Panic) || !self_made {
        return;
    }
    let fault_addr = if let Cause::Fault { addr } = info.cause { addr } else { 0 };
    let regs = user.registers();
    let mut comm = [0; 16];
    let len = task.comm(&mut comm);
    let mut event = Event::new("crash_report");
    event.number("pid", u64::from(task.pid())).number("signal", u64::from(info.signal));
    event.string("signal_name", signal_name(info.signal).as_bytes()).string("cmdline", &comm[..len]);
    event.address("fault_addr", fault_addr).address("ip", regs.rip).address("fsbase", running::tls());
    event.object("regs", |event| {
        let named = [
            ("rax", regs.rax),
            ("rbx", regs.rbx),
            ("rcx", regs.rcx),
            ("rdx", regs.rdx),
            ("rsi", regs.rsi),
            ("rdi", regs.rdi),
            ("rbp", regs.rbp),
            ("rsp", regs.rsp),
            ("r8", regs.r8),
            ("r9", regs.r9),
            ("r10", regs.r10),
            ("r11", regs.r11),
            ("r12", regs.r12),
            ("r13", regs.r13),
            ("r14", regs.r14),
            ("r15", regs.r15),
            ("rip", regs.rip),
            ("rflags", regs.rflags),
        ];
        for (name, value) in named {
            event.address(name, value);
        }
    });
    if let Some(mm) = task.mm() {
        let map = mm.lock();
        event.number("vma_count", map.vmas.len() as u64);
        event.array("vmas", |event| {
            for vma in map.vmas.iter().take(MAX_RANGES) {
                event.item(|event| range(event, vma));
            }
        });
    }
    event.emit();
}

fn range(event: &mut Event, vma: &Vma) {
    let kind: &[u8] = match &vma.backing {
        Backing::Anonymous => b"anonymous",
        Backing::File { .. } => b"file",
        Backing::Shared { .. } => b"shared",
        Backing::Vdso { .. } => b"vdso",
    };
    let letter = |prot: Prot, letter: u8| if vma.prot.has(prot) { letter } else { b'-' };
    let prot = [letter(Prot::READ, b'r'), letter(Prot::WRITE, b'w'), letter(Prot::EXEC, b'x')];
    event.address("start", vma.start).address("end", vma.end).string("type", kind).string("prot", &prot);
    if let Backing::File { file, offset } = &vma.backing {
        event.string("file", &file.path.dentry.name()).number("offset", *offset);
    }
}
