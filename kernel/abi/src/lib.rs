//! Linux's numbers and layouts, each with its source.
//!
//! One copy of every table, read by the kernel's dispatch and tracing and by the host's strace-like decoding, so that
//! the two cannot disagree. A module per subject:
//!
//! | module | what |
//! |---|---|
//! | [`syscalls`] | the x86_64 table 0..=462: number, name, what each argument is, what the result is |
//! | [`capabilities`] | capability numbers |
//! | [`errno`] | error numbers, names, texts |
//! | [`signals`] | signals, default actions, `si_code`s |
//! | [`numbers`] | numbers in structures and arguments that belong to no set of flags |
//! | [`flags`] | names of flag bits and command values, as constants and as tables |
#![no_std]

pub mod capabilities;
pub mod errno;
pub mod flags;
pub mod numbers;
pub mod signals;
pub mod syscalls;

pub use errno::Errno;
pub use signals::Signal;
