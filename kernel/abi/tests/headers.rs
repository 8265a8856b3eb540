//! Compares every number of this crate with the headers of the system it is built on.
//!
//! Where a header or the C compiler is missing the comparison with it is skipped and says so; what needs no header
//! (order, uniqueness, the golden numbers) always runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use linux_abi::errno::{self, Errno};
use linux_abi::flags;
use linux_abi::numbers;
use linux_abi::signals::{self, Signal};
use linux_abi::syscalls::{self, ArgKind};

/// Headers that together define the names of `flags`, as glibc and the kernel's uapi ship them.
const INCLUDES: &[&str] = &[
    "fcntl.h",
    "sys/stat.h",
    "sys/mman.h",
    "sched.h",
    "linux/futex.h",
    "sys/wait.h",
    "sys/socket.h",
    "netinet/in.h",
    "netinet/tcp.h",
    "poll.h",
    "sys/epoll.h",
    "sys/eventfd.h",
    "sys/timerfd.h",
    "sys/inotify.h",
    "sys/signalfd.h",
    "unistd.h",
    "signal.h",
    "sys/file.h",
    "sys/ioctl.h",
    "sys/mount.h",
    "sys/prctl.h",
    "asm/prctl.h",
    "sys/random.h",
    "sys/resource.h",
    "sys/time.h",
    "time.h",
    "sys/ptrace.h",
    "linux/reboot.h",
    "linux/membarrier.h",
    "linux/close_range.h",
    "linux/fs.h",
    "linux/memfd.h",
    "linux/seccomp.h",
    "sys/ipc.h",
    "sys/shm.h",
    "linux/openat2.h",
    "linux/falloc.h",
    "sys/personality.h",
    "linux/stat.h",
    "linux/sched.h",
    "sys/xattr.h",
];

/// Names whose number in glibc is not the kernel's: glibc's `O_LARGEFILE` is 0 on x86_64 because it is always on.
const GLIBC_DIFFERS: &[&str] = &["O_LARGEFILE"];

/// Names whose macros take the size of a structure that glibc does not define.
const NEED_TERMIOS2: &[&str] = &["TCGETS2", "TCSETS2", "TCSETSW2", "TCSETSF2"];

/// Compiles and runs a C program that prints `name value` of each macro that is defined; `None` without a compiler.
fn ask_the_compiler(names: &BTreeSet<&str>) -> Option<BTreeMap<String, u64>> {
    let mut source = String::from("#define _GNU_SOURCE\n#include <stdio.h>\n");
    for include in INCLUDES {
        let _ = writeln!(source, "#if __has_include(<{include}>)\n#include <{include}>\n#endif");
    }
    source.push_str("int main(void) {\n");
    for name in names {
        let _ = writeln!(source, "#ifdef {name}\nprintf(\"{name} %llu\\n\", (unsigned long long)({name}));\n#endif");
    }
    source.push_str("return 0; }\n");
    // Tests run side by side in one process: each compiles into a folder of its own.
    let folder = tempfile::tempdir().ok()?;
    let program = folder.path().join("headers");
    let mut compiler =
        Command::new("cc").args(["-w", "-x", "c", "-", "-o"]).arg(&program).stdin(Stdio::piped()).spawn().ok()?;
    compiler.stdin.take()?.write_all(source.as_bytes()).ok()?;
    if !compiler.wait().ok()?.success() {
        return None;
    }
    let output = Command::new(&program).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Some(pairs.filter_map(|(name, value)| Some((name.to_string(), value.parse().ok()?))).collect())
}

#[test]
fn flag_values_are_those_of_the_system_headers() {
    let all: Vec<_> = flags::ALL.iter().flat_map(|file| file.iter()).flat_map(|set| set.names()).collect();
    let names: BTreeSet<&str> =
        all.iter().map(|(_, name)| *name).filter(|name| !NEED_TERMIOS2.contains(name)).collect();
    let Some(values) = ask_the_compiler(&names) else {
        eprintln!("skipped: no C compiler with headers here");
        return;
    };
    let mut compared = 0;
    for (value, name) in all.iter().filter(|(_, name)| !GLIBC_DIFFERS.contains(name)) {
        // Plain ints are sign-extended by the C program; the tables hold the 32-bit word.
        let Some(&header) = values.get(*name) else { continue };
        let header = if header >> 32 == 0xffff_ffff { header & 0xffff_ffff } else { header };
        assert_eq!(*value, header, "{name}");
        compared += 1;
    }
    assert!(compared > 400, "only {compared} names were macros in the headers");
}

#[test]
fn single_numbers_are_those_of_the_system_headers() {
    let names: BTreeSet<&str> = numbers::TABLE.iter().map(|(name, _)| *name).collect();
    let Some(values) = ask_the_compiler(&names) else {
        eprintln!("skipped: no C compiler with headers here");
        return;
    };
    let mut compared = 0;
    for (name, value) in numbers::TABLE {
        let Some(&header) = values.get(*name) else { continue };
        assert_eq!(*value as u32, header as u32, "{name}");
        compared += 1;
    }
    assert!(compared > 12, "only {compared} of {} names were macros in the headers", names.len());
}

/// `#define PREFIXname number` lines of a header; `None` where it does not exist.
fn defines(path: &str, prefix: &str) -> Option<Vec<(String, u64)>> {
    let text = std::fs::read_to_string(path).ok()?;
    let fields = text.lines().filter_map(|line| line.strip_prefix("#define"));
    let pairs = fields.filter_map(|rest| {
        let mut words = rest.split_whitespace();
        let name = words.next()?.strip_prefix(prefix)?;
        Some((name.to_string(), words.next()?.parse().ok()?))
    });
    Some(pairs.collect())
}

#[test]
fn every_syscall_of_the_header_has_its_number_here() {
    let Some(header) = defines("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "__NR_") else {
        eprintln!("skipped: no asm/unistd_64.h here");
        return;
    };
    assert!(header.len() > 350);
    for (name, number) in header.iter().filter(|(_, number)| *number <= 462) {
        let call = syscalls::by_number(*number).unwrap_or_else(|| panic!("{name} ({number}) is missing"));
        assert_eq!(call.name, name);
    }
}

#[test]
fn the_syscall_table_is_sorted_dense_and_found_by_number_and_name() {
    for window in syscalls::TABLE.windows(2) {
        let step = window[1].nr - window[0].nr;
        assert!(step == 1 || (window[0].nr, window[1].nr) == (334, 424), "{} after {}", window[1].nr, window[0].nr);
    }
    for call in syscalls::TABLE {
        assert_eq!(syscalls::by_number(u64::from(call.nr)).map(|found| found.name), Some(call.name));
        assert_eq!(syscalls::by_name(call.name).map(|found| found.nr), Some(call.nr));
        assert!(call.args.len() <= 6, "{}", call.name);
    }
    assert_eq!(syscalls::TABLE.last().map(|call| call.nr), Some(462));
    for absent in [335, 423, 463, 9999, u64::MAX] {
        assert!(syscalls::by_number(absent).is_none(), "{absent}");
    }
    assert_eq!(syscalls::nr::openat, 257);
    assert!(matches!(syscalls::by_number(257).map(|call| call.args[2].kind), Some(ArgKind::Flags(_))));
}

#[test]
fn errno_numbers_and_names_are_those_of_the_headers() {
    let base = defines("/usr/include/asm-generic/errno-base.h", "E");
    let more = defines("/usr/include/asm-generic/errno.h", "E");
    let (Some(base), Some(more)) = (base, more) else {
        eprintln!("skipped: no asm-generic/errno.h here");
        return;
    };
    let header: Vec<_> = base.into_iter().chain(more).collect();
    assert!(header.len() > 125);
    for (name, number) in header {
        let error = Errno::from_name(&format!("E{name}")).unwrap_or_else(|| panic!("E{name} is missing"));
        assert_eq!(u64::from(error.number()), number, "E{name}");
        assert_eq!(error.name(), Some(format!("E{name}").as_str()));
    }
}

#[test]
fn a_raw_result_is_an_error_only_from_minus_4095_to_minus_1() {
    assert_eq!(Errno::from_result(-2), Some(Errno::ENOENT));
    assert_eq!(Errno::from_result(-4095).map(Errno::number), Some(4095));
    for value in [0, 1, -4096, i64::MIN, i64::MAX] {
        assert_eq!(Errno::from_result(value), None, "{value}");
    }
    assert_eq!(Errno::EAGAIN.to_result(), -11);
    assert!(errno::TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert_eq!(Errno::ENOENT.to_string(), "ENOENT (No such file or directory)");
}

#[test]
fn signal_numbers_are_those_of_the_compiler() {
    for (index, entry) in signals::TABLE.iter().enumerate() {
        assert_eq!(usize::from(entry.0.number()), index + 1, "{}", entry.1);
    }
    let names: BTreeSet<&str> =
        signals::TABLE.iter().map(|entry| entry.1).chain(signals::CODES.iter().map(|code| code.2)).collect();
    let Some(values) = ask_the_compiler(&names) else {
        eprintln!("skipped: no C compiler with headers here");
        return;
    };
    for entry in signals::TABLE {
        assert_eq!(values.get(entry.1).copied(), Some(u64::from(entry.0.number())), "{}", entry.1);
    }
    for (_, value, name, _) in signals::CODES {
        if let Some(&header) = values.get(*name) {
            assert_eq!(header as i32, *value, "{name}");
        }
    }
    assert_eq!(format!("{:?}", Signal::new(34).unwrap()), "SIGRT_2");
}

#[test]
fn words_print_as_strace_prints_them() {
    let show = |set: &flags::FlagSet, value| set.display(value).to_string();
    assert_eq!(show(&flags::file::OPEN, 0o2_100_101), "O_WRONLY|O_CREAT|O_LARGEFILE|O_CLOEXEC");
    assert_eq!(show(&flags::file::OPEN, 0), "O_RDONLY");
    assert_eq!(show(&flags::memory::PROT, 0), "PROT_NONE");
    assert_eq!(show(&flags::memory::PROT, 5), "PROT_READ|PROT_EXEC");
    assert_eq!(show(&flags::memory::MAP, 0x22), "MAP_PRIVATE|MAP_ANONYMOUS");
    assert_eq!(show(&flags::process::FUTEX, 0x81), "FUTEX_WAKE|FUTEX_PRIVATE_FLAG");
    assert_eq!(show(&flags::process::WAIT, 0x5000_0001), "WNOHANG|__WALL|0x10000000");
    assert_eq!(show(&flags::file::SEEK, 77), "0x4d");
}
