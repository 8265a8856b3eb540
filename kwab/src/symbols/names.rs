//! Decides how function names are shown: demangled without hashes, and marked when they are machinery.
//!
//! Machinery is what lies between a bug and the code that reports it: `core::panicking`, the panic entry points of the
//! runtime, the call shims of closures. Frames are marked, never dropped; front ends fold what is marked.

use std::fmt::{self, Write as _};

/// The longest name or path that is kept, in bytes; a longer one is cut, and ends with `…`.
pub(super) const LONGEST: usize = 4096;

/// A function name as a person writes it: Rust names demangled without their hash, others unchanged. A name of more
/// than 4096 bytes is cut, and ends with `…`: a short mangled name may refer to its own parts and grow exponentially.
#[must_use]
pub fn demangle(raw: &str) -> String {
    if raw.len() > LONGEST {
        return cut(raw.as_bytes());
    }
    // Local copies made by LLVM and GCC carry suffixes such as `.llvm.123` that rustc-demangle keeps or strips itself.
    let Ok(name) = rustc_demangle::try_demangle(raw) else { return raw.to_owned() };
    let mut written = Short(String::new());
    // It is an error when it is full.
    let _ = write!(written, "{name:#}");
    written.0
}

/// At most [`LONGEST`] bytes of a text and `…` for the rest.
pub(crate) fn cut(raw: &[u8]) -> String {
    let shown = String::from_utf8_lossy(raw.get(..LONGEST).unwrap_or(raw));
    let is_cut = raw.len() > LONGEST;
    // A character that the cut went through is not damage.
    let shown = if is_cut { shown.trim_end_matches(char::REPLACEMENT_CHARACTER) } else { &shown };
    if is_cut { format!("{shown}…") } else { shown.to_owned() }
}

/// A text that ends with `…` and refuses more when it has [`LONGEST`] bytes.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = LONGEST.saturating_sub(self.0.len());
        if part.len() <= room {
            self.0.push_str(part);
            return Ok(());
        }
        self.0.push_str(&part[..part.floor_char_boundary(room)]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

/// Whether a demangled function name is panic or library machinery rather than the code of interest.
#[must_use]
pub fn is_machinery(name: &str) -> bool {
    // A closure's own body is code of interest; the shim through which it is called through a pointer is not.
    if name.contains(CALL_SHIM) || name.contains("{shim:") || name.contains("{{vtable.shim}}") {
        return true;
    }
    let name = name.trim_start_matches(['<', '&', ' ']);
    let begins = |table: &[&str]| table.iter().any(|prefix| name.starts_with(prefix));
    begins(MACHINERY_PREFIXES) || begins(KERNEL) || begins(OTHER_BUILDS) || MACHINERY_NAMES.contains(&name)
}

/// How the name of an implementation of `FnOnce`, `FnMut` or `Fn` goes on behind its type.
const CALL_SHIM: &str = " as core::ops::function::Fn";

/// Paths under which everything is machinery.
const MACHINERY_PREFIXES: &[&str] = &[
    "core::",
    "alloc::",
    "std::panicking::",
    "std::panic::",
    "std::rt::",
    "std::sys::backtrace::",
    "std::sys_common::backtrace::",
    "std::thread::",
    "std::process::abort",
    "__rustc::rust_begin_unwind",
    "__rustc::__rust_start_panic",
    "compiler_builtins::",
    "dyn core::",
    "dyn alloc::",
    "test::__rust_begin_short_backtrace",
];

/// Paths of how this workspace's kernel gives up. `cargo xtask test kernel-names` compares them with its image.
pub(super) const KERNEL: &[&str] = &[
    "kernel::crash::panic::",
    "kernel::trace::die",
    "kernel::crash::<impl kernel::trace::Fatal for kernel::upper::Kwab>::die",
    "kernel::<impl machine::hooks::Kernel for kernel::upper::Kwab>::panic",
    "kernel::<impl machine::hooks::Kernel for kernel::upper::Kwab>::fatal",
    "kernel::<impl machine::hooks::Kernel for kernel::upper::Kwab>::timer",
    "machine::x86_64::memory::stage::",
    "machine::x86_64::entry::early_crash::",
    "machine::x86_64::entry::trap::",
    "machine::time::expired",
    "kernel::crash::watchdog::",
    "kernel::sched::on_timer",
];

/// The same in kernels of `cargo xtask mutants`, and in dumps of builds before the layers of the kernel's crates were
/// named so.
const OTHER_BUILDS: &[&str] = &[
    "linux_abi::mutant::",
    "kernel::debug::panic::",
    "kernel::debug::watchdog::",
    "kernel::Kwab as machine::kernel::Kernel>::",
    "kernel::upper::Kwab as kernel::trace::Fatal>::die",
    "kernel::upper::Kwab as machine::hooks::Kernel>::panic",
    "kernel::upper::Kwab as machine::hooks::Kernel>::timer",
    "kernel::upper::Kwab as machine::kernel::Kernel>::panic",
    "kernel::upper::Kwab as machine::kernel::Kernel>::timer",
    "machine::kernel::panic",
    "machine::x86_64::stage::",
    "machine::x86_64::irq::",
    "machine::x86_64::trap::",
];

/// Names that are machinery by themselves.
const MACHINERY_NAMES: &[&str] = &[
    "rust_begin_unwind",
    "rust_panic",
    "__rust_start_panic",
    "__rust_try",
    "__rust_begin_short_backtrace",
    "__rust_end_short_backtrace",
    "_Unwind_RaiseException",
    "__libc_start_main",
    "__libc_start_call_main",
    "__stack_chk_fail",
    "__assert_fail",
    "abort",
];
