//! A dump with a million events and 100,000 pages: what the first picture, every key and the memory cost.
//!
//! `cargo bench -p kwab-tui` measures update and draw at 200×60 on a fully loaded crash, the first picture before
//! anything is loaded, and a directory of 10,000 dumps; memory is read from the system at the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use crossterm::event::KeyEvent;
use kwab::format::record::*;
use kwab::format::{BootId, DumpId, FileHeader, SectionKind};
use kwab::import::emit::DumpWriter;
use kwab_tui::action::{ACTIONS, Command};
use kwab_tui::app::{Action, App, Effect, TABS};
use kwab_tui::config::Config;
use kwab_tui::draw;
use kwab_tui::keys::{Key, fits};
use kwab_tui::load::{Generations, Message, Pool, Sources};
use kwab_tui::view::Slot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const EVENTS: u64 = 1_000_000;
const PAGES: u64 = 100_000;
/// Captured pages: their bytes are most of a real dump.
const CAPTURED: u64 = 20_000;
const TASKS: u32 = 2_000;
const LINES: u64 = 100_000;
const SPANS: u64 = 5_000;
const DUMPS: usize = 10_000;
const SIZE: (u16, u16) = (200, 60);

fn main_dump(path: &Path) {
    let file = std::io::BufWriter::new(std::fs::File::create(path).expect("created"));
    let mut out = DumpWriter::new(file, FileHeader::new(DumpId(1), BootId([1; 16])));
    let identity =
        Identity { kernel_name: Some(b"bench"), cpus: Some(4), arch: Some(Arch::X86_64), ..Identity::default() };
    out.put(SectionKind::IDENTITY, &identity);
    let cause = Cause {
        kind: Some(CauseKind::FATAL_SIGNAL),
        pid: Some(3),
        cmdline: Some(b"/bin/bench"),
        signal: Some(11),
        fault_addr: Some(0x10_0000),
        ip: Some(0x40_1000),
        in_kernel: Some(false),
        stamp: Stamp { ns: Some(EVENTS * 500), ..Stamp::default() },
        ..Cause::default()
    };
    out.put(SectionKind::CAUSE, &cause);
    let vma = Vma {
        pid: Some(3),
        start: Some(0x10_0000),
        end: Some(0x10_0000 + PAGES * 4096),
        prot: Some(3),
        name: Some(b"[anon]"),
        ..Vma::default()
    };
    out.put(SectionKind::MEMORY_MAP, &vma);
    pages(&mut out);
    tasks(&mut out);
    events(&mut out);
    spans(&mut out);
    drop(out.finish().expect("written"));
}

type Out = DumpWriter<std::io::BufWriter<std::fs::File>>;

fn pages(out: &mut Out) {
    for number in 0..PAGES {
        let raw = 0x1000_0067 + number * 4096;
        let vaddr = Some(0x10_0000 + number * 4096);
        let pte = Pte {
            pid: Some(3),
            vaddr,
            raw: Some(raw),
            paddr: Some(raw & !0xfff),
            size: Some(4096),
            rights: Some(0b1_1011),
            refcount: Some(1),
            ..Pte::default()
        };
        out.put(SectionKind::PAGE_TABLE, &pte);
        let result = if number % 9999 == 7 { CheckResult::DIRTY } else { CheckResult::EQUAL };
        out.put(
            SectionKind::PAGE_CHECKS,
            &PageCheck {
                pid: Some(3),
                vaddr,
                path: Some(b"/bin/bench"),
                file_offset: Some(number * 4096),
                result: Some(result),
                ..PageCheck::default()
            },
        );
    }
    let mut page = vec![0; 4096];
    let mut seed = 1u64;
    for number in 0..CAPTURED {
        for word in page.chunks_mut(8) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&seed.to_le_bytes());
        }
        let memory = Memory {
            kind: Some(MemoryKind::PAGE),
            vaddr: Some(0x10_0000 + number * 4096),
            pid: Some(3),
            bytes: Some(&page),
            ..Memory::default()
        };
        out.put(SectionKind::MEMORY, &memory);
    }
}

fn events(out: &mut Out) {
    for number in 0..EVENTS / 2 {
        let stamp = |ns| Stamp { ns: Some(ns), cpu: Some((number % 4) as u32), seq: Some(number), ..Stamp::default() };
        let (pid, nr) = (Some((number % 97) as u32), Some((number % 300) as i64));
        let entry = SyscallEntry {
            pid,
            nr,
            arg0: Some(number),
            arg1: Some(0x7fff_0000 + number),
            arg2: Some(4096),
            stamp: stamp(number * 1000),
            ..SyscallEntry::default()
        };
        out.put(SectionKind::EVENTS, &entry);
        let result = Some(if number % 11 == 0 { -2 } else { 4096 });
        out.put(
            SectionKind::EVENTS,
            &SyscallExit { pid, nr, result, stamp: stamp(number * 1000 + 700), ..SyscallExit::default() },
        );
    }
}

fn tasks(out: &mut Out) {
    for number in 1..TASKS {
        let comm = format!("worker/{number}");
        let task = Task {
            pid: Some(number),
            tid: Some(number),
            ppid: Some(number / 2),
            comm: Some(comm.as_bytes()),
            state: Some(if number % 7 == 0 { TaskState::BLOCKED } else { TaskState::SLEEPING }),
            wait_reason: Some(b"pipe read"),
            ..Task::default()
        };
        out.put(SectionKind::TASKS, &task);
    }
    for number in 0..LINES {
        let line = format!("[{:>12}] worker/{}: something that happens every now and then\n", number, number % 97);
        let ns = Some(number * 4000);
        let stamp = Stamp { ns, ..Stamp::default() };
        out.put(SectionKind::LOG, &LogChunk { bytes: Some(line.as_bytes()), stamp, ..LogChunk::default() });
    }
}

/// Nested spans of the last moments: three inside each other, of a hundred functions.
fn spans(out: &mut Out) {
    for number in 0..SPANS {
        let stamp = |ns: u64| Stamp { ns: Some(EVENTS * 500 + ns), cpu: Some(0), ..Stamp::default() };
        let names =
            [format!("syscall_{}", number % 100), format!("vfs_{}", number % 7), format!("copy_{}", number % 3)];
        for (depth, name) in names.iter().enumerate() {
            let (name, dir) = (Some(name.as_bytes()), Some(&b"enter"[..]));
            out.put(
                SectionKind::EVENTS,
                &Htrace { name, dir, stamp: stamp(number * 100 + depth as u64), ..Htrace::default() },
            );
        }
        for (depth, name) in names.iter().enumerate().rev() {
            let (name, dir) = (Some(name.as_bytes()), Some(&b"exit"[..]));
            let stamp = stamp(number * 100 + 90 - 10 * depth as u64);
            out.put(SectionKind::EVENTS, &Htrace { name, dir, stamp, ..Htrace::default() });
        }
    }
}

fn small_dump(number: usize) -> Vec<u8> {
    let mut out = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(number as u64 + 2), BootId([2; 16])));
    let identity =
        Identity { kernel_name: Some(b"bench"), wall_ns: Some(number as i64 * 1_000_000_000), ..Identity::default() };
    out.put(SectionKind::IDENTITY, &identity);
    let message = format!("panic in function_{}", char::from(b'a' + (number % 23) as u8));
    let cause = Cause {
        kind: Some(CauseKind::PANIC),
        message: Some(message.as_bytes()),
        in_kernel: Some(true),
        ..Cause::default()
    };
    out.put(SectionKind::CAUSE, &cause);
    out.put(SectionKind::LOG, &LogChunk { bytes: Some(&[b'x'; 2000]), ..LogChunk::default() });
    out.finish().expect("written")
}

/// An interface with real threads behind it.
struct Live {
    app: App,
    pool: Pool,
    current: Arc<Generations>,
    messages: std::sync::mpsc::Receiver<Message>,
}

impl Live {
    fn new(path: &Path) -> Self {
        let (send, messages) = std::sync::mpsc::channel();
        let current = Arc::new(Generations::default());
        let pool = Pool::start(2, Arc::clone(&current), &send, |message| message).expect("threads");
        let single = path.is_file().then(|| path.to_path_buf());
        let (mut app, first) = App::new(vec![path.to_path_buf()], single, Config::new(true), Sources::default(), None);
        app.update(Action::Resize(SIZE.0, SIZE.1));
        let mut live = Self { app, pool, current, messages };
        live.carry_out(first);
        live
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        self.app.publish(&self.current);
        for effect in effects {
            if let Effect::Job(job) = effect {
                self.pool.give(job);
            }
        }
    }

    fn act(&mut self, action: Action) {
        let effects = self.app.update(action);
        self.carry_out(effects);
    }

    fn key(&mut self, name: &str) {
        let key = Key::parse(name).expect(name);
        self.act(Action::Key(KeyEvent::new(key.code, key.modifiers)));
    }

    fn draw(&mut self, buffer: &mut Buffer) {
        let effects = self.app.settle();
        self.carry_out(effects);
        draw::render(&self.app, *buffer.area(), buffer);
    }

    fn until(&mut self, holds: impl Fn(&App) -> bool) {
        while !holds(&self.app) {
            let message = self.messages.recv_timeout(Duration::from_secs(120)).expect("a message");
            self.act(Action::Loaded(message));
            let effects = self.app.settle();
            self.carry_out(effects);
        }
    }
}

fn buffer() -> Buffer {
    Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1))
}

/// The most memory that this process ever had, bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Forgets what making the dumps took.
fn forget_peak() {
    // Where the system cannot, the peak is that of everything, which only makes it larger.
    drop(std::fs::write("/proc/self/clear_refs", "5"));
}

fn first_picture(folder: &Path, dump: &Path) {
    forget_peak();
    let started = Instant::now();
    let mut live = Live::new(dump);
    live.draw(&mut buffer());
    println!("first picture of the large dump: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    live.until(|app| app.workspace().session().crash().is_some_and(|crash| crash.report().is_some()));
    live.draw(&mut buffer());
    println!("first picture with what died:    {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    live.until(everything_loaded);
    println!("everything loaded:               {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    let bytes = std::fs::metadata(dump).expect("there").len();
    println!(
        "memory at its most: {:.1} MB for a dump of {:.1} MB: {:.2} times",
        peak() as f64 / 1e6,
        bytes as f64 / 1e6,
        peak() as f64 / bytes as f64
    );
    let started = Instant::now();
    let mut live = Live::new(&folder.join("many"));
    live.draw(&mut buffer());
    println!("first picture of {DUMPS} dumps:    {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    live.until(|app| app.workspace().catalogue().view().path(0).is_some());
    live.draw(&mut buffer());
    println!("first of them listed:            {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    let mut slowest = Duration::ZERO;
    while !live.app.workspace().catalogue().is_complete() {
        let message = live.messages.recv_timeout(Duration::from_secs(120)).expect("a message");
        let one = Instant::now();
        live.act(Action::Loaded(message));
        live.key("j");
        live.draw(&mut buffer());
        slowest = slowest.max(one.elapsed());
    }
    println!(
        "all of them read:                {:.1} ms; slowest answer meanwhile {:.1} ms",
        started.elapsed().as_secs_f64() * 1e3,
        slowest.as_secs_f64() * 1e3
    );
}

/// Whether every list of the open crash has arrived.
fn everything_loaded(app: &App) -> bool {
    let crash = app.workspace().session().crash();
    crash.is_some_and(|crash| Slot::ALL.iter().filter(|slot| crash.view(**slot).is_some()).count() >= 16)
}

/// Keys that leave, stop or start again: what comes after them does not answer a key.
fn is_an_end(command: Command) -> bool {
    matches!(command, Command::Quit | Command::Suspend | Command::Reload | Command::Whole | Command::Import)
}

impl Live {
    /// Goes to a list of the crash, or to the list of dumps, whatever happened before.
    fn stand(&mut self, slot: Option<Slot>) {
        while self.app.overlay().is_some() {
            self.key("esc");
        }
        let Some(slot) = slot else {
            if self.app.workspace().shown_crash().is_some() {
                self.act(Action::Command(Command::Catalogue));
            }
            return;
        };
        let tab = TABS.iter().position(|(_, lists)| lists.contains(&slot)).expect("a tab");
        self.act(Action::Command(Command::Tab(u8::try_from(tab).expect("a small number"))));
        while self.app.workspace().slot() != Some(slot) {
            self.act(Action::Command(Command::Mode));
        }
    }

    /// How long a key takes with its picture, and the list as it was again.
    fn answer(&mut self, key: &str, cells: &mut Buffer) -> Duration {
        let slot = self.app.workspace().slot();
        let started = Instant::now();
        self.key(key);
        self.draw(cells);
        let took = started.elapsed();
        self.stand(slot);
        while let Ok(message) = self.messages.try_recv() {
            self.act(Action::Loaded(message));
        }
        took
    }

    /// Every key that makes sense where the interface is: the slowest of them in the middle of its answers.
    fn worst_key(&mut self, name: &str, cells: &mut Buffer) -> &'static str {
        const TIMES: usize = 11;
        let here = self.app.workspace().key_scope();
        let slot = self.app.workspace().slot();
        let mut worst = ("", Duration::ZERO, Duration::ZERO);
        for row in ACTIONS.iter().filter(|row| fits(row.scope, here) && !is_an_end(row.command)) {
            let key = row.keys[0];
            let mut took: Vec<Duration> = (0..TIMES).map(|_| self.answer(key, cells)).collect();
            assert_eq!(self.app.workspace().slot(), slot, "{key} was answered elsewhere");
            took.sort();
            let (middle, most) = (took[TIMES / 2], took[TIMES - 1]);
            if middle > worst.1 {
                worst = (key, middle, most);
            }
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{name:<10} slowest key {:<9} {:>6.2} ms, once {:>6.2} ms", worst.0, ms(worst.1), ms(worst.2));
        worst.0
    }
}

fn keys(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let dump: PathBuf = folder.path().join("large.kwab");
    main_dump(&dump);
    std::fs::create_dir(folder.path().join("many")).expect("a folder");
    for number in 0..DUMPS {
        std::fs::write(folder.path().join("many").join(format!("crash-{number:05}.kwab")), small_dump(number))
            .expect("written");
    }
    first_picture(folder.path(), &dump);
    let mut live = Live::new(&dump);
    live.until(everything_loaded);
    let mut cells = buffer();
    let mut worst = Vec::new();
    let slots = || Slot::ALL.iter().copied().filter(|slot| !matches!(slot, Slot::Marks | Slot::Compare));
    for slot in slots() {
        live.stand(Some(slot));
        live.draw(&mut cells);
        worst.push(live.worst_key(slot.name(), &mut cells));
    }
    let mut group = criterion.benchmark_group("slowest key and its picture at 200x60");
    group.sample_size(10).measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(200));
    for (slot, key) in slots().zip(worst) {
        live.stand(Some(slot));
        live.draw(&mut cells);
        group.bench_function(format!("{}: {key}", slot.name()), |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| live.answer(key, &mut cells)).sum());
        });
    }
    let many = folder.path().join("many");
    let mut list = Live::new(&many);
    list.until(|app| app.workspace().catalogue().is_complete());
    list.draw(&mut cells);
    let key = list.worst_key("10k dumps", &mut cells);
    group.bench_function(format!("10,000 dumps: {key}"), |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| list.answer(key, &mut cells)).sum());
    });
    live.stand(Some(Slot::Timeline));
    group.bench_function("timeline: a letter of a filter", |bencher| {
        bencher.iter_custom(|times| {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                live.key("/");
                let started = Instant::now();
                live.key("x");
                live.draw(&mut cells);
                took += started.elapsed();
                live.key("esc");
                while let Ok(message) = live.messages.try_recv() {
                    live.act(Action::Loaded(message));
                }
            }
            took
        });
    });
    group.finish();
    let started = Instant::now();
    live.key("/");
    for key in ["p", "i", "d", ":", "3"] {
        live.key(key);
    }
    live.until(|app| !app.workspace().list().pending);
    println!("pid:3 among {EVENTS} events, in the background: {:.0} ms", started.elapsed().as_secs_f64() * 1e3);
}

criterion_group!(benches, keys);
criterion_main!(benches);
