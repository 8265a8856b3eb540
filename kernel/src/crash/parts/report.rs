//! The report of a program that a signal ends: registers, fault address, mapped ranges.

use kernel_logic::signal::{Cause, SigInfo, SigSet};
use machine::arch::UserFrame;
use machine::thread::running;
use machine::time::params;

use super::cause::general;
use crate::mm::{Backing, Vma};
use crate::task::Task;
use crate::trace::event::{Event, signal_name};
use crate::trace::{Category, is_on, limit, ring};

/// Most calls listed.
const MAX_CALLS: u64 = 12;
/// Most ranges listed, so that the event fits its line; the count of all is beside them.
const MAX_RANGES: usize = 24;

/// Of [`general`] those that the event has: up to the flags.
const REPORTED: usize = 18;

/// Writes `crash_report` for a signal of the program's own making (a fault, an abort), and nothing for `kill`. A
/// program that crashes again and again is reported as often as [`limit`] lets it.
pub fn fatal_signal(task: &Task, user: &UserFrame, info: &SigInfo) {
    let self_made = SigSet::SYNCHRONOUS.has(info.signal) || info.signal == kernel_logic::signal::sig::ABRT;
    if is_on(Category::Panic) && self_made && limit::CRASHES.admits() {
        write(task, user, info);
    }
}

#[inline(never)]
fn write(task: &Task, user: &UserFrame, info: &SigInfo) {
    let fault_addr = if let Cause::Fault { addr } = info.cause { addr } else { 0 };
    let regs = user.registers();
    let mut comm = [0; 16];
    let len = task.comm(&mut comm);
    let mut event = Event::new("crash_report");
    event.number("pid", u64::from(task.pid())).number("signal", u64::from(info.signal));
    event.string("signal_name", signal_name(info.signal).as_bytes()).string("cmdline", &comm[..len]);
    event.address("fault_addr", fault_addr).address("ip", regs.rip).address("fsbase", running::tls());
    event.object("regs", |event| {
        for (id, value) in general(regs).into_iter().take(REPORTED) {
            event.address(id.name().unwrap_or("register"), value);
        }
    });
    calls(&mut event, task);
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

/// Its last calls, oldest first.
fn calls(event: &mut Event, task: &Task) {
    let mut skip = ring::counts(task).held().saturating_sub(MAX_CALLS);
    event.array("syscalls", |event| {
        ring::for_each(task, &params(), |call| {
            if skip > 0 {
                skip -= 1;
                return;
            }
            event.item(|event| {
                event.signed("nr", call.nr.unwrap_or(-1)).string("name", call.name.unwrap_or(b"unknown"));
                if let Some(result) = call.result {
                    event.signed("result", result);
                }
                let args = call.args();
                for (name, arg) in ["a0", "a1", "a2", "a3", "a4", "a5"].iter().zip(args) {
                    if let Some(arg) = arg {
                        event.address(name, arg);
                    }
                }
            });
        });
    });
}

fn range(event: &mut Event, vma: &Vma) {
    let kind: &[u8] = match &vma.backing {
        Backing::Anonymous | Backing::Pool { .. } => b"anonymous",
        Backing::File { .. } => b"file",
        Backing::Shared { .. } => b"shared",
        Backing::Vdso { .. } => b"vdso",
    };
    event.address("start", vma.start).address("end", vma.end).string("type", kind);
    event.number("prot", u64::from(vma.prot.0));
    if let Backing::File { file, offset } = &vma.backing {
        event.string("file", &file.path.dentry.name()).number("offset", *offset);
    }
}
