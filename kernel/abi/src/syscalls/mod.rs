//! The x86_64 system calls: number, name, what each argument is, what the result is.
//!
//! Numbers from arch/x86/entry/syscalls/syscall_64.tbl (asm/unistd_64.h); arguments from section 2 of the manual pages
//! and include/linux/syscalls.h. The list itself is `table`; dispatch matches on [`nr`], tracing and decoding read
//! [`by_number`].

use crate::flags::FlagSet;

pub mod pointee;
mod table;
mod traits;

pub use table::{TABLE, nr};
pub use traits::Traits;

/// What an argument register holds.
#[derive(Debug, Clone, Copy)]
pub enum ArgKind {
    /// A file descriptor (int).
    Fd,
    /// A directory descriptor, or `AT_FDCWD` (int).
    DirFd,
    /// User address of a path.
    Path,
    /// User address of a string other than a path.
    Str,
    /// User address of anything else.
    Ptr,
    /// A count of bytes or elements (`size_t`).
    Size,
    /// A file offset (`loff_t`, signed).
    Offset,
    /// Permission bits (`mode_t`, octal).
    Mode,
    /// A process, thread or group id (int; negative for groups, 0 for oneself).
    Pid,
    /// A user or group id (-1: leave alone).
    Id,
    /// A signed int.
    Int,
    /// An unsigned int.
    Uint,
    /// A signed long.
    Long,
    /// A word best read in hexadecimal: a device number, a magic, a cookie.
    Hex,
    /// A signal number.
    Signal,
    /// An int of named bits or values.
    Flags(&'static FlagSet),
    /// A long of named bits or values.
    Flags64(&'static FlagSet),
    /// `clone`'s word: flags, and the exit signal in the low byte.
    CloneFlags,
    /// A microsecond, second or millisecond count (int).
    Time,
}

/// One argument of a system call: its name and what it means.
#[derive(Debug, Clone, Copy)]
pub struct Arg {
    /// The name the manual page gives it.
    pub name: &'static str,
    /// What it holds.
    pub kind: ArgKind,
}

/// What the result register holds on success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    /// Zero, or a plain number.
    Int,
    /// A new file descriptor.
    Fd,
    /// An address in the caller's memory.
    Address,
    /// A count of bytes.
    Size,
    /// A process or thread id.
    Pid,
    /// The call does not return.
    Never,
    /// A word best read in hexadecimal.
    Hex,
}

/// One system call.
#[derive(Debug, Clone, Copy)]
pub struct Syscall {
    /// The number in `rax`.
    pub nr: u16,
    /// The name of the table, which is the name without `sys_`.
    pub name: &'static str,
    /// The arguments that are used, at most six.
    pub args: &'static [Arg],
    /// What comes back.
    pub result: ResultKind,
    /// What else it does.
    pub traits: Traits,
}

/// The first number after the gap 335..=423, which x86_64 leaves empty to share numbers with other architectures.
const SECOND_RANGE: u64 = 424;
/// How many entries lie before the gap.
const FIRST_RANGE: u64 = 335;

/// The call with this number; `None` for numbers the table does not have.
pub fn by_number(nr: u64) -> Option<&'static Syscall> {
    let index = match nr {
        0..FIRST_RANGE => nr,
        SECOND_RANGE.. => nr - SECOND_RANGE + FIRST_RANGE,
        _ => return None,
    };
    TABLE.get(usize::try_from(index).ok()?)
}

/// The call with this name.
pub fn by_name(name: &str) -> Option<&'static Syscall> {
    TABLE.iter().find(|call| call.name == name)
}
