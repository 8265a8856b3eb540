//! Makes serial logs of any size from a seed: both dialects, console text, boots, crashes and damage.
//!
//! The same options always give the same bytes. What is written is counted ([`Written`]), so that a test can ask an
//! importer to account for every event. The events are those of `DBG` logs with plausible values; nothing here shares
//! code with the importer that reads them.

use std::io::{self, Write};

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Bare hexadecimal: no JSON.
    Hex,
    /// Strict JSON with addresses in strings, and `seq`, `cpu`, `ns`.
    Json,
    /// Either, event by event.
    Mixed,
}

/// What to write.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bytes to write, about.
    pub size: u64,
    /// Where the random numbers start.
    pub seed: u64,
    /// How numbers are written.
    pub dialect: Dialect,
    /// Lines in a million that are torn, interleaved, glued or soiled.
    pub damage: u32,
    /// Fatal signals of processes, spread over the log. A kernel panic at the end comes on top.
    pub crashes: u32,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the whole log.
    pub bytes: u64,
    /// Events that are whole on one line, glued ones included.
    pub whole: u64,
    /// Events that were torn in two by another line and can be put together again.
    pub interleaved: u64,
    /// Events that were cut and cannot be read.
    pub cut: u64,
}

/// Writes a log.
///
/// # Errors
/// Those of `out`.
pub fn generate(out: &mut impl Write, options: &Options) -> io::Result<Written> {
    let mut log = Log {
        random: Random(options.seed ^ 0x9e37_79b9_7f4a_7c15),
        dialect: options.dialect,
        line: Vec::with_capacity(4096),
        seq: 0,
        ns: 1_000_000,
        pid: 1,
        written: Written::default(),
    };
    boot_banner(&mut log);
    log.send(out)?;
    let mut crashes = 0;
    while log.written.bytes + 4096 < options.size {
        let due = u64::from(crashes + 1) * options.size / (u64::from(options.crashes) + 1);
        if crashes < options.crashes && log.written.bytes > due {
            crashes += 1;
            log.crash();
        } else if log.random.below(1_000_000) < u64::from(options.damage) {
            log.damaged();
        } else {
            log.ordinary();
        }
        log.send(out)?;
    }
    log.panic();
    log.send(out)?;
    Ok(log.written)
}

struct Log {
    random: Random,
    dialect: Dialect,
    line: Vec<u8>,
    seq: u64,
    ns: u64,
    pid: u64,
    written: Written,
}

fn boot_banner(log: &mut Log) {
    log.text("\u{1b}c\u{1b}[?7l\u{1b}[2J\u{1b}[0mSeaBIOS (version 1.16.2-debian-1.16.2-1)\r\nBooting from ROM..\r\n");
    log.text("\u{1b}[36mcmdline: kernel.elf init=/bin/sh debug=all\u{1b}[0m\n\u{1b}[36mBooting Kevlar...\u{1b}[0m\n");
    log.text("\u{1b}[36mtsc: calibrated frequency = 2601 MHz\u{1b}[0m\n");
}

impl Log {
    fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.line)?;
        self.written.bytes += self.line.len() as u64;
        self.line.clear();
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.line.extend_from_slice(text.as_bytes());
    }

    fn ordinary(&mut self) {
        if self.random.below(40) == 0 {
            self.console();
            return;
        }
        let event = self.event();
        self.line.extend_from_slice(&event);
        self.written.whole += 1;
        if self.random.below(2000) == 0 {
            let second = self.event();
            self.line.extend_from_slice(&second);
            self.written.whole += 1;
        }
        if self.random.below(500) == 0 {
            self.text("\r");
        }
        self.text("\n");
    }

    fn console(&mut self) {
        let pid = self.pid;
        let text = match self.random.below(3) {
            0 => format!("\u{1b}[33mnet: packet of {} bytes dropped\u{1b}[0m\n", self.random.below(1500)),
            1 => format!("worker {pid}: {} jobs done\n", self.random.below(100)),
            _ => format!(
                "[{:5}.{:06}] audit: pid={pid} comm=\"sh\"\n",
                self.ns / 1_000_000_000,
                self.ns / 1000 % 1_000_000
            ),
        };
        self.text(&text);
    }

    /// A line as a shared serial port makes them.
    fn damaged(&mut self) {
        let event = self.event();
        match self.random.below(5) {
            0 => {
                // Cut for good: another event starts within.
                let cut = 8 + self.random.below(event.len() as u64 - 12) as usize;
                self.line.extend_from_slice(&event[..cut]);
                let next = self.event();
                self.line.extend_from_slice(&next);
                self.text("\n");
                self.written.cut += 1;
                self.written.whole += 1;
            }
            1 => {
                // Another CPU's whole line lies between the halves.
                let cut = 30 + self.random.below(event.len() as u64 - 40) as usize;
                self.line.extend_from_slice(&event[..cut]);
                let other = self.event();
                self.line.extend_from_slice(&other);
                self.text("\n");
                self.line.extend_from_slice(&event[cut..]);
                self.text("\n");
                self.written.interleaved += 1;
                self.written.whole += 1;
            }
            2 => {
                self.text("half a prompt $ ");
                self.line.extend_from_slice(&event);
                self.text("\n");
                self.written.whole += 1;
            }
            3 => {
                self.line.extend_from_slice(b"\0\0");
                self.line.extend_from_slice(&event);
                self.text("\u{1b}[0m\r\n");
                self.written.whole += 1;
            }
            _ => {
                self.line.extend_from_slice(b"noise \xff\xfe\x80 bytes\n");
                self.line.extend_from_slice(&event);
                self.text("\n");
                self.written.whole += 1;
            }
        }
    }

    /// One event, without a line end.
    fn event(&mut self) -> Vec<u8> {
        self.seq += 1;
        self.ns += 200 + self.random.below(3000);
        if self.random.below(64) == 0 {
            self.pid = 1 + self.random.below(60);
        }
        let json = match self.dialect {
            Dialect::Hex => false,
            Dialect::Json => true,
            Dialect::Mixed => self.random.below(2) == 0,
        };
        let mut event = Object::new(json, self.seq, self.random.below(4), self.ns);
        let (nr, name) = SYSCALLS[self.random.below(SYSCALLS.len() as u64) as usize];
        let pid = self.pid;
        let random = &mut self.random;
        match random.below(16) {
            0..5 => {
                event.open("syscall_entry").number("pid", pid).string("name", name).number("nr", nr);
                event.raw(",\"args\":[");
                for index in 0..6 {
                    if index > 0 {
                        event.raw(",");
                    }
                    let word = random.address();
                    event.hex_value(word);
                }
                event.raw("]");
            }
            5..10 => {
                event.open("syscall_exit").number("pid", pid).string("name", name).number("nr", nr);
                if random.below(10) == 0 {
                    event.raw(",\"result\":-2").string("errno", "ENOENT");
                } else {
                    event.number("result", random.below(5000));
                }
            }
            10..12 => {
                let canary = random.next();
                event.open("canary_check").number("pid", pid).hex("fsbase", 0x0040_9698).hex("expected", canary);
                event.hex("found", canary).boolean("corrupted", false);
                event.string("when", "pre_syscall").string("syscall", name);
            }
            12 => {
                let address = random.address();
                event.open("page_fault").number("pid", pid).hex("vaddr", address).hex("ip", 0x0040_1000 + nr);
                event.string("reason", "PRESENT | USER").boolean("resolved", true);
                event
                    .hex("vma_start", address & !0xffff)
                    .hex("vma_end", (address | 0xffff) + 1)
                    .string("vma_type", "Anonymous");
            }
            13 => {
                event.open("process_fork").number("parent_pid", 1).number("child_pid", pid + 1);
            }
            _ if json => {
                event.open("htrace").number("id", 16).string("name", "page_fault").number("depth", random.below(4));
                event
                    .string("dir", if random.below(2) == 0 { "enter" } else { "exit" })
                    .number("data", random.address());
            }
            _ => {
                event.open("htrace").number("cpu", random.below(4)).number("tsc", 450_000_000 + random.below(1 << 40));
                event.number("id", 16).string("name", "page_fault").number("depth", random.below(4));
                event
                    .string("dir", if random.below(2) == 0 { "enter" } else { "exit" })
                    .number("data", random.address());
            }
        }
        event.close()
    }

    fn whole_event(&mut self, build: impl FnOnce(&mut Object)) {
        self.seq += 1;
        self.ns += 1000;
        let mut event = Object::new(self.dialect == Dialect::Json, self.seq, 0, self.ns);
        build(&mut event);
        let bytes = event.close();
        self.line.extend_from_slice(&bytes);
        self.text("\n");
        self.written.whole += 1;
    }

    /// A process dies of SIGSEGV.
    fn crash(&mut self) {
        let pid = 100 + self.random.below(900);
        let address = self.random.address();
        self.whole_event(|event| {
            event.open("user_fault").number("pid", pid).string("exception", "page fault").hex("ip", 0x0040_116c);
            event.number("signal_delivered", 11);
        });
        self.whole_event(|event| {
            event.open("signal").number("pid", pid).number("signal", 11).string("signal_name", "SIGSEGV");
            event.string("action", "terminate").hex("ip", 0x0040_116c);
        });
        self.whole_event(|event| {
            event.open("crash_report").number("pid", pid).number("signal", 11).string("signal_name", "SIGSEGV");
            event.string("cmdline", "/bin/grep -r apple").hex("fault_addr", address).hex("ip", 0x0040_116c);
            event
                .hex("fsbase", 0x0040_9698)
                .raw(",\"regs\":{\"rax\":")
                .hex_value(0)
                .raw(",\"rip\":")
                .hex_value(0x0040_116c);
            event
                .raw("},\"syscalls\":[],\"vmas\":[{\"start\":")
                .hex_value(0x40_0000)
                .raw(",\"end\":")
                .hex_value(0x40_9000);
            event.raw(",\"type\":\"Anonymous\"}]");
        });
        self.whole_event(|event| {
            event.open("process_exit").number("pid", pid).number("status", 139).boolean("by_signal", true);
        });
    }

    /// The kernel gives up.
    fn panic(&mut self) {
        self.text("\n[PANIC] CPU=0 at mm/fault.rs:350\n");
        self.whole_event(|event| {
            event.open("panic").string("message", "page fault occurred in the kernel: rip=0, vaddr=0");
            event
                .raw(",\"backtrace\":[{\"addr\":")
                .hex_value(0xffff_8000_0011_6100)
                .string("sym", "handle_kernel_page_fault");
            event.hex("off", 0x964).raw("}]");
        });
        self.text("panicked at mm/fault.rs:350:5:\npage fault occurred in the kernel: rip=0, vaddr=0\n");
    }
}

const SYSCALLS: &[(u64, &str)] = &[
    (0, "read"),
    (1, "write"),
    (3, "close"),
    (9, "mmap"),
    (13, "rt_sigaction"),
    (14, "rt_sigprocmask"),
    (39, "getpid"),
    (57, "fork"),
    (61, "wait4"),
    (202, "futex"),
    (228, "clock_gettime"),
    (257, "openat"),
    (262, "newfstatat"),
];

/// An event being written, in one of the two dialects.
struct Object {
    bytes: Vec<u8>,
    json: bool,
    stamp: [u64; 3],
}

impl Object {
    fn new(json: bool, seq: u64, cpu: u64, ns: u64) -> Self {
        Self { bytes: Vec::with_capacity(256), json, stamp: [seq, cpu, ns] }
    }

    fn open(&mut self, kind: &str) -> &mut Self {
        self.raw("DBG {\"type\":\"").raw(kind).raw("\"");
        if self.json {
            let [seq, cpu, ns] = self.stamp;
            self.number("seq", seq).number("cpu", cpu).number("ns", ns);
        }
        self
    }

    fn raw(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    fn key(&mut self, name: &str) -> &mut Self {
        self.raw(",\"").raw(name).raw("\":")
    }

    fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.key(name).raw(&value.to_string())
    }

    fn hex(&mut self, name: &str, value: u64) -> &mut Self {
        self.key(name).hex_value(value)
    }

    fn hex_value(&mut self, value: u64) -> &mut Self {
        let text = if self.json { format!("\"{value:#x}\"") } else { format!("{value:#x}") };
        self.raw(&text)
    }

    fn string(&mut self, name: &str, value: &str) -> &mut Self {
        self.key(name).raw("\"").raw(value).raw("\"")
    }

    fn boolean(&mut self, name: &str, value: bool) -> &mut Self {
        self.key(name).raw(if value { "true" } else { "false" })
    }

    fn close(mut self) -> Vec<u8> {
        self.raw("}");
        self.bytes
    }
}

/// xorshift64*: good enough to vary a log, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound.max(1)
    }

    /// A word as registers hold them: small numbers, text, heap, stack.
    fn address(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(4096),
            1 => 0x40_0000 + self.below(0x10_0000),
            2 => 0x0009_ffff_0000 + self.below(0x1_0000),
            _ => 0x7f00_0000_0000 + self.below(0x1000_0000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_log_and_another_seed_another() {
        let make = |seed| {
            let mut out = Vec::new();
            let options = Options { size: 50_000, seed, dialect: Dialect::Mixed, damage: 20_000, crashes: 2 };
            let written = generate(&mut out, &options).expect("a vector takes everything");
            assert_eq!(written.bytes, out.len() as u64);
            (out, written)
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7).0, make(8).0);
        let (log, written) = make(7);
        let marks = memchr::memmem::find_iter(&log, b"DBG {").count() as u64;
        assert_eq!(marks, written.whole + written.interleaved + written.cut);
    }
}
