//! The crash path: detects deaths of the kernel and of programs, and writes their dumps.
//!
//! [`mod@panic`] deals with the kernel's own death, [`parts`] are the sections of a dump in order of value, [`channel`]
//! is where the dump goes. [`watchdog`] notices what no longer moves, [`sysrq`] dies on request; [`verify`] and
//! [`audit`] check a program's memory once it is executed. All layers lie below and none of them names this one: they
//! reach it through traits that they declare ([`Fatal`], [`Observer`], [`procfs::Crash`]), implemented here.

use alloc::vec::Vec;
use core::fmt;

use kernel_logic::signal::SigInfo;
use kwab_format::record::{CauseKind, Reason};
use linux_abi::Errno;
use machine::arch::UserFrame;

use crate::procfs;
use crate::task::{Observer, Thread};
use crate::trace::{Category, Fatal, is_on};
use crate::upper::Kwab;

mod audit;
pub mod channel;
pub mod description;
pub mod panic;
mod parts;
mod sysrq;
mod tasks;
mod verify;
pub mod watchdog;

pub use parts::dumps_processes;

impl Fatal for Kwab {
    fn die(kind: CauseKind, reason: Reason, message: fmt::Arguments<'_>) -> ! {
        panic::die(kind, reason, message)
    }
}

impl Observer for Kwab {
    fn process_dies(thread: &Thread, user: &UserFrame, info: &SigInfo) {
        parts::fatal_signal(thread, user, info);
        parts::dump_process(thread, user, info);
    }

    fn program_executed(thread: &Thread) {
        if is_on(Category::Verify)
            && let Some(mm) = thread.mm()
        {
            verify::verify(thread.pid(), &mm);
        }
        if is_on(Category::Audit)
            && let Some(mm) = thread.mm()
        {
            audit::audit(thread.pid(), &mm);
        }
    }
}

impl procfs::Crash for Kwab {
    fn boot_id() -> [u8; 16] {
        parts::boot_id().0
    }

    fn live_dump() -> Vec<u8> {
        parts::live()
    }

    fn request(text: &[u8]) -> Result<(), Errno> {
        sysrq::request(text)
    }
}
