//! What rules may ask: the case, the death, a named backtrace, the faulting instruction, mappings and memory by
//! address.

use kwab_format::SectionKind;
use kwab_format::record::{
    Arch, CauseKind, Frame, FrameTrust, Memory, MemoryKind, Reason, RegId, RegisterRole, Registers, StackBounds, Vma,
};

use super::audit;
use super::blame::{self, Guilty};
use super::death::Postmortem;
use super::frame::{TraceFrame, printed_function};
use super::quote::text;
use super::space::paging;
use super::verify::{self, Backing};
use crate::builds::BuildChanges;
use crate::decode::fixed::Fixed;
use crate::decode::{Instruction, Paging, PointerClass, Values, classify_on, decode_at};
use crate::model::{Case, Located, RecordRef, call};
use crate::symbols::{Location, Probe, Role, Symbols, demangle, is_machinery, role, short};
use crate::unwind::{self, Trust, UnwindTables};

/// Frames that a backtrace may have.
const MAX_FRAMES: usize = 128;

/// Everything a rule may look at.
#[derive(Debug)]
pub struct Context<'c, 'a> {
    /// The records of the dump by kind.
    pub case: &'c Case<'a>,
    /// Images with symbols, possibly none.
    pub symbols: &'c Symbols,
    /// The death that the dump is about; empty when nothing died.
    pub death: Postmortem,
    /// Where it died, innermost first.
    pub trace: Vec<TraceFrame>,
    /// The function to look at first, by the frames of the death.
    pub guilty: Option<Guilty>,
    /// The instruction that faulted, with operand values.
    pub instruction: Option<Instruction>,
    /// What the audit of mappings and page tables found.
    pub audit: Vec<audit::Finding>,
    /// Pages that are not what their files say.
    pub pages: Vec<verify::WrongPage>,
    /// Files at hand that belong to another build.
    pub foreign: Vec<verify::Foreign>,
    /// Which addresses the machine can map.
    pub paging: Paging,
    /// What differs from a build that worked, when there is one.
    pub changes: Option<&'c BuildChanges>,
}

impl<'c, 'a> Context<'c, 'a> {
    /// Prepares what rules look at.
    #[must_use]
    pub fn new(case: &'c Case<'a>, symbols: &'c Symbols, backing: &Backing) -> Self {
        let death = Postmortem::of(case);
        let space = View { case, symbols, pid: death.code_pid(), death: &death };
        let trace = named_trace(&space, &death);
        let instruction = faulting_instruction(&space, &death);
        Self {
            case,
            symbols,
            guilty: blame::guilty(&trace),
            trace,
            instruction,
            audit: audit::audit(case),
            pages: verify::verify(case, backing),
            foreign: verify::foreign(case, backing),
            paging: paging(case),
            death,
            changes: None,
        }
    }

    /// The same with what differs from a build that worked.
    #[must_use]
    pub const fn since(mut self, changes: Option<&'c BuildChanges>) -> Self {
        self.changes = changes;
        self
    }

    /// Memory and code as the dead code saw them.
    #[must_use]
    pub fn view(&self) -> View<'_, 'a> {
        View { case: self.case, symbols: self.symbols, pid: self.death.code_pid(), death: &self.death }
    }

    /// The mapping of the dead process that holds an address.
    #[must_use]
    pub fn vma_at(&self, addr: u64) -> Option<&Located<Vma<'a>>> {
        self.case.vma_holding(self.death.pid, addr)
    }

    /// The first mapping behind an address.
    #[must_use]
    pub fn vma_above(&self, addr: u64) -> Option<&Located<Vma<'a>>> {
        let pid = self.death.pid;
        let own = |vma: &&Located<Vma<'_>>| vma.pid.is_none() || pid.is_none() || vma.pid == pid;
        self.case.vmas.iter().filter(own).filter(|vma| vma.start.is_some_and(|s| s > addr)).min_by_key(|vma| vma.start)
    }

    /// Whether the memory map of the dead process is in the dump.
    #[must_use]
    pub fn has_map(&self) -> bool {
        self.case.vmas.iter().any(|vma| self.death.pid.is_none() || vma.pid.is_none() || vma.pid == self.death.pid)
    }

    /// The stack whose range or guard holds an address.
    #[must_use]
    pub fn stack_at(&self, addr: u64) -> Option<&Located<StackBounds<'a>>> {
        self.case.stack_holding(addr)
    }

    /// The innermost frame that is not machinery, reports nothing, and is not the fault itself at an address without
    /// code.
    #[must_use]
    pub fn culprit(&self) -> Option<&TraceFrame> {
        let tells = |frame: &&TraceFrame| {
            !frame.machinery && frame.ip != 0 && frame.name.as_deref().is_some_and(|name| role(name) != Role::Reporter)
        };
        self.trace.iter().find(tells)
    }

    /// The system call on whose behalf the kernel died, with its arguments.
    #[must_use]
    pub fn call_in_progress(&self) -> Option<String> {
        let is_its = |set: &Registers<'_>| {
            set.role == Some(RegisterRole::USER) && set.pid.is_none_or(|pid| self.death.pid == Some(pid))
        };
        self.case
            .registers
            .iter()
            .filter(|_| self.death.in_kernel)
            .find(|set| is_its(set))
            .and_then(|set| call::in_progress(set))
    }

    /// The frame that an image makes of an address which the kernel printed at a position in its backtrace; `None` when
    /// no image names it.
    #[must_use]
    pub fn printed(&self, position: usize, addr: u64) -> Option<TraceFrame> {
        let bare = TraceFrame {
            ip: addr,
            sp: None,
            name: None,
            source: None,
            trust: Trust::Printed,
            machinery: false,
            functions: Vec::new(),
            at: None,
        };
        Some(named(position, bare, self.symbols, self.death.code_pid())).filter(|frame| frame.name.is_some())
    }

    /// ` in function+0x12`, or nothing.
    #[must_use]
    pub fn in_culprit(&self) -> String {
        let Some(guilty) = &self.guilty else { return String::new() };
        let is_its = |frame: &&TraceFrame| blame::functions(frame).any(|function| function.name == guilty.name);
        let label = || self.trace.iter().find(is_its).map_or_else(|| guilty.name.clone(), TraceFrame::label);
        match (&guilty.died_in, &guilty.inlined_into) {
            (Some(helper), _) => format!(" in {helper}, called by {}", guilty.name),
            (None, Some(outer)) => format!(" in {}, inlined into {outer}", guilty.name),
            (None, None) => format!(" in {}", label()),
        }
    }

    /// A register at the fault, as evidence.
    #[must_use]
    pub fn register_fact(&self, id: RegId) -> Option<(String, Option<RecordRef>)> {
        let value = self.death.register(id)?;
        let name = id.name().unwrap_or("register");
        Some((format!("{name} = {value:#x}"), self.death.registers_at))
    }

    /// Whether the kernel died, rather than a program or nothing.
    #[must_use]
    pub fn kernel_died(&self) -> bool {
        self.death.in_kernel && self.death.is_known() && self.death.kind != Some(CauseKind::LIVE)
    }

    /// Whether the frames of the death are about the bug: not where the dump was asked for or a watchdog spoke.
    #[must_use]
    pub fn is_stack_of_death(&self) -> bool {
        use CauseKind as Kind;
        let elsewhere = [Kind::LIVE, Kind::SYSRQ, Kind::NMI, Kind::HUNG_TASK, Kind::SOFT_LOCKUP, Kind::STALL];
        self.death.is_known() && !self.death.kind.is_some_and(|kind| elsewhere.contains(&kind))
    }

    /// The instruction set of the kernel, when the dump says it.
    #[must_use]
    pub fn arch(&self) -> Option<Arch> {
        self.paging.arch
    }

    /// The kind of an address on the machine that the dump is of.
    #[must_use]
    pub fn class_of(&self, addr: u64) -> PointerClass {
        // The last page of 32 bits, in a kernel whose own code lies below 4 GiB.
        const LAST_PAGE: u64 = 0xffff_f000;
        let is_narrow = || self.death.in_kernel && self.code_at().is_some_and(|ip| u32::try_from(ip).is_ok());
        if addr >= LAST_PAGE && u32::try_from(addr).is_ok() && is_narrow() {
            return PointerClass::BelowNull;
        }
        match classify_on(self.paging, addr) {
            // A log that does not show its architecture may be of one on which every address can be mapped.
            PointerClass::NonCanonical if self.arch().is_none() && self.case.source.is_some() => {
                if addr >> 63 == 1 {
                    PointerClass::Kernel
                } else {
                    PointerClass::User
                }
            }
            class => class,
        }
    }

    /// An address at which the death's code lies.
    pub(super) fn code_at(&self) -> Option<u64> {
        self.death.ip.into_iter().chain(self.trace.iter().map(|frame| frame.ip)).find(|ip| *ip > 0xfff)
    }

    /// Whether the dump is about a kernel that has none of the options of the one that this toolchain comes with.
    #[must_use]
    pub fn is_foreign_kernel(&self) -> bool {
        const OWN: &[&str] = &["kwab", "kevlar"];
        let told = self.kernel_told().to_lowercase();
        if told.trim().is_empty() {
            // A log that does not say whose it is, in words that this kernel does not use, or a file that Linux wrote.
            return self
                .case
                .source
                .as_ref()
                .is_some_and(|source| matches!(source.dialect, Some(b"linux" | b"text" | b"elf-core" | b"minidump")));
        }
        !OWN.iter().any(|name| told.contains(name))
    }

    /// Whether that other kernel is Linux.
    #[must_use]
    pub fn is_linux(&self) -> bool {
        self.is_foreign_kernel() && self.kernel_told().contains("Linux")
    }

    /// Version and name of the kernel.
    fn kernel_told(&self) -> String {
        let identity = self.case.identities.first();
        identity.map(|identity| text(identity.kernel_version) + &text(identity.kernel_name)).unwrap_or_default()
    }

    /// Whether the dump is about something that does not go on.
    #[must_use]
    pub fn is_hang(&self) -> bool {
        let reason = self.case.identities.first().and_then(|identity| identity.reason);
        self.death.is_hang() || reason == Some(Reason::HANG)
    }

    /// Whether a program died of a signal.
    #[must_use]
    pub fn program_died(&self) -> bool {
        self.death.kind == Some(CauseKind::FATAL_SIGNAL)
    }
}

/// Memory and code of a dump, for one address space.
#[derive(Clone, Copy, Debug)]
pub struct View<'c, 'a> {
    case: &'c Case<'a>,
    symbols: &'c Symbols,
    pid: Option<u32>,
    death: &'c Postmortem,
}

impl<'c, 'a> View<'c, 'a> {
    /// Memory as the kernel (`None`) or a process sees it, with the registers of a death.
    #[must_use]
    pub const fn of(case: &'c Case<'a>, symbols: &'c Symbols, pid: Option<u32>, death: &'c Postmortem) -> Self {
        Self { case, symbols, pid, death }
    }

    /// The captured bytes from an address on; empty when there are none.
    #[must_use]
    pub fn bytes(&self, addr: u64) -> &'a [u8] {
        self.memory_at(addr).map(|(memory, skip)| &memory.bytes.unwrap_or_default()[skip..]).unwrap_or_default()
    }

    /// The record with the byte at an address, and how far into it.
    #[must_use]
    pub fn memory_at(&self, addr: u64) -> Option<(&Located<Memory<'a>>, usize)> {
        // Kernel memory looks the same from every process; user memory is one process's own.
        let memory = self.case.memory_holding(self.pid, addr)?;
        let skip = usize::try_from(addr.checked_sub(memory.vaddr?)?).ok()?;
        (skip < memory.bytes?.len()).then_some((memory, skip))
    }
}

impl unwind::Space for View<'_, '_> {
    fn captured(&self, addr: u64) -> &[u8] {
        self.bytes(addr)
    }

    fn is_code(&self, addr: u64) -> bool {
        if self.symbols.is_code(addr, self.pid) {
            return true;
        }
        if self.pid.is_some() { self.case.is_executable(self.pid, addr) } else { self.case.is_kernel_code(addr) }
    }

    fn bytes_before(&self, addr: u64) -> Vec<u8> {
        let start = addr.saturating_sub(8);
        let captured = self.bytes(start);
        if captured.len() >= 8 {
            return captured[..8].to_vec();
        }
        let mut bytes = vec![0; 8];
        let found = self.symbols.read(start, self.pid, &mut bytes);
        bytes.truncate(if found == 8 { 8 } else { 0 });
        bytes
    }

    fn tables(&self, addr: u64) -> Option<(&UnwindTables, u64)> {
        let loaded = self.symbols.image_at(addr, self.pid)?;
        Some((loaded.image.unwind_tables()?, loaded.bias))
    }
}

impl Values for View<'_, '_> {
    fn register(&self, number: u16) -> Option<u64> {
        self.death.register(RegId(number))
    }

    fn word(&self, addr: u64) -> Option<u64> {
        unwind::Space::word(self, addr)
    }
}

fn faulting_instruction(view: &View<'_, '_>, death: &Postmortem) -> Option<Instruction> {
    let Some(ip) = death.ip else { return instruction_without_address(view) };
    let mut bytes = view.bytes(ip).to_vec();
    if bytes.is_empty() {
        bytes = vec![0; 16];
        let found = view.symbols.read(ip, view.pid, &mut bytes);
        bytes.truncate(found);
    }
    if bytes.is_empty() {
        let (printed, marked) = printed_code(view.case)?;
        bytes = printed[marked..].to_vec();
    }
    decoded(view, &bytes, ip).filter(|_| ip != 0)
}

fn decoded(view: &View<'_, '_>, bytes: &[u8], ip: u64) -> Option<Instruction> {
    let found = match machine(view.case) {
        CodeKind::X86 => decode_at(bytes, ip, view),
        CodeKind::Fixed(isa) => isa.decode_at(bytes, ip, &Printed { view, isa }),
        CodeKind::Unknown => None,
    };
    found.filter(|instruction| !instruction.invalid)
}

/// The marked instruction of a log that prints no address of it. What it finds relative to itself is nowhere.
fn instruction_without_address(view: &View<'_, '_>) -> Option<Instruction> {
    let (bytes, marked) = printed_code(view.case)?;
    let offset = function_of(view.death).map_or(marked as u64, |(_, offset)| offset);
    let mut found = decoded(view, &bytes[marked..], offset)?;
    found.operands.retain(|operand| !operand.registers.is_empty());
    Some(found)
}

/// The bytes of code that the kernel printed without their address, and the index of the instruction's first one.
pub(super) fn printed_code<'a>(case: &Case<'a>) -> Option<(&'a [u8], usize)> {
    let is_printed = |memory: &&Located<Memory<'a>>| memory.kind == Some(MemoryKind::CODE) && memory.vaddr.is_none();
    let code = case.memory.iter().filter(is_printed).find(|memory| memory.marked.is_some())?;
    let (bytes, marked) = (code.bytes?, usize::try_from(code.marked?).ok()?);
    (marked < bytes.len()).then_some((bytes, marked))
}

/// The function that a log names as the place, and the offset of the instruction in it.
pub(super) fn function_of(death: &Postmortem) -> Option<(String, u64)> {
    let told = crate::text::console::location(death.location.as_deref()?)?;
    Some((text(Some(told.symbol)), told.offset))
}

/// How the machine's code is read.
pub(super) enum CodeKind {
    /// As that of x86-64.
    X86,
    /// As that of another instruction set.
    Fixed(Fixed),
    /// Not at all.
    Unknown,
}

/// How the machine's code is read. A dump that does not name its instruction set is of x86; a log may be of one for
/// which dumps have no name.
pub(super) fn machine(case: &Case<'_>) -> CodeKind {
    let arch = case.identities.first().and_then(|identity| identity.arch);
    match (arch, Fixed::of(arch)) {
        (_, Some(isa)) => CodeKind::Fixed(isa),
        (Some(Arch::X86_64), _) => CodeKind::X86,
        (None, _) if printed_code(case).is_none() => CodeKind::X86,
        _ => CodeKind::Unknown,
    }
}

/// Registers by the numbers that another instruction set gives them.
pub(super) struct Printed<'v, 'c, 'a> {
    pub view: &'v View<'c, 'a>,
    pub isa: Fixed,
}

impl Values for Printed<'_, '_, '_> {
    fn register(&self, number: u16) -> Option<u64> {
        let (death, name) = (self.view.death, self.isa.register_name(number));
        if death.named.is_empty() {
            return death.register(RegId(number)).filter(|_| self.isa == Fixed::Arm64);
        }
        death.named.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    fn word(&self, addr: u64) -> Option<u64> {
        unwind::Space::word(self.view, addr)
    }
}

/// The backtrace that was printed, or one made from registers and stack, whichever says more.
fn named_trace(view: &View<'_, '_>, death: &Postmortem) -> Vec<TraceFrame> {
    let (walked, _) = walked(view, &death.for_unwinding(), MAX_FRAMES);
    let printed = named_frames(printed_trace(view.case, view.symbols, death), view.symbols, death.code_pid());
    // Frames found by scanning may be left over from earlier calls: they are not more than what the kernel printed.
    let names = |frames: &[TraceFrame]| {
        frames.iter().filter(|frame| frame.name.is_some() && frame.trust != Trust::Scan).count()
    };
    if walked.len() > 1
        && (names(&walked) > names(&printed) || (names(&walked) == names(&printed) && walked.len() >= printed.len()))
    {
        return walked;
    }
    // The interrupted instruction is the one thing registers always know better than a printed trace.
    let first = walked.into_iter().next().filter(|first| printed.first().is_none_or(|frame| frame.ip != first.ip));
    // Where no image names that instruction, the kernel may have printed its function beside it.
    let told = crate::text::console::location(death.location.as_deref().unwrap_or_default());
    let first = first.map(|frame| match told.as_ref().filter(|_| frame.name.is_none() && Some(frame.ip) == death.ip) {
        Some(told) => TraceFrame { name: Some(demangle(text(Some(told.symbol)).trim())), ..frame },
        None => frame,
    });
    first.into_iter().chain(printed).collect()
}

/// Printed frames, with the names that images have for addresses for which the kernel printed none.
pub(super) fn named_frames(frames: Vec<TraceFrame>, symbols: &Symbols, pid: Option<u32>) -> Vec<TraceFrame> {
    frames.into_iter().enumerate().map(|(position, frame)| named(position, frame, symbols, pid)).collect()
}

/// A printed frame with the name that an image has for its address, if the kernel printed none. All but the innermost
/// are return addresses.
fn named(position: usize, frame: TraceFrame, symbols: &Symbols, pid: Option<u32>) -> TraceFrame {
    if frame.name.is_some() {
        return frame;
    }
    let location = symbols.resolve(frame.ip, pid, if position == 0 { Probe::Exact } else { Probe::Return });
    TraceFrame { name: short(&location), machinery: is_machinery_at(&location), functions: location.frames, ..frame }
}

/// Walks a stack from its registers and names the frames; also why it ends.
pub(super) fn walked(
    view: &View<'_, '_>,
    registers: &unwind::Registers,
    limit: usize,
) -> (Vec<TraceFrame>, unwind::Stopped) {
    let walk = unwind::backtrace(view, registers, limit);
    let named = walk.frames.iter().map(|frame| {
        let location = view.symbols.resolve(frame.ip, view.pid, frame.probe);
        let place = location.frames.first();
        let source = place.and_then(|inner| Some(format!("{}:{}", inner.file.as_ref()?, inner.line?)));
        let machinery = is_machinery_at(&location);
        let name = short(&location);
        let (ip, sp, trust) = (frame.ip, frame.sp, frame.trust);
        TraceFrame { ip, sp, name, source, trust, machinery, functions: location.frames, at: None }
    });
    (named.collect(), walk.stopped)
}

/// Whether nothing at an address is code of interest: by the source's functions, or by the symbol where there are none.
pub(super) fn is_machinery_at(location: &Location) -> bool {
    match (location.frames.as_slice(), &location.symbol) {
        ([], Some(symbol)) => is_machinery(&symbol.name),
        ([], None) => false,
        (frames, _) => frames.iter().all(|inner| inner.machinery),
    }
}

fn printed_trace(case: &Case<'_>, symbols: &Symbols, death: &Postmortem) -> Vec<TraceFrame> {
    // The stacks of listed tasks have numbers too; they are never the death's.
    let of_death = || case.frames.iter().filter(|frame| frame.at.kind != SectionKind::TASKS);
    // The stacks behind the first tell the history of an object or a lock, also where the first was not printed.
    let own = of_death().filter(|frame| frame.trace.unwrap_or(0) == 0);
    let probe = |frame: &Frame<'_>| match (frame.index, frame.symbol) {
        (Some(index), Some(symbol)) if death.is_instruction(index, symbol) => Probe::Exact,
        _ => Probe::Return,
    };
    let frames = own.filter(|frame| frame.trust != Some(FrameTrust::SCAN));
    let frames = frames.map(|frame| printed_frame(frame, symbols, probe(frame)));
    if death.in_kernel || death.kind.is_none() { frames.collect() } else { Vec::new() }
}

/// A frame that the kernel printed.
pub(super) fn printed_frame(frame: &Located<Frame<'_>>, symbols: &Symbols, probe: Probe) -> TraceFrame {
    let raw = text(frame.symbol);
    let name = demangle(raw.trim());
    let machinery = is_machinery(&name) || REPORTERS.iter().any(|part| name.contains(part));
    let label = (!name.is_empty()).then(|| match frame.symbol_offset {
        Some(offset) => format!("{name}+{offset:#x}"),
        None => name.clone(),
    });
    let source = frame.file.map(|file| match frame.source_line {
        Some(line) => format!("{}:{line}", text(Some(file))),
        None => text(Some(file)),
    });
    let ip = frame.addr.unwrap_or(0);
    let (trust, at) = (Trust::Printed, Some(frame.at));
    let function = printed_function(frame).zip(frame.symbol_offset);
    let location = function.map(|(function, offset)| symbols.resolve_printed(&function, offset, probe));
    let functions = location.map(|location| location.frames).unwrap_or_default();
    let place = functions.first().and_then(|inner| Some(format!("{}:{}", inner.file.as_ref()?, inner.line?)));
    TraceFrame { ip, sp: None, name: label, source: place.or(source), trust, machinery, functions, at }
}

/// Parts of names of code that only reports a death.
const REPORTERS: &[&str] = &[
    "handle_kernel_page_fault",
    "dump_stack",
    "panic",
    "show_trace",
    "interrupt_common",
    "die_",
    "asm_exc_",
    "exc_page_fault",
];
