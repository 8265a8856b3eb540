//! What the log has said about processes so far: their programs and their last faults, which a death later refers to.
//!
//! Bounded: at most `REMEMBERED` processes are known at once; one more forgets the others.

use std::collections::HashMap;

use kwab_format::record::{PageFault, ProcessExec, ProcessFork, UserFault};

use super::crash::{Crash, Victim};
use super::text::kernel::FaultNotice;

/// Processes whose names and last faults are remembered.
const REMEMBERED: usize = 4096;
/// Lines after which a fault no longer explains a death.
const FAULT_LINES: u64 = 64;

/// The last fault of a process.
#[derive(Debug, Clone, Default)]
struct Fault {
    ip: Option<u64>,
    address: Option<u64>,
    exception: Option<Vec<u8>>,
    line: u64,
}

/// Programs and faults by process.
#[derive(Debug, Clone, Default)]
pub struct Processes {
    programs: HashMap<u32, Vec<u8>>,
    faults: HashMap<u32, Fault>,
}

impl Processes {
    /// Forgets everything: a new boot begins.
    pub fn clear(&mut self) {
        self.programs.clear();
        self.faults.clear();
    }

    /// A process runs another program.
    pub fn exec(&mut self, exec: &ProcessExec<'_>) {
        if let (Some(pid), Some(argv0)) = (exec.pid, exec.argv0) {
            if self.programs.len() >= REMEMBERED {
                self.programs.clear();
            }
            self.programs.insert(pid, argv0.to_vec());
        }
    }

    /// The program of process 1, which the kernel names on its console.
    pub fn init(&mut self, program: &[u8]) {
        self.programs.entry(1).or_insert_with(|| program.to_vec());
    }

    /// A process was made; it runs its parent's program.
    pub fn fork(&mut self, fork: &ProcessFork<'_>) {
        if let (Some(parent), Some(child)) = (fork.parent_pid, fork.child_pid) {
            self.faults.remove(&child);
            match self.programs.get(&parent).cloned() {
                Some(program) => self.programs.insert(child, program),
                None => self.programs.remove(&child),
            };
        }
    }

    /// A page fault that was not resolved.
    pub fn page_fault(&mut self, fault: &PageFault<'_>, line: u64) {
        let exception = Some(b"page fault".to_vec());
        self.fault(fault.pid.unwrap_or(0), Fault { ip: fault.ip, address: fault.vaddr, exception, line });
    }

    /// An exception in a program.
    pub fn user_fault(&mut self, fault: &UserFault<'_>, line: u64) {
        let pid = fault.pid.unwrap_or(0);
        let known = self.faults.get(&pid).and_then(|known| known.address);
        let exception = fault.exception.map(<[u8]>::to_vec);
        self.fault(pid, Fault { ip: fault.ip, address: fault.fault_addr.or(known), exception, line });
    }

    /// A fault that the kernel printed.
    pub fn printed_fault(&mut self, notice: &FaultNotice<'_>, line: u64) {
        let exception = self.faults.get(&notice.pid).and_then(|fault| fault.exception.clone());
        self.fault(notice.pid, Fault { ip: Some(notice.ip), address: notice.address, exception, line });
    }

    fn fault(&mut self, pid: u32, fault: Fault) {
        if self.faults.len() >= REMEMBERED {
            self.faults.clear();
        }
        self.faults.insert(pid, fault);
    }

    /// Adds what is known about the victim to a crash that has just been announced.
    pub fn describe(&self, crash: &mut Crash) {
        let Victim::Process(pid) = crash.victim else { return };
        crash.death.comm = self.programs.get(&pid).cloned();
        let line = crash.position.line;
        if let Some(fault) = self.faults.get(&pid).filter(|fault| line.saturating_sub(fault.line) <= FAULT_LINES) {
            crash.death.ip = fault.ip;
            crash.death.fault_addr = fault.address;
            crash.death.exception.clone_from(&fault.exception);
        }
    }
}

#[cfg(test)]
mod tests {
    use kwab_format::record::CauseKind;

    use super::super::lines::LogPosition;
    use super::*;

    fn described(processes: &Processes, pid: u32, line: u64) -> Crash {
        let mut crash = Crash::new(Victim::Process(pid), CauseKind::FATAL_SIGNAL, LogPosition { offset: 0, line });
        processes.describe(&mut crash);
        crash
    }

    #[test]
    fn a_child_has_the_program_of_its_parent_and_not_its_faults() {
        let mut processes = Processes::default();
        processes.init(b"/init");
        processes.init(b"/other");
        let fault = PageFault { pid: Some(1), ip: Some(7), vaddr: Some(16), ..PageFault::default() };
        processes.page_fault(&fault, 10);
        processes.fork(&ProcessFork { parent_pid: Some(1), child_pid: Some(2), ..ProcessFork::default() });
        let child = described(&processes, 2, 11);
        assert_eq!((child.death.comm.as_deref(), child.death.ip), (Some(&b"/init"[..]), None));
        let parent = described(&processes, 1, 10 + FAULT_LINES);
        assert_eq!((parent.death.ip, parent.death.fault_addr), (Some(7), Some(16)));
        assert_eq!(described(&processes, 1, 11 + FAULT_LINES).death.ip, None, "an old fault explains nothing");
        processes.clear();
        assert_eq!(described(&processes, 1, 11).death.comm, None);
    }
}
