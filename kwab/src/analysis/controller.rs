//! What interrupt controllers say: interrupts that a processor does not get, and what became of a timer.
//!
//! A local APIC delivers a vector only if its class (the upper four bits) is above that of the vector in service and of
//! the task priority (Intel SDM 3A, 11.8.3). A vector in service ends by a write to the controller, which an interrupt
//! gate's handler makes with interrupts off; so none is in service while a processor runs with interrupts on, unless
//! that write was forgotten.

use kwab_format::record::Cpu;

use super::context::Context;
use super::keepers;
use crate::model::RecordRef;

/// Vectors of this workspace's kernel, by what interrupts.
const VECTORS: &[(u8, &str)] = &[(0x34, "the serial port"), (0xf0, "the timer"), (0xf1, "another processor")];

/// How many processors were looked at that run with interrupts on, and those that do not get the ones requested.
pub(super) fn untaken(ctx: &Context<'_, '_>) -> (u64, Vec<(String, RecordRef)>) {
    let (mut checked, mut found) = (0, Vec::new());
    for cpu in ctx.case.cpus.iter().filter(|cpu| cpu.interrupts_on == Some(true)) {
        let (Some(number), Some(served)) = (cpu.number, cpu.vector_in_service) else { continue };
        checked += 1;
        let requested = cpu.vector_requested.filter(|vector| *vector != 0);
        let waits = requested.map(|vector| format!("; {} waits", vector_name(ctx, vector))).unwrap_or_default();
        if served != 0 {
            let name = vector_name(ctx, served);
            let row = format!(
                "CPU {number} runs with interrupts on while {name} is still in service: its end was not written, and \
                 no vector up to {:#x} is delivered{waits}",
                served | 0xf
            );
            found.push((row, cpu.at));
        } else if let (Some(vector), Some(priority)) = (requested, cpu.task_priority)
            && priority >> 4 >= vector >> 4
        {
            let name = vector_name(ctx, vector);
            let row = format!("CPU {number}: {name} is held back by the task priority {priority:#x}");
            found.push((row, cpu.at));
        }
    }
    (checked, found)
}

/// What became of the timer of a processor that was to end a sleep at `deadline`, in words.
pub(super) fn timer_in_words(cpu: &Cpu<'_>, deadline: u64) -> Option<String> {
    let (counts, at) = (cpu.timer_counts?, cpu.timer_ns?);
    let what = match (at, counts) {
        (0, false) => "is not armed".to_owned(),
        (0, true) => "counts though the kernel wants no interrupt of it".to_owned(),
        (at, true) if at > deadline => format!("is armed for {:.1} s after that deadline", seconds(at - deadline)),
        (_, true) => "counts although its time is over".to_owned(),
        (_, false) if cpu.vector_in_service.is_some_and(|vector| vector != 0) => {
            "has expired, while an interrupt is still in service".to_owned()
        }
        (_, false) if cpu.vector_requested.is_some_and(|vector| vector != 0) => {
            let why = if cpu.interrupts_on == Some(false) { "interrupts are off" } else { "it is not taken" };
            format!("has expired; an interrupt is requested, and {why}")
        }
        (_, false) => "has expired, and the kernel did not handle it".to_owned(),
    };
    Some(format!("the timer of CPU {} {what}", cpu.number?))
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn vector_name(ctx: &Context<'_, '_>, vector: u8) -> String {
    let known = VECTORS.iter().find(|(known, _)| *known == vector && keepers::is_ours(ctx));
    known.map_or_else(|| format!("interrupt {vector:#x}"), |(_, who)| format!("interrupt {vector:#x} of {who}"))
}
