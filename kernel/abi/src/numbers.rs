//! Numbers in structures and arguments that belong to no set of flags, each of the type that its field or argument has.

/// Declares constants, and a table of them for the test against the headers.
macro_rules! numbers {
    ($($name:ident: $type:ty = $value:expr, $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: $type = $value;)*
        /// Every name with its number.
        pub static TABLE: &[(&str, i64)] = &[$((stringify!($name), $name as i64)),*];
    };
}

numbers! {
    AT_FDCWD: i32 = -100, "Paths begin at the current directory (openat(2))";
    O_ACCMODE: u32 = 3, "The bits of `open` flags that say for what a file is opened (open(2))";
    S_IFMT: u32 = 0o170_000, "The bits of a mode that say what a file is (inode(7))";
    UTIME_NOW: u64 = (1 << 30) - 1, "In `tv_nsec`: now (utimensat(2))";
    UTIME_OMIT: u64 = (1 << 30) - 2, "In `tv_nsec`: leave the time alone (utimensat(2))";
    F_OWNER_TID: u32 = 0, "`f_owner_ex.type`: a thread (fcntl(2))";
    F_OWNER_PID: u32 = 1, "`f_owner_ex.type`: a process (fcntl(2))";
    F_OWNER_PGRP: u32 = 2, "`f_owner_ex.type`: a process group (fcntl(2))";
    F_RDLCK: u16 = 0, "`l_type`: a shared lock (fcntl(2))";
    F_WRLCK: u16 = 1, "`l_type`: an exclusive lock (fcntl(2))";
    F_UNLCK: u16 = 2, "`l_type`: no lock (fcntl(2))";
    MAP_TYPE: u64 = 0xf, "The bits of `mmap` flags that say whether changes are shared (asm-generic/mman-common.h)";
    MAP_HUGE_SHIFT: u32 = 26, "Where `mmap` flags have the logarithm of a page's size (linux/mman.h)";
    MAP_HUGE_MASK: u64 = 0x3f, "The bits of that number (linux/mman.h)";
    CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000, "`clone3`: handlers are put back to their default (linux/sched.h)";
    CLONE_INTO_CGROUP: u64 = 0x2_0000_0000, "`clone3`: the child begins in a cgroup (linux/sched.h)";
    SCM_RIGHTS: u32 = 1, "A control message with descriptors (unix(7))";
    SCM_CREDENTIALS: u32 = 2, "A control message with the sender's ids (unix(7))";
    SIG_DFL: u64 = 0, "The default disposition of a signal (sigaction(2))";
    SIG_IGN: u64 = 1, "The disposition that ignores a signal (sigaction(2))";
    SI_USER: i32 = 0, "`si_code`: sent by kill(2) (sigaction(2))";
    SI_KERNEL: i32 = 0x80, "`si_code`: sent by the kernel (sigaction(2))";
    SI_QUEUE: i32 = -1, "`si_code`: sent by sigqueue(3) (sigaction(2))";
    SI_TIMER: i32 = -2, "`si_code`: a POSIX timer expired (sigaction(2))";
    SI_MESGQ: i32 = -3, "`si_code`: a message arrived in a queue (mq_notify(3))";
    SI_TKILL: i32 = -6, "`si_code`: sent by tkill(2) or tgkill(2) (sigaction(2))";
}
