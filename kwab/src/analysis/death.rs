//! Gathers what the dump says about the one death it is about: who, where, which access, which registers.
//!
//! The same fact may stand in a cause record, a register set, a crash report and a page-fault event; the first that has
//! it wins, in that order, and its place is kept.

use std::ops::Deref;

use kwab_format::record::{CauseKind, Reason, Reg, RegId, RegisterRole, Registers};

use super::headline;
use super::quote::text;
use crate::decode::{Values, has_address, vector_of, without_debug_location};
use crate::model::{Case, Death, Located, RecordRef, program_name};
use crate::unwind;

/// `si_code` of a signal that the kernel sends without an address, as for a general protection fault (sigaction(2)).
const SI_KERNEL: i64 = 0x80;

/// Words of messages about page faults.
const PAGED: &[&str] =
    &["page fault", "paging request", "null pointer dereference", "null-ptr-deref", "unable to handle kernel access"];

/// Registers of one set; no processor has more.
const MOST_REGISTERS: usize = 256;

/// A death with the state of the machine at it, and the records that say so.
#[derive(Clone, Debug, Default)]
pub struct Postmortem {
    /// What is known of the death; empty when the dump tells of none.
    pub death: Death,
    /// Whether the processor was in the kernel.
    pub in_kernel: bool,
    /// Name of the thread, else the command line; empty when neither is known.
    pub program: String,
    /// The message without the location that debug builds put before it.
    pub message: String,
    /// Registers at the fault.
    pub registers: Vec<(RegId, u64)>,
    /// Registers at the fault that have a name only: those that a log of another instruction set prints.
    pub named: Vec<(String, u64)>,
    /// The record that says what died.
    pub at: Option<RecordRef>,
    /// The record with the registers.
    pub registers_at: Option<RecordRef>,
    /// The record with the page fault.
    pub fault_at: Option<RecordRef>,
}

impl Deref for Postmortem {
    type Target = Death;

    fn deref(&self) -> &Death {
        &self.death
    }
}

impl Postmortem {
    /// Looks through the records; an empty value when the dump tells of no death.
    #[must_use]
    pub fn of(case: &Case<'_>) -> Self {
        let mut found = Self::default();
        found.take_cause(case);
        found.take_registers(case);
        found.take_report(case);
        found.take_panic(case);
        found.take_page_fault(case);
        let by_kernel = case.causes.first().is_some_and(|cause| cause.signal_code == Some(SI_KERNEL));
        // The kernel that a log is of may name the address in words; the import keeps no other.
        let told = case
            .identities
            .first()
            .is_some_and(|identity| identity.kernel_name.is_some_and(|name| name.starts_with(b"Linux")));
        let stale = found.vector.is_some_and(|vector| !has_address(vector)) && !told;
        if stale || (by_kernel && found.fault_addr == Some(0)) {
            // No access failed there: the address is that of an older page fault, or a zero for none.
            (found.death.fault_addr, found.fault_at) = (None, None);
        }
        let ring = found.register(RegId::CS).map(|cs| cs & 3);
        if let Some(ring) = ring.filter(|_| found.at.is_none()) {
            found.in_kernel = ring == 0;
        }
        found
    }

    /// Whether the dump is about a death at all.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.at.is_some()
    }

    /// A register at the fault.
    #[must_use]
    pub fn register(&self, id: RegId) -> Option<u64> {
        self.registers.iter().find(|(known, _)| *known == id).map(|(_, value)| *value)
    }

    /// The general registers, for unwinding.
    #[must_use]
    pub fn for_unwinding(&self) -> unwind::Registers {
        let mut registers = unwind::Registers::default();
        for number in 0..unwind::Registers::COUNT as u16 {
            registers.set(number, self.register(RegId(number)));
        }
        registers.set(unwind::Registers::RIP, registers.ip().or(self.ip));
        registers.set(unwind::Registers::RSP, registers.sp().or(self.sp));
        registers
    }

    /// The process whose address space user addresses belong to; `None` for kernel code.
    #[must_use]
    pub fn code_pid(&self) -> Option<u32> {
        if self.in_kernel { None } else { self.pid }
    }

    /// Whether the failed access was an instruction fetch: by the error code, or because the address is the
    /// instruction.
    #[must_use]
    pub fn is_fetch(&self) -> bool {
        let by_code = self.error_code.is_some_and(|code| self.vector == Some(14) && code & 0x10 != 0);
        by_code || (self.fault_addr.is_some() && self.fault_addr == self.ip) || (self.ip == Some(0))
    }

    fn take_cause(&mut self, case: &Case<'_>) {
        let Some(cause) = case.causes.first() else { return };
        self.at = Some(cause.at);
        let signal = cause.kind == Some(CauseKind::FATAL_SIGNAL);
        self.in_kernel = cause.in_kernel.unwrap_or(!signal && cause.kind != Some(CauseKind::LIVE));
        let is_program = signal && !self.in_kernel;
        let name = if is_program { program_name(cause.cmdline, cause.comm) } else { cause.comm.or(cause.cmdline) };
        self.program = text(name);
        self.message = without_debug_location(&text(cause.message)).into_owned();
        self.death = Death::from(&cause.record);
        let named = || vector_of(&text(cause.exception)).or_else(|| vector_of(&self.message));
        self.death.vector = cause.vector.or_else(named);
    }

    fn take_registers(&mut self, case: &Case<'_>) {
        let Some(set) = self.best_set(case) else { return };
        self.registers_at = Some(set.at);
        if let Some(list) = &set.regs {
            self.registers = list.iter().take(MOST_REGISTERS).filter_map(|reg| Some((reg.id?, reg.value?))).collect();
            let named = |reg: Reg<'_>| Some((text(reg.name.filter(|_| reg.id.is_none())), reg.value?));
            let named = list.iter().take(MOST_REGISTERS).filter_map(named);
            self.named = named.filter(|(name, _)| !name.is_empty()).collect();
        }
        self.death.vector = self.vector.or(set.vector);
        self.death.error_code = self.error_code.or(set.error_code);
        self.death.pid = self.pid.or(set.pid);
        self.death.ip = self.ip.or_else(|| self.register(RegId::RIP));
        self.death.sp = self.sp.or_else(|| self.register(RegId::RSP));
        // CR2 keeps the address of the last page fault; it means something only when this was one.
        let paged = match self.vector {
            Some(vector) => has_address(vector),
            // An error code alone says little: every oops of Linux prints one, also those of undefined instructions.
            None => {
                let lower = self.message.to_lowercase();
                let silent = lower.is_empty() && !matches!(self.kind, Some(CauseKind::PANIC | CauseKind::BUG));
                self.error_code.is_some() && (silent || PAGED.iter().any(|words| lower.contains(words)))
            }
        };
        if paged && self.signal.is_none() {
            self.death.fault_addr = self.fault_addr.or_else(|| self.register(RegId::CR2));
        }
        if self.vector.is_none()
            && self.register(RegId::CR2).is_some()
            && self.error_code.is_some()
            && self.fault_addr.is_some()
        {
            self.death.vector = Some(14);
        }
    }

    fn best_set<'c, 'a>(&self, case: &'c Case<'a>) -> Option<&'c Located<Registers<'a>>> {
        let of_role = |role: RegisterRole| {
            let fits = |set: &&Located<Registers<'_>>| {
                set.role == Some(role) && (self.in_kernel || set.pid.is_none() || set.pid == self.pid)
            };
            case.registers.iter().find(fits)
        };
        of_role(RegisterRole::FAULT)
            .or_else(|| if self.in_kernel { None } else { of_role(RegisterRole::USER) })
            .or_else(|| case.registers.iter().find(|set| set.role.is_none()))
    }

    fn take_report(&mut self, case: &Case<'_>) {
        let mut reports = case.crash_reports.iter().filter(|report| self.pid.is_none() || report.pid == self.pid);
        // The last report is the one that the dump was taken for.
        let Some(report) = reports.next_back() else { return };
        if self.at.is_none() {
            self.at = Some(report.at);
            self.death.kind = Some(CauseKind::FATAL_SIGNAL);
        }
        if self.kind != Some(CauseKind::FATAL_SIGNAL) {
            return;
        }
        self.death.pid = self.pid.or(report.pid);
        self.death.signal = self.signal.or(report.signal.and_then(|signal| u32::try_from(signal).ok()));
        self.death.ip = self.ip.or(report.ip);
        self.death.fault_addr = self.fault_addr.or(report.fault_addr);
        if self.program.is_empty() {
            self.program = text(program_name(report.cmdline, None));
        }
        if self.registers.is_empty()
            && let Some(list) = &report.regs
        {
            self.registers = list.iter().take(MOST_REGISTERS).filter_map(|reg| Some((reg.id?, reg.value?))).collect();
            self.registers_at = Some(report.at);
            self.death.sp = self.sp.or_else(|| self.register(RegId::RSP));
        }
    }

    fn take_panic(&mut self, case: &Case<'_>) {
        let Some(panic) = case.panics.first() else { return };
        if self.at.is_none() {
            self.at = Some(panic.at);
            self.death.kind = Some(CauseKind::PANIC);
            self.in_kernel = true;
        }
        if self.message.is_empty() && self.in_kernel {
            self.message = without_debug_location(&text(panic.message)).into_owned();
        }
    }

    fn take_page_fault(&mut self, case: &Case<'_>) {
        let same = |pid: Option<u32>| pid.is_some() && pid == self.pid;
        let fault = case.page_faults.iter().rev().find(|fault| fault.resolved == Some(false) && same(fault.pid));
        if let Some(fault) = fault
            && self.kind == Some(CauseKind::FATAL_SIGNAL)
            && self.ip.is_none_or(|ip| fault.ip.is_none_or(|other| other == ip))
        {
            self.death.fault_addr = self.fault_addr.or(fault.vaddr);
            self.death.ip = self.ip.or(fault.ip);
            self.death.error_code = self.error_code.or(fault.error_code);
            self.death.vector = self.vector.or(Some(14));
            self.fault_at = Some(fault.at);
        }
        // A SIGSEGV or SIGBUS with an address is a page fault whether or not the vector was recorded.
        if self.vector.is_none() && matches!(self.signal, Some(7 | 11)) && self.fault_addr.is_some() {
            self.death.vector = Some(14);
        }
    }

    /// A line that says what died, for the head of a report.
    #[must_use]
    pub fn headline(&self, case: &Case<'_>) -> String {
        if self.is_known() {
            return headline::of(&self.death);
        }
        let reason = case.identities.first().and_then(|identity| identity.reason);
        match reason {
            Some(Reason::LIVE) => "a live dump: nothing died".to_owned(),
            Some(Reason::RECORDING) => "a recording without a crash".to_owned(),
            _ => "the dump does not say what died".to_owned(),
        }
    }
}

/// The name of a signal.
#[must_use]
pub(super) fn signal_name(number: u32) -> Option<String> {
    linux_abi::Signal::new(number.into()).map(|signal| signal.to_string())
}

impl Values for Postmortem {
    fn register(&self, number: u16) -> Option<u64> {
        Self::register(self, RegId(number))
    }

    fn word(&self, _addr: u64) -> Option<u64> {
        None
    }
}
