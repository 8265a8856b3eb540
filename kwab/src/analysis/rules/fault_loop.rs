//! Page faults that come again and again: the kernel says that one is resolved, and the access fails once more.

use kwab_format::record::{RegId, Registers};
use linux_abi::syscalls;

use crate::analysis::context::Context;
use crate::analysis::finding::{Claim, Statement};
use crate::analysis::keepers::{self, Promise, STUBS};
use crate::model::call::{self, Call};
use crate::model::{Located, RecordRef};
use crate::symbols::Probe;

/// The kernel resolved the same page fault again and again, and noticed.
pub(super) fn claim(ctx: &Context<'_, '_>) -> Option<Claim> {
    let addr = number_behind(&ctx.death.message, "faults at ").or(ctx.death.fault_addr)?;
    let claim =
        Claim::new(format!("the page fault at {addr:#x} is resolved again and again, and the access still fails"))
            .because(0.6, ctx.death.message.trim(), ctx.death.at);
    let keepers = keepers::in_words(ctx, Promise::Fault).map(|row| (row, None));
    Some(claim.because_if(0.1, protected(ctx, addr)).because_if(0.0, keepers).blames(ctx.guilty.clone()))
}

/// The call by which the program last changed what it may do at an address: it decides what the fault has to become.
fn protected(ctx: &Context<'_, '_>, addr: u64) -> Option<(String, Option<RecordRef>)> {
    let own = ctx.case.syscalls.iter().rev().filter(|row| row.result == Some(0) && row.pid == ctx.death.pid);
    let mut calls = own.map(|row| {
        let (args, texts) = (row.args(), row.texts());
        (row.at, Call { nr: row.nr, name: row.name, args, texts, result: row.result })
    });
    let (at, call) = calls.find(|(_, call)| {
        let known = call.nr.and_then(|nr| u64::try_from(nr).ok()).and_then(syscalls::by_number);
        let range = call.args[0].zip(call.args[1]);
        known.is_some_and(|known| known.name == "mprotect")
            && range.is_some_and(|(start, size)| start <= addr && addr - start < size)
    })?;
    Some((format!("its last call about that address: {} = 0", call::arguments(&call)), Some(at)))
}

/// Bytes of a stub.
const STUB: u64 = 16;
/// Vector of a page fault (SDM volume 3, table 6-1).
const PAGE_FAULT: u64 = 14;

/// A processor that does not go on and was just entering the kernel by a page fault.
pub(super) fn entry(ctx: &Context<'_, '_>, set: &Located<Registers<'_>>) -> Option<(Statement, Option<RecordRef>)> {
    let ip = set.regs.as_ref()?.iter().find(|reg| reg.id == Some(RegId::RIP))?.value?;
    let symbol = ctx.symbols.resolve(ip, None, Probe::Exact).symbol?;
    if &*symbol.name != STUBS || symbol.offset / STUB != PAGE_FAULT {
        return None;
    }
    let said = "it was taking a page fault, as when one is resolved and comes again";
    let keepers = keepers::in_words(ctx, Promise::Fault).map(|keepers| keepers.behind(&format!("{said}; ")));
    Some((keepers.unwrap_or_else(|| Statement::from(said)), Some(set.at)))
}

/// The hexadecimal number behind some words.
fn number_behind(message: &str, words: &str) -> Option<u64> {
    let (_, rest) = message.split_once(words)?;
    let digits = rest.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], 16).ok()
}
