//! Capability numbers that permission checks name.
//!
//! Source: capabilities(7), linux/capability.h of Linux 6.1.

/// All capabilities Linux 6.1 knows, as a set: bits 0 to 40.
pub const ALL: u64 = (1 << 41) - 1;

/// Change owners of files.
pub const CHOWN: u32 = 0;
/// Override read, write and execute permission.
pub const DAC_OVERRIDE: u32 = 1;
/// Read files and search directories whatever their mode.
pub const DAC_READ_SEARCH: u32 = 2;
/// Do what only the owner of a file may.
pub const FOWNER: u32 = 3;
/// Keep set-ID bits when a file changes.
pub const FSETID: u32 = 4;
/// Send signals to any process.
pub const KILL: u32 = 5;
/// Change group ids.
pub const SETGID: u32 = 6;
/// Change user ids.
pub const SETUID: u32 = 7;
/// Change capabilities of the process beyond what it has.
pub const SETPCAP: u32 = 8;
/// Administer networks; exceed the limits of socket buffers.
pub const NET_ADMIN: u32 = 12;
/// Lock memory beyond `RLIMIT_MEMLOCK` (mlock(2), shmctl(2)).
pub const IPC_LOCK: u32 = 14;
/// Call chroot(2) and join another mount namespace (setns(2)).
pub const SYS_CHROOT: u32 = 18;
/// Look into any process.
pub const SYS_PTRACE: u32 = 19;
/// Switch process accounting.
pub const SYS_PACCT: u32 = 20;
/// Administer the system: mounts, names, and much else.
pub const SYS_ADMIN: u32 = 21;
/// Call reboot(2) and kexec_load(2).
pub const SYS_BOOT: u32 = 22;
/// Raise priorities, set affinities of others.
pub const SYS_NICE: u32 = 23;
/// Exceed resource limits.
pub const SYS_RESOURCE: u32 = 24;
/// Set the system clock and the real-time clock.
pub const SYS_TIME: u32 = 25;
/// Configure terminals, and vhangup(2).
pub const SYS_TTY_CONFIG: u32 = 26;
/// Make device nodes.
pub const MKNOD: u32 = 27;
/// Read and clear the log of the kernel.
pub const SYSLOG: u32 = 34;
/// Set timers that wake the system.
pub const WAKE_ALARM: u32 = 35;
/// Choose the ids of new processes.
pub const CHECKPOINT_RESTORE: u32 = 40;
