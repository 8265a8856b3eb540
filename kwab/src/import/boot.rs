//! Knows where one boot ends and the next begins, and what a boot's console says about the kernel.
//!
//! Firmware and kernels announce themselves. A boot goes through *firmware* to *kernel*; an announcement that belongs
//! before the stage that was reached starts a new boot. A sequence number that falls back to the start does too.

use kwab_format::record::Stamp;

use super::text::decimal;

/// How far a boot has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Stage {
    /// No line of a boot was seen yet.
    #[default]
    Start,
    /// The firmware has spoken.
    Firmware,
    /// The kernel has named itself, or events came.
    Kernel,
}

/// Texts of which every line holds one that [`BootFacts::line`] has a use for.
pub const NEEDLES: &[&[u8]] = &[
    b"SeaBIOS (version",
    b"UEFI firmware (version",
    b"qboot",
    b"Linux version ",
    b"Booting ",
    b"kwab kernel ",
    b"ommand line: ",
    b"cmdline: ",
    b"debug: enabled categories: ",
    b"DMI: ",
    b"Hardware name: ",
    b"running cmdline init: ",
    b"bootinfo: init path = ",
    b" as init process",
    b"RAM: ",
    b"tsc: ",
    b"smp: ",
];

/// What the console said about the running kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootFacts {
    /// Which boot of the log, from 1.
    pub number: u32,
    /// Name of the kernel.
    pub kernel: Option<Vec<u8>>,
    /// Its version line.
    pub version: Option<Vec<u8>>,
    /// Its command line.
    pub command_line: Option<Vec<u8>>,
    /// Machine and firmware.
    pub hardware: Option<Vec<u8>>,
    /// Active debug categories.
    pub debug: Option<Vec<u8>>,
    /// The program of process 1.
    pub init: Option<Vec<u8>>,
    /// Number of processors the kernel announced.
    pub cpus: Option<u32>,
    /// Frequency of the time-stamp counter, hertz.
    pub tsc_hz: Option<u64>,
    /// Usable memory, bytes.
    pub ram_bytes: Option<u64>,
    stage: Stage,
    banner_seen: bool,
    /// Whether a kernel of this workspace's dialect has named itself.
    own: bool,
    last_seq: u64,
    last_ns: u64,
}

impl BootFacts {
    /// The first boot of a log.
    pub fn first() -> Self {
        Self { number: 1, ..Self::default() }
    }

    /// The boot after this one.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { number: self.number + 1, ..Self::default() }
    }

    /// Whether an event with this stamp can only come from a new boot.
    #[inline(always)]
    pub fn is_new_boot(&mut self, stamp: &Stamp<'_>) -> bool {
        let Some(seq) = stamp.seq else {
            self.stage = Stage::Kernel;
            return false;
        };
        if seq < self.last_seq && self.fell_back(seq, stamp.ns) {
            return true;
        }
        self.stage = Stage::Kernel;
        self.last_seq = self.last_seq.max(seq);
        self.last_ns = self.last_ns.max(stamp.ns.unwrap_or(0));
        false
    }

    /// A number that is only out of order, because processors overtake each other, does not fall to the very start.
    #[cold]
    fn fell_back(&self, seq: u64, ns: Option<u64>) -> bool {
        seq < 16 && self.last_seq >= seq + 64 && ns.is_none_or(|ns| ns < self.last_ns)
    }

    /// Whether this line of text can only come from a new boot; otherwise takes what it says about the kernel.
    pub fn line(&mut self, text: &[u8]) -> bool {
        match announcement(text) {
            Some(Stage::Firmware) => {
                if self.stage >= Stage::Kernel {
                    return true;
                }
                self.stage = Stage::Firmware;
            }
            Some(_) => {
                if self.stage >= Stage::Kernel && (self.banner_seen || self.last_seq > 0) {
                    return true;
                }
                self.stage = Stage::Kernel;
                self.banner_seen = true;
            }
            None => {}
        }
        self.learn(text);
        false
    }

    /// Whether a kernel of this workspace's dialect has named itself.
    pub fn is_own(&self) -> bool {
        self.own
    }

    fn learn(&mut self, text: &[u8]) {
        self.own |= text.starts_with(b"kwab kernel ");
        let set = |position: &mut Option<Vec<u8>>, value: &[u8]| {
            if position.is_none() && value.len() <= 4096 {
                *position = Some(value.trim_ascii().to_vec());
            }
        };
        match text.first() {
            Some(b'L') => {
                if let Some(rest) = text.strip_prefix(b"Linux version ") {
                    set(&mut self.kernel, b"Linux");
                    set(&mut self.version, rest);
                }
            }
            Some(b'B') => {
                if let Some(rest) = text.strip_prefix(b"Booting ") {
                    let name = rest.strip_suffix(b"...").filter(|name| name.len() < 64 && !name.starts_with(b"from "));
                    if let Some(name) = name {
                        set(&mut self.kernel, name);
                    }
                }
            }
            Some(b'C') => {
                if let Some(rest) = text.strip_prefix(b"Command line: ") {
                    set(&mut self.command_line, rest);
                }
            }
            Some(b'K') => {
                if let Some(rest) = text.strip_prefix(b"Kernel command line: ") {
                    set(&mut self.command_line, rest);
                }
            }
            Some(b'c') => {
                let rest = text.strip_prefix(b"cmdline: ");
                if let Some(rest) = rest.filter(|rest| !rest.starts_with(b"unsupported")) {
                    set(&mut self.command_line, rest);
                }
            }
            Some(b'd') => {
                if let Some(rest) = text.strip_prefix(b"debug: enabled categories: ") {
                    set(&mut self.debug, rest);
                }
            }
            Some(b'D' | b'H') => {
                if let Some(rest) = text.strip_prefix(b"DMI: ").or_else(|| text.strip_prefix(b"Hardware name: ")) {
                    set(&mut self.hardware, rest);
                }
            }
            Some(b'r' | b'b') => {
                let rest = text.strip_prefix(b"running cmdline init: ");
                if let Some(rest) = rest.or_else(|| text.strip_prefix(b"bootinfo: init path = ")) {
                    set(&mut self.init, rest.trim_ascii().trim_quotes());
                }
            }
            Some(b'R') => {
                if let Some(rest) = text.strip_prefix(b"Run ").and_then(|rest| rest.strip_suffix(b" as init process")) {
                    set(&mut self.init, rest);
                }
                let mib = text.strip_prefix(b"RAM: ").and_then(|rest| decimal(rest).ok());
                if let Some((rest, mib)) = mib
                    && rest.starts_with(b"MiB")
                {
                    self.ram_bytes = self.ram_bytes.or(mib.checked_mul(1 << 20));
                }
            }
            Some(b't') => self.learn_clock(text),
            Some(b's') => self.learn_cpus(text),
            _ => {}
        }
    }

    fn learn_clock(&mut self, text: &[u8]) {
        let rest = text
            .strip_prefix(b"tsc: calibrated frequency = ")
            .or_else(|| text.strip_prefix(b"tsc: Refined TSC clocksource calibration: "))
            .or_else(|| text.strip_prefix(b"tsc: Detected "));
        let Some((rest, mhz)) = rest.and_then(|rest| decimal(rest).ok()) else { return };
        let khz = match rest.strip_prefix(b".").and_then(|rest| decimal(rest).ok()) {
            Some((_, fraction)) if fraction < 1000 => fraction,
            _ => 0,
        };
        self.tsc_hz = self.tsc_hz.or(mhz.checked_mul(1_000_000).map(|hz| hz + khz * 1000));
    }

    fn learn_cpus(&mut self, text: &[u8]) {
        let find = |mark: &[u8]| super::reports::words::find(text, mark).map(|at| &text[at + mark.len()..]);
        let rest = if text.starts_with(b"smp: Brought up ") {
            find(b"node, ").or_else(|| find(b"nodes, "))
        } else if text.starts_with(b"smp: ") {
            find(b"total ")
        } else {
            None
        };
        if let Some((_, count)) = rest.and_then(|rest| decimal(rest).ok()) {
            self.cpus = self.cpus.or(u32::try_from(count).ok());
        }
    }
}

/// Text without the quotes around it.
trait TrimQuotes {
    fn trim_quotes(&self) -> &[u8];
}

impl TrimQuotes for [u8] {
    fn trim_quotes(&self) -> &[u8] {
        self.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(self)
    }
}

/// Which stage a line announces.
fn announcement(text: &[u8]) -> Option<Stage> {
    match text.first()? {
        b'S' if text.starts_with(b"SeaBIOS (version") => Some(Stage::Firmware),
        b'U' if text.starts_with(b"UEFI firmware (version") => Some(Stage::Firmware),
        b'q' if text.starts_with(b"qboot") => Some(Stage::Firmware),
        b'L' if text.starts_with(b"Linux version ") => Some(Stage::Kernel),
        b'B' if text.starts_with(b"Booting ") && !text.starts_with(b"Booting from ") && text.ends_with(b"...") => {
            Some(Stage::Kernel)
        }
        b'k' if text.starts_with(b"kwab kernel ") => Some(Stage::Kernel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firmware_after_the_kernel_is_a_new_boot_and_before_it_is_not() {
        let mut boot = BootFacts::first();
        for line in [&b"SeaBIOS (version 1.16.2)"[..], b"Booting from ROM..", b"Booting Kevlar...", b"hello"] {
            assert!(!boot.line(line), "{line:?}");
        }
        assert_eq!(boot.kernel.as_deref(), Some(&b"Kevlar"[..]));
        assert!(boot.line(b"SeaBIOS (version 1.16.2)"));
        let mut second = boot.next();
        assert_eq!(second.number, 2);
        assert!(!second.line(b"SeaBIOS (version 1.16.2)"));
        assert!(!second.line(b"Linux version 6.1.0 (x)"));
        assert!(second.line(b"Linux version 6.1.0 (x)"));
    }

    #[test]
    fn a_sequence_that_starts_again_is_a_new_boot_and_one_out_of_order_is_not() {
        let mut boot = BootFacts::first();
        let stamp = |seq, ns| Stamp { seq: Some(seq), ns: Some(ns), ..Stamp::default() };
        assert!(!boot.is_new_boot(&stamp(1000, 5_000_000)));
        assert!(!boot.is_new_boot(&stamp(998, 4_999_000)));
        assert!(boot.is_new_boot(&stamp(1, 1000)));
    }

    #[test]
    fn console_lines_tell_memory_clock_and_processors() {
        let mut boot = BootFacts::first();
        boot.line(b"RAM: 1006MiB (257560 pages) at 11c8000");
        boot.line(b"tsc: Detected 2596.142 MHz processor");
        boot.line(b"smp: Brought up 1 node, 2 CPUs");
        assert_eq!((boot.ram_bytes, boot.tsc_hz, boot.cpus), (Some(1006 << 20), Some(2_596_142_000), Some(2)));
    }
}
