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
        || line.starts_with(b"user TA ")
        // The service manager names units, among them those that collect panics.
        || has(line, b" systemd[1]: ")
        || line.starts_with(b"systemd[1]: ")
        || UNHANDLED.iter().any(|words| has(line, words))
        // The C library's protector of stacks ends the process.
        || has(line, b"stack smashing detected ***: ") && line.trim_ascii_end().ends_with(b"terminated")
}

/// How .NET says that a program ended by an exception; a kernel has a number or a place there.
const UNHANDLED: [&[u8]; 2] = [b"nhandled exception. ", b"nhandled Exception. "];

/// Whether a line is source text, or a frame of Go's traceback: `panic("%s", text);`, `panic(0xadc740, 0x104f450)`.
pub(super) fn is_source(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let frame = [&b"panic(0x"[..], b"panic({0x"].iter().any(|head| line.starts_with(head)) && line.ends_with(b")");
    frame || line.ends_with(b");") || line.ends_with(b") {") || line.starts_with(b"//")
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
        ] {
            assert!(is_of_program(line.as_bytes()), "{line}");
        }
        for line in ["panic(\"demo\");", "panic(0xc000, 0x1)", "if (panic_on_demo) {", "// panic: demo"] {
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
