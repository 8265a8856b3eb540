//! Recognises the lines of text that kernels print around a death; each parser takes one cleaned line.
//!
//! Cleaned means: no escape sequences, no NULs, no line end ([`clean`]). [`kernel`] has the forms of the `DBG`
//! dialect's kernels, [`linux`] those of Linux. Parsers are `nom` grammars behind functions that give a value or
//! `None`; what a value means for the dump is decided by [`console`](super::console).

pub mod kernel;
pub mod linux;

use std::sync::LazyLock;

use super::reports;
use super::reports::needle::Wanted;

pub use crate::text::console::{Location, clean, location};
pub(crate) use crate::text::console::{Parsed, decimal, hex, signed, spaces};
use memchr::memmem::Finder;

/// Words that announce a kernel's death in the forms of other kernels and firmware.
const DEATHS: &[&[u8]] = &[
    b"kernel panic",
    b"panicked at ",
    b"panic:",
    b"panic!",
    b"unhandled exception",
    b"unhandled kernel",
    b"fatal exception",
    b"fatal trap",
    b"guru meditation",
    b"triple fault",
    b"triggered an exception",
    b"ta panicked with code",
];

/// Words by which a healthy kernel, and prose, speak of panics.
const SETTINGS: &[&[u8]] =
    &[b"panic timeout", b"kernel panics", b"kernel panic timeout", b"panic=", b"panic collector"];

/// What a line must hold that [`announces_death`], [`linux::alarm`], [`linux::segfault`], [`kernel::fault_notice`] or
/// [`kernel::killed_for_memory`] knows.
pub fn needles() -> impl Iterator<Item = Wanted> {
    let spelled = linux::NEEDLES.iter().chain(kernel::NEEDLES).map(|text| Wanted::one(text));
    DEATHS.iter().map(|text| Wanted::in_any_case(text)).chain(spelled)
}

/// Whether a line announces a kernel's death, in words that no other reader here knows. The panic of a Rust program
/// (`thread 'main' panicked at`) is none.
pub fn announces_death(text: &[u8]) -> bool {
    const MARKS: [&[u8]; 7] =
        [b"anic", b"ANIC", b"atal ", b"nhandled ", b"editation", b"iple fault", b"ed an exception"];
    static SIGNS: LazyLock<[Finder<'static>; 7]> = LazyLock::new(|| MARKS.map(Finder::new));
    // Most lines have none of them, and are not copied.
    if text.len() > 4096 || SIGNS.iter().all(|sign| sign.find(text).is_none()) || reports::is_foreign(text) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let settings = SETTINGS.iter().any(|words| reports::words::find(&lower, words).is_some());
    !settings && DEATHS.iter().any(|words| reports::words::find(&lower, words).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_linux_that_speaks_of_faults_announces_no_death() {
        for line in [
            "sd 0:0:0:0: [sda] unrecoverable error, sector 12",
            "audit: ANOM_ABEND comm=demo reason=\"general protection fault\"",
            "IDT: double fault handler installed",
            "Kernel panic timeout is 10 seconds",
            "When the kernel panics you are dropped into the debugger:",
            "Nov  6 12:13:14 host demo[97]: panic: runtime error",
        ] {
            assert!(!announces_death(line.as_bytes()), "{line}");
        }
        assert!(announces_death(b"user_ta_enter: TA panicked with code 0xdeadbeef"));
        assert!(announces_death(b"Task init(4) triggered an exception: 'fault'"));
    }
}
