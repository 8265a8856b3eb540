//! Names what a link leads to and what a mark is about: a list of a crash, and a thing in it.

use kwab::model::RecordRef;

/// Something that a link can lead to, and a mark can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A dump, by its path.
    Dump(String),
    /// A record of this dump.
    Record(RecordRef),
    /// An event, by its number in the index.
    Event(usize),
    /// A line of the imported log.
    Line(u64),
    /// Captured bytes at an address.
    Bytes(u64),
    /// The mapping that holds an address.
    Mapping(u64),
    /// The page of an address.
    Page(u64),
    /// The task with this pid.
    Task(u32),
    /// The lock at this address.
    Lock(u64),
    /// A row of a tab.
    Row(Slot, usize),
    /// The same of the other crash, while two are compared.
    Other(Box<Self>),
}

impl Target {
    /// As it is written into a file of marks.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Dump(path) => format!("dump {path}"),
            Self::Record(at) => format!("record {at}"),
            Self::Event(number) => format!("event {number}"),
            Self::Line(line) => format!("line {line}"),
            Self::Bytes(addr) => format!("bytes {addr:#x}"),
            Self::Mapping(addr) => format!("mapping {addr:#x}"),
            Self::Page(addr) => format!("page {addr:#x}"),
            Self::Task(tid) => format!("task {tid}"),
            Self::Lock(addr) => format!("lock {addr:#x}"),
            Self::Row(slot, row) => format!("{} {row}", slot.name()),
            Self::Other(target) => format!("{} of the other crash", target.name()),
        }
    }

    /// What [`name`](Self::name) wrote; records and the other crash cannot be named from outside.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_once(' ')?;
        let number = kwab::report::filter::number(rest);
        Some(match kind {
            "dump" => Self::Dump(rest.to_string()),
            "event" => Self::Event(usize::try_from(number?).ok()?),
            "line" => Self::Line(number?),
            "bytes" => Self::Bytes(number?),
            "mapping" => Self::Mapping(number?),
            "page" => Self::Page(number?),
            "task" => Self::Task(u32::try_from(number?).ok()?),
            "lock" => Self::Lock(number?),
            slot => Self::Row(Slot::ALL.iter().copied().find(|known| known.name() == slot)?, number?.try_into().ok()?),
        })
    }

    /// The address it is about.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        match self {
            Self::Bytes(addr) | Self::Mapping(addr) | Self::Page(addr) | Self::Lock(addr) => Some(*addr),
            Self::Other(target) => target.address(),
            _ => None,
        }
    }
}

/// A list of a crash. Tabs show one; some tabs have several, of which one is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// Hypotheses with their evidence.
    Triage,
    /// Stack frames of the crash.
    Backtrace,
    /// Registers of each thread that has any.
    Registers,
    /// System calls in the order of their ends.
    Syscalls,
    /// Events in the order of time.
    Timeline,
    /// Mappings of the address space.
    Mappings,
    /// The table of page-table entries.
    Pages,
    /// Violations found by `audit-vm`.
    Audit,
    /// Pages whose bytes differ from what `verify-pages` expects.
    Checks,
    /// Captured memory, 16 bytes a row.
    Hex,
    /// Tasks with state and wait.
    Tasks,
    /// The console log.
    Log,
    /// Sections and damage.
    Integrity,
    /// Locks with owner and waiters.
    Locks,
    /// Profile: counters and where time went.
    Profile,
    /// Spans of the tracer, as a flame graph.
    Spans,
    /// Marks and notes.
    Marks,
    /// Facts of two crashes side by side.
    Compare,
}

impl Slot {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Triage,
        Self::Backtrace,
        Self::Registers,
        Self::Syscalls,
        Self::Timeline,
        Self::Mappings,
        Self::Pages,
        Self::Audit,
        Self::Checks,
        Self::Hex,
        Self::Tasks,
        Self::Log,
        Self::Integrity,
        Self::Locks,
        Self::Profile,
        Self::Spans,
        Self::Marks,
        Self::Compare,
    ];

    /// Its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Triage => "triage",
            Self::Backtrace => "backtrace",
            Self::Registers => "registers",
            Self::Syscalls => "syscalls",
            Self::Timeline => "timeline",
            Self::Mappings => "mappings",
            Self::Pages => "pages",
            Self::Audit => "audit",
            Self::Checks => "checks",
            Self::Hex => "hex",
            Self::Tasks => "tasks",
            Self::Log => "log",
            Self::Integrity => "integrity",
            Self::Locks => "locks",
            Self::Profile => "profile",
            Self::Spans => "spans",
            Self::Marks => "marks",
            Self::Compare => "compare",
        }
    }
}
