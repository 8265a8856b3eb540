//! Resource limits (getrlimit(2)): the table, its defaults, and the rules for changing it; and how many threads there
//! may be.

use core::sync::atomic::{AtomicU32, Ordering};

use kernel_logic::vma::PAGE;
use linux_abi::Errno;

use super::PID_MAX;
use crate::mm::frames;
use crate::time::SECOND;

/// No limit (`RLIM_INFINITY`).
pub const INFINITY: u64 = u64::MAX;

/// Resources by number (asm-generic/resource.h).
pub mod resource {
    #![allow(missing_docs, dead_code, reason = "the names and their order are those of getrlimit(2)")]
    use linux_abi::flags::process as abi;

    pub const CPU: usize = abi::RLIMIT_CPU as usize;
    pub const FSIZE: usize = abi::RLIMIT_FSIZE as usize;
    pub const DATA: usize = abi::RLIMIT_DATA as usize;
    pub const STACK: usize = abi::RLIMIT_STACK as usize;
    pub const CORE: usize = abi::RLIMIT_CORE as usize;
    pub const RSS: usize = abi::RLIMIT_RSS as usize;
    pub const NPROC: usize = abi::RLIMIT_NPROC as usize;
    pub const NOFILE: usize = abi::RLIMIT_NOFILE as usize;
    pub const MEMLOCK: usize = abi::RLIMIT_MEMLOCK as usize;
    pub const AS: usize = abi::RLIMIT_AS as usize;
    pub const LOCKS: usize = abi::RLIMIT_LOCKS as usize;
    pub const SIGPENDING: usize = abi::RLIMIT_SIGPENDING as usize;
    pub const MSGQUEUE: usize = abi::RLIMIT_MSGQUEUE as usize;
    pub const NICE: usize = abi::RLIMIT_NICE as usize;
    pub const RTPRIO: usize = abi::RLIMIT_RTPRIO as usize;
    pub const RTTIME: usize = abi::RLIMIT_RTTIME as usize;
    pub const COUNT: usize = 16;
}

/// `fs.nr_open`: not even the privileged may permit more descriptors.
pub const MAX_OPEN: u64 = 1 << 20;

/// A soft and a hard limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What is enforced.
    pub soft: u64,
    /// How far an unprivileged process may raise it.
    pub hard: u64,
}

/// Most threads of the whole system (`kernel.threads-max`); 0 until it is set.
static MAX_THREADS: AtomicU32 = AtomicU32::new(0);

/// Most threads of the whole system: what was set, or as many as keep an eighth of memory for their kernel stacks, as
/// Linux has it; never more than there are numbers.
pub fn max_threads() -> u64 {
    let most = u64::from(PID_MAX) - APART;
    match MAX_THREADS.load(Ordering::Relaxed) {
        0 => (frames::given() as u64 * PAGE / (8 * LINUX_STACK)).clamp(FEWEST_THREADS, most),
        set => u64::from(set).min(most),
    }
}

/// Sets it. `EINVAL` for what is none of Linux's thread numbers.
pub fn set_max_threads(threads: u32) -> Result<(), Errno> {
    if threads == 0 || threads > MOST_THREADS {
        return Err(Errno::EINVAL);
    }
    MAX_THREADS.store(threads, Ordering::Relaxed);
    Ok(())
}

/// Numbers that keep the reuse of others apart.
const APART: u64 = 512;
/// Bytes of a kernel stack of Linux on x86_64.
const LINUX_STACK: u64 = 16 << 10;
/// However little memory there is.
const FEWEST_THREADS: u64 = 20;
/// Most threads that can be asked for (`FUTEX_TID_MASK`).
const MOST_THREADS: u32 = 0x3fff_ffff;

/// All limits of a process.
#[derive(Clone, Copy, Debug)]
pub struct Limits(pub [Limit; resource::COUNT]);

const fn both(value: u64) -> Limit {
    Limit { soft: value, hard: value }
}

impl Limits {
    /// The processor time at which a process with these limits is to be told, `u64::MAX` for never.
    pub fn cpu_deadline(&self) -> u64 {
        let cpu = self.0[resource::CPU];
        match cpu.soft.min(cpu.hard) {
            INFINITY => u64::MAX,
            // As on Linux: 0 is as good as 1.
            seconds => seconds.max(1).saturating_mul(SECOND),
        }
    }

    /// What init starts with on Linux, `processes` depending on memory size.
    pub const fn initial(processes: u64) -> Self {
        let mut limits = [both(INFINITY); resource::COUNT];
        limits[resource::STACK] = Limit { soft: 8 << 20, hard: INFINITY };
        limits[resource::CORE] = Limit { soft: 0, hard: INFINITY };
        limits[resource::NPROC] = both(processes);
        limits[resource::NOFILE] = Limit { soft: 1024, hard: 4096 };
        limits[resource::MEMLOCK] = both(8 << 20);
        limits[resource::SIGPENDING] = both(processes);
        limits[resource::MSGQUEUE] = both(819_200);
        limits[resource::NICE] = both(0);
        limits[resource::RTPRIO] = both(0);
        Self(limits)
    }

    /// Changes one limit. `EINVAL` when soft exceeds hard, `EPERM` when hard would rise without privilege.
    pub fn change(&mut self, resource: usize, new: Limit, privileged: bool) -> Result<(), Errno> {
        let old = self.0.get_mut(resource).ok_or(Errno::EINVAL)?;
        if new.soft > new.hard {
            return Err(Errno::EINVAL);
        }
        if (new.hard > old.hard && !privileged) || (resource == resource::NOFILE && new.hard > MAX_OPEN) {
            return Err(Errno::EPERM);
        }
        *old = new;
        if resource == resource::CPU {
            old.soft = old.soft.max(1);
        }
        Ok(())
    }
}
