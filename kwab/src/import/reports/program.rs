//! Tells the last words of programs, and the source text of kernels, from what a kernel prints.

use super::words::has;

/// Whether a program's runtime prints such a line: the name of a thread is in the panic message of Rust's standard
/// library, and not in that of a kernel, which has no such library; Go's HTTP server catches panics.
pub(super) fn is_of_program(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    // A journal writes the program's name before it.
    (line.starts_with(b"thread '") || has(line, b"]: thread '")) && has(line, b"panicked at")
        || line.starts_with(b"note: run with `RUST_BACKTRACE=")
        || line.starts_with(b"note: Run with `RUST_BACKTRACE=")
        || line.starts_with(b"fatal runtime error: ")
        || has(line, b"http: panic serving ")
        // The service manager names units, among them those that collect panics.
        || has(line, b" systemd[1]: ")
        || line.starts_with(b"systemd[1]: ")
        || UNHANDLED.iter().any(|words| has(line, words))
        || RUNTIMES.iter().any(|words| line.starts_with(words))
        || is_of_libc(line)
        // The C library's protector of stacks ends the process.
        || has(line, b"stack smashing detected ***: ") && line.trim_ascii_end().ends_with(b"terminated")
}

/// How .NET says that a program ended by an exception; a kernel has a number or a place there.
const UNHANDLED: [&[u8]; 2] = [b"nhandled exception. ", b"nhandled Exception. "];

/// How the runtimes of .NET and Node.js, and the compiler clang, begin their last words.
const RUNTIMES: [&[u8]; 4] = [
    b"Fatal error. ",
    b"FATAL ERROR: Reached heap limit",
    b"fatal error: too many errors emitted",
    b"fatal error: error in backend: ",
];

/// Whether the C library of BSD systems and macOS says which assertion of a program failed: `Assertion failed: (x > 0),
/// function demo, file demo.c, line 12.`
fn is_of_libc(line: &[u8]) -> bool {
    line.starts_with(b"Assertion failed: (") && has(line, b"), function ") && has(line, b", file ")
}

/// Whether syslog or a journal says that a program wrote the line, `Nov  6 12:13:14 host demo[97]: panic: lost`, or
/// PostgreSQL does by the two blanks behind its level. What tells of the kernel's death at the next boot is none, and
/// neither is a kernel that runs as a program.
pub(super) fn is_tagged(line: &[u8]) -> bool {
    const OF_KERNELS: [&[u8]; 5] = [b"kernel", b"savecore", b"runsc", b"gvisor", b"qemu"];
    if has(line, b"PANIC:  ") {
        return true;
    }
    let dated = line.first().is_some_and(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    let Some(end) = super::words::find(line, b"]: ").filter(|_| dated) else { return false };
    let Some(begin) = memchr::memrchr(b'[', &line[..end]) else { return false };
    let name = line[..begin].rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    let is_pid = begin + 1 < end && line[begin + 1..end].iter().all(u8::is_ascii_digit);
    is_pid && !name.is_empty() && name.len() < begin && !OF_KERNELS.iter().any(|kernel| name.starts_with(kernel))
}

/// Whether a line is source text, or a frame of Go's traceback: `panic("%s", text);`, `panic(0xadc740, 0x104f450)`.
pub(super) fn is_source(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let frame = [&b"panic(0x"[..], b"panic({0x"].iter().any(|head| line.starts_with(head)) && line.ends_with(b")");
    frame || line.starts_with(b"raise ") || line.ends_with(b");") || line.ends_with(b") {") || line.starts_with(b"//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_programs_and_source_text_are_known() {
        // Shapes: std::panicking of Rust, net/http of Go, C source
        for line in [
            "thread 'main' panicked at src/demo.rs:1:2:",
            "Nov 27 03:10:11 host systemd[1]: Started Kernel panic collector (kdump).",
            "systemd[1]: demo.service: Unhandled exception",
            "Unhandled exception. Demo.Failed: demo",
            "host demo[97]: thread 'main' panicked at src/demo.rs:1:2:",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
            "2024/11/06 12:13:14 http: panic serving 192.0.2.1:80: demo",
            "*** stack smashing detected ***: terminated",
            "*** stack smashing detected ***: ./demo terminated",
            "Fatal error. System.AccessViolationException: Attempted to read protected memory.",
            "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
            "Assertion failed: (x > 0), function demo, file demo.c, line 12.",
        ] {
            assert!(is_of_program(line.as_bytes()), "{line}");
        }
        for line in [
            "Nov  6 12:13:14 host demo[97]: panic: runtime error",
            "2024-11-06T12:13:14.1+00:00 host demo[97]: panic: lost",
            "2024-11-06 12:13:14.456 UTC [23] PANIC:  could not locate a record",
        ] {
            assert!(is_tagged(line.as_bytes()), "{line}");
        }
        for line in [
            "Nov  6 12:13:14 host savecore[97]: reboot after panic: page fault",
            "Nov  6 12:13:14 host kernel: panic: lost",
            "cpu[3]: panic: lost",
            "PANIC: lost",
        ] {
            assert!(!is_tagged(line.as_bytes()), "{line}");
        }
        for line in [
            "raise ValueError(\"panic: no\")",
            "panic(\"demo\");",
            "panic(0xc000, 0x1)",
            "if (panic_on_demo) {",
            "// panic: demo",
        ] {
            assert!(is_source(line.as_bytes()), "{line}");
        }
        for line in [
            "panicked at src/demo.rs:1:2:",
            "panic: demo",
            "panic(cpu 0 caller 0xffff): demo",
            "Unhandled Exception in EL3.",
        ] {
            assert!(!is_of_program(line.as_bytes()) && !is_source(line.as_bytes()), "{line}");
        }
    }
}
