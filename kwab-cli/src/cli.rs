//! What can be asked on the command line, and how it is explained there.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::analyses::Which;
pub(crate) use crate::following::Follow;
pub(crate) use crate::manual_pages::{Completions, Man};
pub(crate) use crate::sharing::{Doctor, Pack, Redact, Unpack};
use crate::suggested::{Suggested, section_kinds};

/// Crash dumps of kernels: import them from serial logs, look at them, check them.
#[derive(Debug, Parser)]
#[command(
    name = "kwab",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    subcommand_negates_reqs = true,
    after_help = crate::failure::STATUSES
)]
pub(crate) struct Arguments {
    /// Colours: on a terminal, always, or never. NO_COLOR turns them off too.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: Color,
    /// Memory limit for reading a dump, such as 64M or 2G; without it 64 MiB plus four times the file. What does not
    /// fit is left out, and reported.
    #[arg(long, global = true, value_parser = crate::since::size, value_name = "SIZE")]
    pub max_mem: Option<u64>,
    /// Also write the report as JSON to this file, as --json prints it. It replaces the file, but never an input.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json_out: Option<PathBuf>,
    /// Print long pages at once; otherwise a page longer than the terminal goes to KWAB_PAGER, PAGER or less.
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// A dump or serial log to triage; directories or several files to browse or list.
    #[arg(value_name = "FILE|LOG|DIR", required = true)]
    pub paths: Vec<PathBuf>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

impl Command {
    /// Whether the command makes a report that `--json` prints.
    pub(crate) const fn reports(&self) -> bool {
        let writes = matches!(self, Self::Export(_) | Self::Cat(_) | Self::Mcp(_) | Self::McpCall(_) | Self::Report(_));
        !writes && !matches!(self, Self::Tui(_) | Self::Schema(_) | Self::Completions(_) | Self::Man(_))
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Color {
    /// Colours when stdout is a terminal.
    #[default]
    Auto,
    /// Colours in every output.
    Always,
    /// Plain text in every output.
    Never,
}

/// The commands of `kwab`, in the order of the help text.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write dumps from a serial log: one per crash, or one recording if nothing crashed.
    Import(Import),
    /// Show what died, where and why.
    Inspect(Inspect),
    #[command(flatten)]
    Analysis(crate::analyses::Analysis),
    /// Bisect a boot parameter to the first value that crashes.
    Bisect(Bisect),
    /// Compare the crashes of a run with a baseline of known ones: a new crash fails.
    Ci(Ci),
    /// Compare two dumps, or the bugs of two directories: what is new first.
    Diff(Diff),
    /// Compare two runs of a program call by call: the first result that differs.
    Oracle(Oracle),
    /// Follow a console that is being written: one dump per crash, announced as it happens.
    Follow(Follow),
    /// Capture a dump of a QEMU guest, by its kernel or through QEMU's monitor, or of the core of a machine.
    Capture(Capture),
    /// Translate a virtual address, with the page-table entry of each level.
    Translate(crate::addresses::Translate),
    /// Find bytes, text or a pointer in all captured memory.
    Search(crate::addresses::Search),
    /// Say what an address is: symbol, mapping, stack, register, page table, frame.
    Whatis(crate::addresses::Whatis),
    /// Print statics, and arguments and locals of a frame, by their types.
    Print(crate::addresses::Print),
    /// Write every record as JSON, JSON lines or CSV, or the dump as a core file, a trace or stacks.
    Export(Export),
    /// Write an inspection as one HTML file, or as Markdown.
    Report(ReportFile),
    /// Check that dumps are undamaged.
    Check(Check),
    /// Write what survives of a damaged dump as a sound one.
    Salvage(Salvage),
    /// Write a dump without user data, for sharing.
    Redact(Redact),
    /// Put a dump, its images and how it was run into one archive.
    Pack(Pack),
    /// Restore an archive of kwab pack as a directory.
    Open(Unpack),
    /// Check what kwab misses on this machine, what it is for, and which command installs it.
    Doctor(Doctor),
    /// Index the dumps of a directory, so that list and trends read only what has changed.
    Index(Index),
    /// List dumps, those of the same crash together.
    List(List),
    /// Count the dumps of each signature per build.
    Trends(crate::fleet::Trends),
    /// Remove old dumps: keep N per signature, or a total size.
    Prune(crate::fleet::Prune),
    /// Serve crashes to a language model: the Model Context Protocol over stdin and stdout.
    Mcp(crate::serving::Mcp),
    /// Run a command for kwab mcp, confined to folders that it hands down.
    #[command(hide = true)]
    McpCall(crate::serving::McpCall),
    /// Keep images by build-id, where every command finds them.
    Symbols(crate::images::Symbols),
    /// Browse crashes in the terminal.
    Tui(crate::analyses::Tui),
    /// Print one section: text as recorded, other records as JSON lines.
    Cat(Cat),
    /// Print the JSON schema of a command's --json output.
    Schema(Schema),
    /// Print a completion script for a shell.
    Completions(Completions),
    /// Print the manual page, or write all of them into a directory.
    Man(Man),
}

/// A dialect file, for the help of `kwab import`.
const DIALECTS: &str = "\
A dialect file, for --dialects. Each row is a kernel; {name} captures,
{name:dec}, {name:hex} and {name:sym} a number or a symbol, {} skips text:

  [[dialect]]
  name = \"lemon\"
  begins = [
    { line = \"*** lemon: core {cpu:dec} died of {kind} at {address:hex}\",
      class = \"page-fault\", title = \"{kind}\" },
  ]
  lines = [\"task {pid:dec} \\\"{comm}\\\", pc {ip:hex}\"]
  frames = [\"[{:dec}] {address:hex} {symbol:sym}+{offset:hex}\"]
  ends = [\"*** lemon: halted\"]";

/// Arguments of `kwab import`.
#[derive(Debug, Args)]
#[command(after_long_help = DIALECTS)]
pub(crate) struct Import {
    /// The log; - is stdin.
    pub log: PathBuf,
    /// File for the dump, - for stdout, or directory for several; without it they lie beside the log.
    #[arg(short, long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
    /// Write only this crash of the log, counted from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub crash: Option<u32>,
    /// TOML file with further dialects of kernels' crash reports, as in the example below.
    #[arg(long, value_name = "FILE")]
    pub dialects: Option<PathBuf>,
    /// Report what would be written, without writing it.
    #[arg(long)]
    pub dry_run: bool,
    /// Overwrite existing files.
    #[arg(short, long)]
    pub force: bool,
    /// Exit with status 3 when anything in the log was not understood.
    #[arg(long)]
    pub strict: bool,
    /// Print the report as JSON instead of the paths.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab inspect`.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    #[command(flatten)]
    pub which: Which,
    /// Only these parts, separated by commas.
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "PART,…")]
    pub section: Vec<Part>,
    /// Most rows per list.
    #[arg(short = 'n', long, default_value_t = 24, value_name = "N")]
    pub rows: usize,
    /// Do not cut rows at the width of the terminal, and fold no frames.
    #[arg(short, long)]
    pub wide: bool,
    #[command(flatten)]
    pub symbols: crate::analyses::SymbolOptions,
    #[command(flatten)]
    pub good: crate::analyses::GoodBuild,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Parts of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The first hypotheses of the triage.
    Triage,
    /// Cause of death.
    Cause,
    /// Backtraces of the death, then of all processors and tasks.
    Bt,
    /// The code around the fault.
    Code,
    /// Registers of every thread that has any.
    Regs,
    /// Captured bytes: stack, code.
    Memory,
    /// The memory map around the fault.
    Vmas,
    /// Page checks that failed.
    Checks,
    /// The last system calls.
    Syscalls,
    /// The last events.
    Events,
    /// Flight recorder and function trace.
    Trace,
    /// Counters and profiles.
    Profile,
    /// Tasks with state and wait.
    Tasks,
    /// The end of the console log.
    Log,
    /// Kernel, boot and log.
    Meta,
    /// Remarks of the writer.
    Remarks,
    /// What is missing or damaged.
    Completeness,
}

/// Arguments of `kwab bisect`.
#[derive(Debug, Args)]
pub(crate) struct Bisect {
    /// The parameter and its values in order; without it one run, and the status that git bisect run expects.
    #[arg(long, value_name = "NAME=LOW..HIGH|NAME=A,B,C")]
    pub param: Option<String>,
    /// Injected faults to try one by one: they have no order to bisect.
    #[arg(long, value_delimiter = ',', value_name = "A,B,…", conflicts_with = "param")]
    pub inject: Vec<String>,
    /// The dump that a run leaves when it crashes; without it the command's status decides.
    #[arg(long, value_name = "FILE")]
    pub dump: Option<PathBuf>,
    /// The signature of the crash to bisect; without it that of the first crash.
    #[arg(long, value_name = "SIGNATURE", requires = "dump")]
    pub signature: Option<String>,
    /// Runs per value; a value is bad if one of its runs crashes.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Print the result as JSON when the search has ended.
    #[arg(long)]
    pub json: bool,
    /// Command that boots the machine; {} is replaced by NAME=VALUE.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Arguments of `kwab diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A dump or serial log, a directory of dumps, or a build of an image; - is stdin.
    #[arg(value_name = "A")]
    pub left: PathBuf,
    /// What is compared with it, likewise.
    #[arg(value_name = "B")]
    pub right: PathBuf,
    /// Differences to show of each kind.
    #[arg(short = 'n', long, default_value_t = 8, value_name = "N")]
    pub rows: usize,
    /// Do not cut rows at the width of the terminal.
    #[arg(short, long)]
    pub wide: bool,
    #[command(flatten)]
    pub symbols: crate::analyses::SymbolOptions,
    /// Print the result as JSON, with all differences; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab ci`.
#[derive(Debug, Args)]
pub(crate) struct Ci {
    /// Serial logs and dumps, and directories with .log and .kwab files; - is stdin.
    #[arg(required = true, value_name = "LOG|DUMP|DIR")]
    pub runs: Vec<PathBuf>,
    /// The crashes that are known: a TOML file to commit.
    #[arg(long, value_name = "FILE")]
    pub baseline: PathBuf,
    /// Add new crashes to the baseline, or create it; comments and entries that are gone stay. The exit status is
    /// that of a run without new crashes.
    #[arg(long)]
    pub write_baseline: bool,
    /// Print annotations of GitHub Actions, with file and line where the source is known.
    #[arg(long)]
    pub github: bool,
    /// Write JUnit's XML, replacing the file.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write SARIF 2.1.0, replacing the file.
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write a Markdown summary of one screen, replacing the file; - is stdout.
    #[arg(long, value_name = "FILE")]
    pub md: Option<PathBuf>,
    /// Do not cut rows at the width of the terminal.
    #[arg(short, long)]
    pub wide: bool,
    #[command(flatten)]
    pub symbols: crate::analyses::SymbolOptions,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long, conflicts_with = "github")]
    pub json: bool,
}

/// Arguments of `kwab oracle`.
#[derive(Debug, Args)]
pub(crate) struct Oracle {
    /// The run that is right: a dump or serial log with events of calls, or the text of strace -f; - is stdin.
    pub good: PathBuf,
    /// The run that is judged, likewise.
    pub bad: PathBuf,
    /// The program: its path or the last part of it; without it the first that GOOD executes.
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<String>,
    /// Image of the kernel that made BAD: name the functions behind the first difference.
    #[arg(long, value_name = "KERNEL")]
    pub symbols: Option<PathBuf>,
    #[command(flatten)]
    pub recorded: crate::analyses::RecordedPaths,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    #[command(flatten)]
    pub which: Which,
    /// Format of the output.
    #[arg(long, value_enum)]
    pub to: Form,
    /// Output file; without it or with -, stdout.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Only sections of these kinds, separated by commas (see kwab check --json).
    #[arg(short, long, value_delimiter = ',', value_name = "KIND,…")]
    #[arg(value_parser = Suggested(section_kinds), hide_possible_values = true)]
    pub section: Vec<String>,
    /// File, directory or initramfs with images, for core files and stacks; may be given several times.
    #[arg(long, value_name = "PATH")]
    pub symbols: Vec<PathBuf>,
    #[command(flatten)]
    pub tables: crate::fleet::Tables,
    /// Overwrite an existing file, but never a device or the input.
    #[arg(short, long)]
    pub force: bool,
}

/// Forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// One row per record.
    Csv,
    /// An ELF core file: gdb, drgn and eu-stack open it.
    ElfCore,
    /// A minidump of a process: lldb and crash services open it.
    Minidump,
    /// Spans, system calls, events and causes as JSON, for speedscope and Perfetto.
    ChromeTrace,
    /// What processors ran, calls, events, counters and causes: ui.perfetto.dev opens it.
    Perfetto,
    /// Stacks with their weights for flame graphs.
    Folded,
    /// A table for DuckDB, DataFusion, Spark: the catalogue of a directory, or records of dumps.
    Parquet,
}

/// Arguments of `kwab report`.
#[derive(Debug, Args)]
pub(crate) struct ReportFile {
    /// The dump or serial log; - is stdin.
    pub dump: PathBuf,
    #[command(flatten)]
    pub which: Which,
    /// Output file, - for stdout; without it the dump's name with .html or .md, in the current directory.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write Markdown, for an issue or a mail.
    #[arg(long)]
    pub md: bool,
    /// Most rows per list.
    #[arg(short = 'n', long, default_value_t = 2000, value_name = "N")]
    pub rows: usize,
    /// File, directory or initramfs with images; may be given several times.
    #[arg(long, value_name = "PATH")]
    pub symbols: Vec<PathBuf>,
    /// Directory with sources, for source paths that do not exist on this machine; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    #[command(flatten)]
    pub good: crate::analyses::GoodBuild,
    /// Overwrite an existing file.
    #[arg(short, long)]
    pub force: bool,
}

/// Arguments of `kwab check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The dumps; - is stdin.
    #[arg(required = true)]
    pub dumps: Vec<PathBuf>,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
    /// Print nothing; only set the exit status.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Arguments of `kwab salvage`.
#[derive(Debug, Args)]
pub(crate) struct Salvage {
    /// The damaged dump.
    pub bad: PathBuf,
    /// Which dump of a file with several, counted from 1; without it each goes to a file of its own, GOOD-1, GOOD-2, ….
    #[arg(long = "dump", value_name = "N")]
    pub number: Option<usize>,
    /// Output file; - is stdout.
    #[arg(short, long, value_name = "GOOD")]
    pub output: PathBuf,
    /// Overwrite an existing file.
    #[arg(short, long)]
    pub force: bool,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab capture`.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Socket of QEMU's machine protocol: `-qmp unix:SOCKET,server=on,wait=off`.
    #[arg(long, value_name = "SOCKET", required_unless_present_any = ["mem", "gdb"])]
    pub qmp: Option<PathBuf>,
    /// QEMU's stub for GDB (-gdb tcp:HOST:PORT, or -s for localhost:1234), which stops the guest; or a socket's path.
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["qmp", "mem", "no_nmi", "wait"])]
    pub gdb: Option<String>,
    /// Leave the guest stopped; without it the stub lets it run again.
    #[arg(long, requires = "gdb")]
    pub keep_stopped: bool,
    /// A core of a machine instead of a running guest: what QEMU's dump-guest-memory or a crash kernel wrote, in ELF or
    /// kdump-compressed (/proc/vmcore, makedumpfile); - is stdin.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["qmp", "memory", "no_nmi", "wait"])]
    pub mem: Option<PathBuf>,
    /// Memory to take: around the pointers of each processor, or all RAM (a temporary file; by --gdb at most 2 GiB).
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub memory: Memory,
    /// Output file of the dump if the guest's kernel writes none; - is stdout.
    #[arg(short, long, value_name = "FILE", default_value = "capture.kwab")]
    pub output: PathBuf,
    /// Do not ask the guest's kernel by an NMI; only read registers and memory.
    #[arg(long)]
    pub no_nmi: bool,
    /// Seconds that the kernel may take to act on the NMI.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=3600))]
    pub wait: u64,
    /// Overwrite an existing file.
    #[arg(short, long)]
    pub force: bool,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// How much memory `kwab capture` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Memory {
    /// Code and stack of each processor.
    #[default]
    Stacks,
    /// All RAM of the machine.
    All,
}

/// Arguments of `kwab list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Dumps, and directories with dumps.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
    /// Do not cut rows at the width of the terminal, and name every dump of large groups.
    #[arg(short, long)]
    pub wide: bool,
    /// List only the dumps that match, for example: cause:null cpu:1 pid>5 text. The score is in percent: score>80.
    #[arg(long, value_name = "TERMS")]
    pub filter: Option<String>,
    /// Order of the groups.
    #[arg(long, value_enum, value_name = "ORDER", default_value_t)]
    pub sort: Sort,
    /// Group by symptom only: read what each dump says of itself, without triage.
    #[arg(long)]
    pub quick: bool,
    /// The index of the directory; without it .kwab-index.db in the directory, if there is one.
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    pub index: Option<PathBuf>,
    /// What is compared with an index before it answers; without it each file of up to 10,000, else directories.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "quick")]
    pub check: Option<crate::fleet::Look>,
    /// List only dumps that happened since then: 2026-11-25, 2026-11-25T14:30:00Z, or an age as 90m, 36h, 14d.
    #[arg(long, value_name = "WHEN")]
    pub since: Option<crate::since::Since>,
    /// List only dumps of this build: the beginning of its build-id or commit, or the kernel's name and version.
    #[arg(long, value_name = "BUILD")]
    pub build: Option<String>,
    /// List only crashes of the newest build, or of --build, that the build before did not have: new ones, and those
    /// that are back.
    #[arg(long)]
    pub regressions: bool,
}

/// Arguments of `kwab index`.
#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The directory with dumps.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The index; without it .kwab-index.db in the directory.
    #[arg(long, value_name = "FILE")]
    pub index: Option<PathBuf>,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// What `kwab list` orders its groups by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Sort {
    /// Number of crashes, the most frequent first.
    #[default]
    Count,
    /// Score, the highest first.
    Score,
    /// When they happened first.
    First,
    /// When they happened last, the latest first.
    Last,
    /// The rule and its claim.
    Finding,
    /// The function or location.
    Place,
    /// The process that died or ran.
    Process,
    /// Damaged dumps, the most first.
    Completeness,
}

/// Arguments of `kwab cat`.
#[derive(Debug, Args)]
pub(crate) struct Cat {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    #[command(flatten)]
    pub which: Which,
    /// Kind of section (log, kept, events, …), or its number in the dump.
    #[arg(value_parser = Suggested(section_kinds), hide_possible_values = true)]
    pub section: String,
    /// The payload's bytes as they are in the dump, checked and unpacked.
    #[arg(long)]
    pub payload: bool,
    /// Also the records of sections whose checksum is wrong, each marked: any byte of them may be wrong.
    #[arg(long, conflicts_with = "payload")]
    pub untrusted: bool,
    /// Print bytes as they are on a terminal too.
    #[arg(long)]
    pub raw: bool,
}

/// Arguments of `kwab schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The command whose output the schema describes.
    #[arg(value_enum)]
    pub command: SchemaOf,
}

/// Commands whose JSON output has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// kwab import --json
    Import,
    /// kwab inspect --json
    Inspect,
    /// kwab check --json
    Check,
    /// kwab index --json
    Index,
    /// kwab list --json
    List,
    /// kwab trends --json
    Trends,
    /// kwab prune --json
    Prune,
    /// kwab ci --json
    Ci,
    /// A line of kwab follow --json
    Follow,
    /// kwab diff --json, of two dumps
    Diff,
    /// kwab diff --json, of two directories
    DiffOfDirectories,
    /// kwab diff --json, of two builds of an image
    DiffOfBuilds,
    /// kwab salvage --json
    Salvage,
    /// kwab redact --json
    Redact,
    /// kwab pack --json, kwab open --json
    Pack,
    /// kwab doctor --json
    Doctor,
    /// kwab triage --json
    Triage,
    /// kwab audit-vm --json
    AuditVm,
    /// kwab verify-pages --json
    VerifyPages,
    /// kwab bisect --json
    Bisect,
    /// kwab capture --json
    Capture,
    /// kwab oracle --json
    Oracle,
    /// kwab translate --json
    Translate,
    /// kwab search --json
    Search,
    /// kwab whatis --json
    Whatis,
    /// kwab print --json
    Print,
    /// kwab symbols --json
    Symbols,
    /// An answer of a tool of kwab mcp
    Mcp,
}
