//! Opens a crash: what it says first, then what follows from it, then everything that is long.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kwab::analysis::verify::Backing;
use kwab::analysis::{Context, changes_since, images, triage_since};
use kwab::builds::BuildChanges;
use kwab::causes::Causes;
use kwab::export::{span_tree, ticks_per_us};
use kwab::model::index::EventIndex;
use kwab::model::log::LogIndex;
use kwab::model::memory::Budget;
use kwab::model::payloads::Payloads;
use kwab::model::{Case, Depth, Dump, DumpFile, OpenError};
use kwab::report::check::check;
use kwab::report::inspect::{Options, Report, inspect};
use kwab::symbols::{Finder, IndexCache, SourceLines, Symbols};

use super::{Generations, Job, Message, Sources, Watch};
use crate::dump_name;
use crate::marks::Marks;
use crate::text::{count, grouped};
use crate::view::hex::HexView;
use crate::view::log::LogView;
use crate::view::memory::MappingsView;
use crate::view::overview::Overview;
use crate::view::pages::PagesView;
use crate::view::partners::Partners;
use crate::view::syscalls::SyscallsView;
use crate::view::timeline::TimelineView;
use crate::view::triage::TriageView;
use crate::view::{Slot, View, audit, backtrace, integrity, profile, registers, tasks};

/// A dump up to this length is held whole; of a longer one the middle of its recordings is left out until it is asked
/// for.
const WHOLE: u64 = 32 << 20;
/// How the search for images is called while it goes on.
pub const IMAGES: &str = "images";
/// Rows of the report's lists.
const ROWS: usize = 256;

/// Opens a dump, says what it is, and concludes.
pub(super) fn open(
    generation: u64,
    path: PathBuf,
    sources: &Sources,
    current: &Generations,
    send: &mut dyn FnMut(Message),
) -> Vec<Job> {
    let name = path.display().to_string();
    let file = match open_named(&path) {
        Ok(file) => file,
        Err(error) => {
            send(Message::Failed { generation, text: format!("{name}: {error}") });
            return Vec::new();
        }
    };
    if let Some(marks) = Marks::beside(&path) {
        send(Message::Marks { generation, marks });
    }
    let long = file.len > WHOLE;
    let dump = Dump::load(file, if long { Depth::Digest } else { Depth::All });
    let report = told(generation, &name, &dump, send);
    if !current.is_crash(generation) {
        return Vec::new();
    }
    let index = |held| Job::Index { generation, path: path.clone(), report: Arc::clone(&report), held };
    if long {
        let (path, sources) = (path.clone(), sources.clone());
        return vec![Job::Conclude { generation, path, sources, whole: false }, index(0)];
    }
    let held = conclude(generation, &name, dump, &report, sources, current, send);
    vec![index(held)]
}

/// Opens the dump of a name: a file, or one of several in it.
fn open_named(name: &Path) -> Result<DumpFile, OpenError> {
    let (file, number) = dump_name::split(name);
    DumpFile::open_number(&file, number)
}

/// Says what the crash is about, and what it spent its time on.
fn told(generation: u64, name: &str, dump: &Dump, send: &mut dyn FnMut(Message)) -> Arc<Report> {
    let report = Arc::new(inspect(dump, name, Options { rows: ROWS, ..Options::default() }));
    send(Message::Head { generation, report: Arc::clone(&report) });
    send(Message::List { generation, slot: Slot::Profile, view: Arc::new(profile::profile(&report)) });
    report
}

/// Reads a long dump with progress, and concludes.
pub(super) fn conclude_long(
    generation: u64,
    path: &Path,
    sources: &Sources,
    whole: bool,
    current: &Generations,
    send: &mut dyn FnMut(Message),
) {
    let name = path.display().to_string();
    let file = match open_named(path) {
        Ok(file) => file,
        Err(error) => {
            send(Message::Failed { generation, text: format!("{name}: {error}") });
            return;
        }
    };
    let depth = if whole { Depth::All } else { Depth::Analysis };
    let mut watch = Watch { generation, what: "reading", current, send };
    let loaded = Dump::load_watched(file, depth, &mut |done, total| watch.told(done, total));
    watch.finished();
    let ControlFlow::Continue(dump) = loaded else { return };
    let report = told(generation, &name, &dump, send);
    conclude(generation, &name, dump, &report, sources, current, send);
}

/// What was left out of a long recording, in words.
fn skipped(dump: &Dump) -> Vec<String> {
    let kinds = dump.skipped().into_iter().map(|(kind, left, all)| {
        let name = kind.name().map_or_else(|| format!("kind {}", kind.0), str::to_string);
        let used = grouped((all - left) as u64);
        format!("analysed {used} of {} {name} sections: the last ones and those at the death", grouped(all as u64))
    });
    kinds.collect()
}

/// Everything that the analyses say; returns what the lists of it hold of the dump's budget.
fn conclude(
    generation: u64,
    name: &str,
    mut dump: Dump,
    report: &Report,
    sources: &Sources,
    current: &Generations,
    send: &mut dyn FnMut(Message),
) -> u64 {
    let skipped = skipped(&dump);
    send(Message::Skipped { generation, skipped: skipped.clone() });
    dump.file.release();
    let case = dump.case();
    let budget = &dump.file.budget;
    let before = budget.left();
    let price = list_tasks(generation, &case, &Symbols::new(), budget, send);
    let locks = tasks::locks(&case, budget);
    say_left_out(generation, "locks", locks.left_out, send);
    send(Message::List { generation, slot: Slot::Locks, view: Arc::new(locks) });
    let mut finder = finder(sources, name);
    let mut watch = Watch { generation, what: IMAGES, current, send };
    let looked = finder.look(&mut |done, total| watch.told(done, total));
    watch.finished();
    if looked.is_break() {
        return 0;
    }
    let found = images::load(&case, &mut finder, &IndexCache::of_user());
    if !current.is_crash(generation) {
        return 0;
    }
    let backing = backing(generation, sources, send);
    if !found.symbols.loaded().is_empty() {
        // These take the place of the others.
        budget.give(price);
        list_tasks(generation, &case, &found.symbols, budget, send);
    }
    let changes = changes(generation, sources, &case, &found.symbols, send);
    let mut list = |slot, view: Arc<dyn View>| send(Message::List { generation, slot, view });
    let concluded = triage_since(&case, &found.symbols, &backing, changes.as_ref(), name);
    let ctx = Context::new(&case, &found.symbols, &backing);
    // What an image that came with the dump records is not read from anywhere.
    let roots = vec![PathBuf::from(".")];
    let lines = if finder.took_beside() { SourceLines::below(roots) } else { SourceLines::new(roots) };
    let trace = backtrace::backtrace(report, &ctx, lines);
    let registers = registers::registers(report, &ctx, budget);
    let registers_left_out = registers.left_out;
    let overview = Overview::new(report, &trace, &registers);
    list(Slot::Triage, Arc::new(TriageView::new(concluded, skipped, overview)));
    list(Slot::Backtrace, Arc::new(trace));
    if ctx.trace.len() > 1 && report.completeness.missing.iter().any(|gap| gap.what == "backtrace") {
        let mut report = report.clone();
        report.completeness.filled("backtrace");
        send(Message::Head { generation, report: Arc::new(report) });
    }
    let mut list = |slot, view: Arc<dyn View>| send(Message::List { generation, slot, view });
    list(Slot::Registers, Arc::new(registers));
    list(Slot::Mappings, Arc::new(MappingsView::new(&ctx)));
    list(Slot::Pages, Arc::new(PagesView::new(&ctx)));
    list(Slot::Audit, Arc::new(audit::audit(&ctx)));
    let checks = audit::checks(&ctx, &backing, budget);
    let left_out = (registers_left_out, checks.left_out);
    list(Slot::Checks, Arc::new(checks));
    list(Slot::Spans, Arc::new(profile::spans(&span_tree(&dump), ticks_per_us(&dump))));
    say_left_out(generation, "registers", left_out.0, send);
    say_left_out(generation, "page checks", left_out.1, send);
    let by_user = |remark: &String| sources.symbols.iter().any(|path| remark.starts_with(&*path.to_string_lossy()));
    let problem = found.problems.first().cloned().or_else(|| finder.remarks().into_iter().find(by_user));
    if let Some(said) = of_symbols(generation, sources, &found.symbols, problem.as_ref()) {
        send(said);
    }
    before.saturating_sub(budget.left())
}

/// Where images are looked for.
fn finder(sources: &Sources, name: &str) -> Finder {
    let mut paths = sources.symbols.clone();
    let built = PathBuf::from("target/x86_64-unknown-none");
    if built.is_dir() {
        paths.push(built);
    }
    let finder = Finder::new(paths, sources.force).and_beside(kwab::pack::images_beside(Path::new(name)));
    if sources.kept { finder } else { finder.with_debug_dirs(Vec::new()) }
}

/// Files that the user named to compare pages with.
fn backing(generation: u64, sources: &Sources, send: &mut dyn FnMut(Message)) -> Backing {
    match sources.backing.as_deref().map(Backing::open) {
        Some(Ok(backing)) => backing,
        Some(Err(error)) => {
            send(Message::Failed { generation, text: error.to_string() });
            Backing::none()
        }
        None => Backing::none(),
    }
}

/// Lists the tasks; returns what their rows took of the budget.
fn list_tasks(
    generation: u64,
    case: &Case<'_>,
    symbols: &Symbols,
    budget: &Budget,
    send: &mut dyn FnMut(Message),
) -> u64 {
    let before = budget.left();
    let tasks = tasks::tasks(case, symbols, budget);
    say_left_out(generation, "tasks", tasks.left_out, send);
    send(Message::List { generation, slot: Slot::Tasks, view: Arc::new(tasks) });
    before.saturating_sub(budget.left())
}

/// What was changed since the build that worked, if one was named.
fn changes(
    generation: u64,
    sources: &Sources,
    case: &Case<'_>,
    symbols: &Symbols,
    send: &mut dyn FnMut(Message),
) -> Option<BuildChanges> {
    let good = sources.good.as_deref()?;
    let found = changes_since(good, case, symbols);
    found.map_err(|error| send(Message::Failed { generation, text: format!("{}: {error}", good.display()) })).ok()
}

/// What has come of the images that the user named.
fn of_symbols(generation: u64, sources: &Sources, symbols: &Symbols, problem: Option<&String>) -> Option<Message> {
    if sources.symbols.is_empty() {
        return None;
    }
    let failed = |text| Some(Message::Failed { generation, text });
    match (problem, symbols.loaded().len()) {
        // What was left out matters less than what was found.
        (Some(problem), images @ 1..) if sources.is_asked => {
            Some(Message::Told { text: format!("symbols of {} loaded; {problem}", count(images, "image", "images")) })
        }
        (Some(problem), _) => failed(problem.clone()),
        (None, 0) if sources.is_asked => failed("no image there is one of this dump: the build-ids differ".to_string()),
        (None, images) if sources.is_asked => {
            Some(Message::Told { text: format!("symbols of {} loaded", count(images, "image", "images")) })
        }
        (None, _) => None,
    }
}

/// Everything that is long: events, console, memory, checksums. Other lists of the dump hold `held` bytes of its
/// budget.
pub(super) fn index(
    generation: u64,
    path: &Path,
    report: &Report,
    held: u64,
    current: &Generations,
    send: &mut dyn FnMut(Message),
) {
    let file = match open_named(path) {
        Ok(file) => file,
        Err(error) => {
            send(Message::Failed { generation, text: format!("{}: {error}", path.display()) });
            return;
        }
    };
    let _ = file.budget.take(held.min(file.budget.left()));
    let payloads = Arc::new(Payloads::new(Arc::new(file)));
    let mut watch = Watch { generation, what: "events", current, send };
    let events = EventIndex::build(&payloads, &mut |done, total| watch.told(done, total));
    watch.finished();
    let Some(events) = events.map(Arc::new) else { return };
    say_left_out(generation, "events", events.left_out, send);
    let partners = Partners::new(Causes::of_file(&payloads), &events);
    let timeline = TimelineView::new(Arc::clone(&payloads), Arc::clone(&events), partners);
    send(Message::List { generation, slot: Slot::Timeline, view: Arc::new(timeline) });
    let calls = SyscallsView::new(Arc::clone(&payloads), events, &report.syscalls);
    send(Message::List { generation, slot: Slot::Syscalls, view: Arc::new(calls) });
    let mut watch = Watch { generation, what: "log", current, send };
    let log = LogIndex::build(&payloads, &mut |done, total| watch.told(done, total));
    watch.finished();
    let Some(log) = log else { return };
    say_left_out(generation, "console lines", log.left_out, send);
    send(Message::List { generation, slot: Slot::Log, view: Arc::new(LogView::new(Arc::clone(&payloads), log)) });
    let hex = HexView::new(Arc::clone(&payloads));
    say_left_out(generation, "pieces of memory", hex.left_out, send);
    send(Message::List { generation, slot: Slot::Hex, view: Arc::new(hex) });
    verify(generation, path, report, &payloads.file().budget, current, send);
}

/// Says that a list is not whole, and what makes it whole.
fn say_left_out(generation: u64, what: &str, left_out: usize, send: &mut dyn FnMut(Message)) {
    if left_out > 0 {
        let count = grouped(left_out as u64);
        let text = format!("the memory limit is reached: {count} {what} are not listed; kwab tui --max-mem raises it");
        send(Message::Failed { generation, text });
    }
}

/// Checks every checksum, the long ones with progress.
fn verify(
    generation: u64,
    path: &Path,
    report: &Report,
    budget: &Budget,
    current: &Generations,
    send: &mut dyn FnMut(Message),
) {
    let Ok(mut file) = open_named(path) else { return };
    let total = file.sections.len();
    if file.verified() < total {
        let mut watch = Watch { generation, what: "checksums", current, send };
        for section in 0..total {
            if section % 16 == 0 && watch.told(section, total).is_break() {
                return;
            }
            // What is wrong is noted by the check below; here the bytes are read with a way to stop.
            drop(file.payload(section));
        }
        watch.finished();
    }
    let checked = check(&mut file, &report.file);
    // However many events there are, damage is shown first of all.
    let least = Budget::of(0, u64::MAX);
    let budget = if budget.left() < least.left() { &least } else { budget };
    let view = integrity::integrity(&checked, report, true, budget);
    say_left_out(generation, "sections and remarks", view.left_out, send);
    send(Message::List { generation, slot: Slot::Integrity, view: Arc::new(view) });
}
