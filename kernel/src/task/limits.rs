//! Resource limits (getrlimit(2)): the table, its defaults, and the rules for changing it.

use linux_abi::Errno;

/// `RLIM_INFINITY`
pub const INFINITY: u64 = u64::MAX;

/// Resources by number (asm-generic/resource.h).
pub mod resource {
    #![allow(missing_docs, dead_code, reason = "the names are getrlimit(2)'s own, and the list is what it is")]
    pub const CPU: usize = 0;
    pub const FSIZE: usize = 1;
    pub const DATA: usize = 2;
    pub const STACK: usize = 3;
    pub const CORE: usize = 4;
    pub const RSS: usize = 5;
    pub const NPROC: usize = 6;
    pub const NOFILE: usize = 7;
    pub const MEMLOCK: usize = 8;
    pub const AS: usize = 9;
    pub const LOCKS: usize = 10;
    pub const SIGPENDING: usize = 11;
    pub const MSGQUEUE: usize = 12;
    pub const NICE: usize = 13;
    pub const RTPRIO: usize = 14;
    pub const RTTIME: usize = 15;
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

/// All limits of a process.
#[derive(Clone, Copy, Debug)]
pub struct Limits(pub [Limit; resource::COUNT]);

const fn both(value: u64) -> Limit {
    Limit { soft: value, hard: value }
}

impl Limits {
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

    /// The enforced limit of a resource.
    pub fn soft(&self, resource: usize) -> u64 {
        self.0[resource].soft
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
