//! What follows from the bare facts of a fault: a jump to nowhere, a null pointer, a write to read-only memory.
//!
//! Only what the facts force is said; hypotheses with scores are the business of triage.

use kwab_format::record::{RegisterRole, Registers, UnimplementedSyscall};

use super::{VmaRow, address, text};
use crate::analysis::headline::NULL_PAGE;
use crate::decode::{Paging, PointerClass, classify_on};
use crate::memory::levels;
use crate::model::{Death, Dump, call};

/// The page-fault error code in words (Intel SDM volume 3, "Page-Fault Exceptions").
pub(super) fn error_code(code: u64) -> String {
    let action = match code & 0x12 {
        0x10 | 0x12 => "instruction fetch",
        2 => "write",
        _ => "read",
    };
    let mode = if code & 4 != 0 { "user" } else { "supervisor" };
    let page = if code & 1 != 0 { "protection violation" } else { "page not present" };
    let reserved = if code & 8 != 0 { ", reserved bit set in a page table" } else { "" };
    format!("{action}, {mode} mode, {page}{reserved}")
}

/// The exception's name and error code.
pub(super) fn exception(death: &Death) -> Option<String> {
    let name = death.exception.as_deref().map(text);
    let paged = name.as_ref().is_none_or(|name| name.contains("page fault"));
    let code = death.error_code.map(|code| match paged && death.fault_addr.is_some() {
        true => format!("error code {code:#x}: {}", error_code(code)),
        false => format!("error code {code:#x}"),
    });
    match (name, code) {
        (Some(name), Some(code)) => Some(format!("{name}, {code}")),
        (name, code) => name.or(code),
    }
}

/// What follows from the facts, each a sentence.
pub(super) fn reasons(dump: &Dump, death: &Death, vmas: &[VmaRow]) -> Vec<String> {
    let mut reasons = Vec::new();
    match (death.ip, death.fault_addr) {
        (Some(ip), _) if ip < NULL_PAGE => {
            reasons.push(format!(
                "ip is {ip:#x}: a call or return through a null or overwritten code pointer; the caller is on the stack"
            ));
        }
        (_, Some(addr)) if addr < NULL_PAGE => {
            reasons.push(format!("address {addr:#x} lies in the first page: a null pointer plus an offset of {addr}"));
        }
        (_, Some(addr)) if is_unmappable(dump, addr) => {
            reasons.push(format!("address {addr:#x} is not canonical: a corrupted pointer"));
        }
        _ => {}
    }
    if let Some(addr) = death.fault_addr.filter(|_| !vmas.is_empty()) {
        let here: Vec<_> = vmas.iter().filter(|vma| vma.fault).collect();
        match here.as_slice() {
            [] => reasons.push(format!("no mapping contains {}", address(addr))),
            [one] => {
                let contradiction = match (death.signal, death.signal_code) {
                    (Some(11), Some(1)) => {
                        ", but the signal's code (SEGV_MAPERR) says that it is not: one of the two is wrong"
                    }
                    _ => "",
                };
                reasons.push(format!("{} is mapped: {} {}{contradiction}", address(addr), one.prot, one.name));
            }
            several => reasons.push(format!("{} lies in {} overlapping mappings", address(addr), several.len())),
        }
    }
    let user = dump.records::<Registers<'_>>().find(|set| set.role == Some(RegisterRole::USER));
    if let Some(call) = user.as_ref().and_then(call::in_progress) {
        reasons.push(format!("user code was in {call}"));
    }
    let calls: Vec<UnimplementedSyscall<'_>> = dump.records::<UnimplementedSyscall<'_>>().take(64).collect();
    let mine: Vec<_> = calls.iter().filter(|call| call.pid.is_some() && call.pid == death.pid).collect();
    if let Some(call) = mine.last() {
        reasons.push(format!(
            "the process had made system call {}, which the kernel does not implement",
            call.nr.unwrap_or(-1)
        ));
    }
    reasons
}

/// Whether no page table of the machine can map an address. Of a machine that the dump does not name nothing is said.
fn is_unmappable(dump: &Dump, addr: u64) -> bool {
    let arch = dump.identity().and_then(|identity| identity.arch);
    let five_levels = || levels(dump.records::<Registers<'_>>()) == 5;
    arch.is_some()
        && classify_on(Paging::on(arch), addr) == PointerClass::NonCanonical
        && classify_on(Paging { arch, five_levels: five_levels() }, addr) == PointerClass::NonCanonical
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_read_as_the_manual_says() {
        assert_eq!(error_code(0x10), "instruction fetch, supervisor mode, page not present");
        assert_eq!(error_code(7), "write, user mode, protection violation");
        assert_eq!(error_code(4), "read, user mode, page not present");
    }
}
