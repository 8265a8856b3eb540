//! Makes the crash at hand that of a recognised report: what a report says replaces what single lines were read as.

use kwab_format::record::{CauseKind, FrameTrust, NoteKind};

use super::{Crash, LogPosition, OwnedFrame, OwnedRegisters};
use crate::import::reports::Report;
use crate::import::reports::class::Class;
use crate::import::reports::function::is_entry;
use crate::import::reports::report::{Arch, Frame, Stack, StackKind};

/// What kind of death a report of that class is.
pub fn cause_kind(class: Class, linux: bool) -> CauseKind {
    match class {
        Class::DoubleFault => CauseKind::DOUBLE_FAULT,
        Class::StackOverflow => CauseKind::STACK_OVERFLOW,
        Class::OomPanic => CauseKind::OUT_OF_MEMORY,
        Class::HungTask | Class::Netdevice => CauseKind::HUNG_TASK,
        class if class.is_stall() => CauseKind::SOFT_LOCKUP,
        class if class.is_warning() => CauseKind::BUG,
        class if class.is_trap() && linux => CauseKind::OOPS,
        class if class.is_trap() => CauseKind::EXCEPTION,
        _ => CauseKind::PANIC,
    }
}

/// What the kernel is called that prints reports of a family; a user's family has its own name.
fn kernel_name(family: &str) -> Option<String> {
    const NAMES: &[(&str, &str)] = &[
        ("linux", "Linux"),
        ("freebsd", "FreeBSD"),
        ("dragonfly", "DragonFly BSD"),
        ("reactos", "ReactOS"),
        ("riot", "RIOT"),
        ("helenos", "HelenOS"),
        ("irix", "IRIX"),
        ("minix", "MINIX"),
        ("op-tee", "OP-TEE"),
        ("opensbi", "OpenSBI"),
        ("u-boot", "U-Boot"),
        ("tf-a", "Trusted Firmware-A"),
        ("edk2", "EDK2"),
        ("mbed-os", "Mbed OS"),
        ("rt-thread", "RT-Thread"),
        ("tock", "Tock"),
        ("nanos", "Nanos"),
        ("theseus", "Theseus"),
        ("managarm", "Managarm"),
        ("osv", "OSv"),
        ("unikraft", "Unikraft"),
        ("rcore", "rCore"),
        ("mini-os", "Mini-OS"),
        ("grub", "GRUB"),
        ("netbsd", "NetBSD"),
        ("openbsd", "OpenBSD"),
        ("xnu", "XNU"),
        ("zircon", "Zircon"),
        ("redox", "Redox"),
        ("asterinas", "Asterinas"),
        ("zephyr", "Zephyr"),
        ("serenity", "SerenityOS"),
        ("sel4", "seL4"),
        ("hubris", "Hubris"),
        ("windows", "Windows"),
        ("haiku", "Haiku"),
        ("xen", "Xen"),
        ("esp-idf", "ESP-IDF"),
        ("nuttx", "NuttX"),
    ];
    if matches!(family, "generic" | "go") {
        return None;
    }
    Some(NAMES.iter().find(|(known, _)| *known == family).map_or(family, |(_, name)| name).to_owned())
}

/// An instruction set as dumps record it. Of x86 the registers decide.
fn recorded(arch: Arch) -> Option<kwab_format::record::Arch> {
    use kwab_format::record::Arch as Recorded;
    Some(match arch {
        Arch::Powerpc => Recorded::POWERPC,
        Arch::S390x => Recorded::S390X,
        Arch::Mips => Recorded::MIPS,
        Arch::Loongarch => Recorded::LOONGARCH,
        Arch::Sparc => Recorded::SPARC,
        Arch::Arm64 => Recorded::AARCH64,
        Arch::Riscv64 => Recorded::RISCV64,
        Arch::X86_64 => Recorded::X86_64,
        Arch::I386 | Arch::Arm | Arch::Riscv32 => return None,
    })
}

impl Crash {
    /// Takes everything from a report.
    pub fn adopt(&mut self, report: &Report) {
        let linux = report.family == "linux";
        self.death.kind = Some(cause_kind(report.class, linux));
        if report.message.starts_with("sysrq triggered") || is_asked_for(report) {
            self.death.kind = Some(CauseKind::SYSRQ);
        }
        let plain = linux && matches!(report.class, Class::Panic | Class::KillInit | Class::NoRoot | Class::OomPanic);
        let message = if plain { &report.message } else { &report.headline };
        let first = if report.message.is_empty() { message } else { &report.message };
        self.death.message = Some(message.clone().into_bytes());
        if first != message {
            self.remark(NoteKind::REMARK, first.as_bytes());
        }
        if let Some((file, line)) = &report.source {
            (self.death.file, self.death.source_line) = (Some(file.clone().into_bytes()), Some(*line));
        }
        self.death.cpu = report.cpu.or(self.death.cpu);
        self.death.pid = report.pid.or(self.death.pid);
        self.death.comm = report.comm.as_ref().map(|comm| comm.clone().into_bytes()).or_else(|| self.death.comm.take());
        self.death.ns = report.ns.or(self.death.ns);
        self.death.ip = report.ip.or(self.death.ip);
        self.death.sp = report.sp.or(self.death.sp);
        self.death.fault_addr = report.fault_address.or(self.death.fault_addr);
        // Linux says which address was not canonical, and KASAN which one its shadow stands for.
        self.is_address_told = linux && report.fault_address.is_some();
        // The code of another architecture, or a trap number, would be read as that of an x86 page fault.
        let x86 = linux && matches!(report.arch, Some(Arch::X86_64 | Arch::I386));
        // The code of a general protection fault is a selector.
        let selector = matches!(report.class, Class::GeneralProtection | Class::StackSegment);
        let before = self.death.error_code.filter(|_| !selector);
        self.death.error_code = report.error_code.filter(|_| x86 && !selector).or(before);
        self.kernel_name = kernel_name(&report.family).or_else(|| self.kernel_name.take());
        self.arch = report.arch.and_then(recorded).or(self.arch);
        self.kernel_offset = report.kernel_offset.or(self.kernel_offset);
        let location = report.location.as_ref().and_then(printed);
        self.death.location = location.or_else(|| self.death.location.take());
        self.adopt_stacks(report);
        self.adopt_registers(report);
        if let Some(code) = &report.code {
            self.code = Some((code.bytes.clone(), code.marked, self.death.ip));
        }
        self.adopt_words(report);
    }

    /// The stack of the failure becomes the first trace; the others follow, each with a remark that says what it is.
    fn adopt_stacks(&mut self, report: &Report) {
        let alone = Stack::default();
        let (mut crash, others): (Vec<_>, Vec<_>) =
            report.stacks.iter().partition(|stack| stack.kind == StackKind::Crash);
        // Where an object was allocated or a lock was taken before is not where it failed.
        let is_history = |stack: &&Stack| {
            use StackKind::{Allocated, Freed, Lock, Origin, OtherAccess};
            matches!(stack.kind, Allocated | Freed | Lock | Origin | OtherAccess)
        };
        let elsewhere = crash.is_empty() && others.iter().all(is_history);
        if elsewhere {
            if others.is_empty() && innermost(report, &alone).is_none() {
                return;
            }
            crash.push(&alone);
        }
        self.frames.clear();
        self.frames_left_out = report.left_out;
        for (trace, stack) in crash.into_iter().chain(others).enumerate() {
            let trace = trace as u32;
            let innermost = innermost(report, stack).filter(|_| trace == 0);
            // Of a stall, what stands before the interrupt's entry is the watchdog.
            let detector = innermost.as_ref().map_or(0, |_| interrupted_at(report, stack));
            let (before, behind) = stack.frames.split_at(detector.min(stack.frames.len()));
            let frames = before.iter().chain(innermost.iter()).chain(behind);
            for (index, frame) in frames.enumerate().take(super::MOST_FRAMES) {
                self.frames.push(owned(frame, trace, index as u32));
            }
            if let (Some(title), true) = (&stack.title, trace > 0) {
                self.remark(NoteKind::REMARK, format!("backtrace {trace}: {title}"));
            }
        }
    }

    fn adopt_registers(&mut self, report: &Report) {
        if report.registers.is_empty() {
            return;
        }
        self.registers.clear();
        for set in report.registers.iter().filter(|set| set.cpu.is_none() || set.cpu == report.cpu) {
            let regs = set.registers.iter().map(|(name, value)| (name.clone().into_bytes(), *value)).collect();
            self.registers.push(OwnedRegisters { user: set.user, error_code: None, regs });
        }
    }

    /// What a report says beside the fields of a cause.
    fn adopt_words(&mut self, report: &Report) {
        let access = report.access.as_ref().and_then(|access| access.object.as_ref());
        let fields = [
            ("fault", report.error_text.as_ref()),
            ("object", access),
            ("tainted", report.taint.as_ref()),
            ("hardware", report.hardware.as_ref()),
            ("then the kernel panicked", report.panic.as_ref()),
        ];
        for (name, text) in fields {
            if let Some(text) = text {
                self.remark(NoteKind::REMARK, format!("{name}: {text}"));
            }
        }
        for note in report.notes.iter().take(8) {
            self.remark(NoteKind::REMARK, note.as_bytes());
        }
        if report.family != "linux" {
            self.remark(NoteKind::INFERRED, format!("read as a report of {}", report.family));
        }
    }
}

/// Whether `echo c > /proc/sysrq-trigger` made the failure.
fn is_asked_for(report: &Report) -> bool {
    let is_handler = |frame: &Frame| frame.symbol.as_deref() == Some("sysrq_handle_crash");
    let crash = report.stacks.iter().find(|stack| stack.kind == StackKind::Crash);
    report.location.as_ref().is_some_and(is_handler)
        || report.location.is_none() && crash.and_then(|stack| stack.frames.first()).is_some_and(is_handler)
}

/// The frame of the instruction that failed, for a stack that begins at its caller: x86 prints the function beside the
/// registers, not in the backtrace.
fn innermost(report: &Report, stack: &Stack) -> Option<Frame> {
    // A report without a stack is known by the function that its first line names.
    let named = || Frame { symbol: report.function.clone().filter(|_| stack.frames.is_empty()), ..Frame::default() };
    let location = report.location.clone().unwrap_or_else(named);
    location.symbol.as_ref()?;
    let is_there = |frame: &Frame| frame.symbol == location.symbol && frame.offset == location.offset;
    // A task that waits has no instruction pointer of its own in the report.
    let told = stack.frames.is_empty() || report.class != Class::HungTask;
    let named = |frame: &Frame| report.class.is_stall() && frame.symbol == location.symbol;
    let there = stack.frames.iter().any(|frame| is_there(frame) || named(frame));
    let own = stack.kind == StackKind::Crash && told && !there;
    let address = location.address.or(report.ip.filter(|_| report.location.is_some()));
    own.then(|| Frame { address, guess: false, inline: false, ..location.clone() })
}

/// The number of frames of a stall's stack before the interrupted function.
fn interrupted_at(report: &Report, stack: &Stack) -> usize {
    let is_entry = |frame: &Frame| frame.symbol.as_deref().is_some_and(is_entry);
    let last = stack.frames.iter().rposition(is_entry).filter(|_| report.class.is_stall());
    last.filter(|at| at + 1 < stack.frames.len()).map_or(0, |at| at + 1)
}

fn owned(frame: &Frame, trace: u32, index: u32) -> OwnedFrame {
    let bytes = |text: &Option<String>| text.as_ref().map(|text| text.clone().into_bytes());
    OwnedFrame {
        trace,
        index,
        addr: frame.address,
        symbol: bytes(&frame.symbol),
        offset: frame.offset,
        size: frame.size,
        module: bytes(&frame.module),
        trust: if frame.guess { FrameTrust::SCAN } else { FrameTrust::PRINTED },
        position: LogPosition { offset: 0, line: frame.line },
    }
}

/// A location as kernels print it.
fn printed(frame: &Frame) -> Option<Vec<u8>> {
    let symbol = frame.symbol.as_ref()?;
    let mut text = symbol.clone();
    if let Some(offset) = frame.offset {
        text.push_str(&format!("+{offset:#x}"));
        if let Some(size) = frame.size {
            text.push_str(&format!("/{size:#x}"));
        }
    }
    Some(text.into_bytes())
}
