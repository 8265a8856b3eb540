//! Contracts: small programs whose output under Linux is the rule for our kernel.
//!
//! [`program`] finds and builds them, [`expected`] remembers what Linux printed for exactly these bytes, [`verdict`]
//! compares and knows the excuses, [`oracle`] finds the first
//! call that differs, [`results`] writes what machines read, [`coverage`] sets the
//! contracts beside the list of system calls. The programs and their rules are in
//! `testing/contracts`.

pub mod coverage;
pub mod expected;
pub mod oracle;
pub mod parted;
pub mod program;
pub mod results;
pub mod verdict;
