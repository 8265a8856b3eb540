//! Exports, judged by the readers they are made for where those are installed, and by their formats everywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use kwab_format::record::{
    Cause, CauseKind, ImageKind, Memory, MemoryKind, ProcessExec, Reg, RegId, RegisterRole, Registers, Stamp,
};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind, Sink, SinkError, Writer};
use object::{Object, ObjectSegment};
use serde_json::Value;

use super::*;
use crate::causes::Causes;
use crate::import::{Options, PendingFile, import};
use crate::memory::Ram;
use crate::model::Dump;
use crate::model::emit::DumpWriter;
use crate::symbols::{Image, IndexCache, LoadedImage, Symbols};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn data(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data").join(part)
}

/// Registers, stack and the callers' addresses of the program that jumped to zero, as gdb saw them alive.
fn fixture() -> (Vec<Reg<'static>>, u64, Vec<u8>, Vec<u64>) {
    let text = std::fs::read_to_string(data("unwind/chain-cfi.gdb")).unwrap();
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let names =
        [("rip", RegId::RIP), ("rsp", RegId::RSP), ("rbp", RegId::RBP), ("rbx", RegId::RBX), ("r12", RegId::R12)];
    let (mut regs, mut stack, mut callers) = (Vec::new(), BTreeMap::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('#') {
            callers.push(hex(words[1]));
        } else if let Some((addr, values)) = line.split_once(":\t") {
            for (at, value) in values.split_whitespace().enumerate() {
                stack.insert(hex(addr) + at as u64 * 8, hex(value));
            }
        } else if let Some((_, id)) = names.iter().find(|(name, _)| words.first() == Some(name)) {
            regs.push(Reg::new(*id, hex(words[1])));
        }
    }
    let start = *stack.keys().next().unwrap();
    (regs, start, stack.values().flat_map(|word| word.to_le_bytes()).collect(), callers)
}

/// A dump of that program, with a second processor, and memory that overlaps itself.
fn dump() -> (Dump, Vec<u64>) {
    dump_of(fixture())
}

/// The same a moment earlier, in the function that called zero: where there is no code, not every reader goes on.
fn dump_of_caller() -> (Dump, Vec<u64>) {
    let (mut regs, start, stack, mut callers) = fixture();
    callers.remove(0);
    for reg in &mut regs {
        match reg.id {
            Some(RegId::RIP) => reg.value = callers.first().copied(),
            Some(RegId::RSP) => reg.value = reg.value.map(|sp| sp + 8),
            _ => {}
        }
    }
    dump_of((regs, start, stack, callers))
}

fn dump_of((regs, start, stack, callers): (Vec<Reg<'static>>, u64, Vec<u8>, Vec<u64>)) -> (Dump, Vec<u64>) {
    let mut buf = vec![0; 1 << 20];
    let header = FileHeader::new(DumpId(9), BootId([1; 16]));
    let mut writer = Writer::new(Bytes(Vec::new()), &mut buf, header);
    let cause = Cause {
        kind: Some(CauseKind::EXCEPTION),
        in_kernel: Some(true),
        ip: Some(0),
        fault_addr: Some(0),
        comm: Some(b"chain"),
        ..Cause::default()
    };
    let cpu = |number| Stamp { cpu: Some(number), ..Stamp::default() };
    let other = [Reg::new(RegId::RIP, 0x40_1000), Reg::new(RegId::RSP, start + 64)];
    let dead = Registers {
        role: Some(RegisterRole::FAULT),
        regs: Some(List::new(&regs)),
        stamp: cpu(0),
        ..Registers::default()
    };
    let stopped = Registers {
        role: Some(RegisterRole::STOPPED),
        regs: Some(List::new(&other)),
        stamp: cpu(1),
        ..Registers::default()
    };
    let memory = |vaddr, bytes| Memory {
        kind: Some(MemoryKind::KERNEL_STACK),
        vaddr: Some(vaddr),
        bytes: Some(bytes),
        ..Memory::default()
    };
    let path = data("unwind/chain-cfi.elf").canonicalize().unwrap();
    let program = kwab_format::record::Image {
        path: Some(path.as_os_str().as_encoded_bytes()),
        kind: Some(ImageKind::KERNEL),
        start: Some(0x40_0000),
        end: Some(0x40_4000),
        ..kwab_format::record::Image::default()
    };
    writer.begin(SectionKind::IMAGES).unwrap();
    writer.put(&program).unwrap();
    writer.begin(SectionKind::CAUSE).unwrap();
    writer.put(&cause).unwrap();
    writer.begin(SectionKind::REGISTERS).unwrap();
    writer.put(&stopped).unwrap();
    writer.put(&dead).unwrap();
    writer.begin(SectionKind::STACKS).unwrap();
    writer.put(&memory(start, &stack[..512])).unwrap();
    writer.put(&memory(start + 256, &stack[256..])).unwrap();
    writer.put(&memory(start - 64, &[0x55; 128])).unwrap();
    let (Bytes(bytes), done) = writer.finish();
    done.unwrap();
    (Dump::from_bytes(bytes).unwrap(), callers)
}

fn core_of(dump: &Dump) -> Vec<u8> {
    let mut core = Vec::new();
    let mut symbols = Symbols::new();
    let image = Image::open(&data("unwind/chain-cfi.elf"), &IndexCache::none()).unwrap();
    symbols.add(LoadedImage::new(std::sync::Arc::new(image), 0, None));
    elf_core(&dump.case(), &Ram::of(dump), &symbols, &mut core).unwrap();
    core
}

#[test]
fn a_core_file_has_every_processor_as_a_thread_and_every_byte_once() {
    let (dump, _) = dump();
    let core = core_of(&dump);
    let elf = object::File::parse(&*core).unwrap();
    assert_eq!((elf.kind(), elf.architecture()), (object::ObjectKind::Core, object::Architecture::X86_64));
    let (_, start, stack, _) = fixture();
    let mut segments: Vec<_> =
        elf.segments().map(|segment| (segment.address(), segment.data().unwrap().to_vec())).collect();
    segments.sort();
    // The page with the ELF header of the image, by which readers know it.
    assert!(segments.remove(0).1.starts_with(b"\x7fELF"));
    assert!(segments.windows(2).all(|pair| pair[0].0 + pair[0].1.len() as u64 <= pair[1].0), "segments overlap");
    let joined: Vec<u8> = segments.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    // What was captured first wins, so the 0x55 bytes only fill the 64 before the stack; the page begins with nothing.
    let (page, skip) = ((start - 64) & !0xfff, (start - 64) as usize & 0xfff);
    assert_eq!((segments.len(), segments[0].0), (1, page));
    assert!(joined[..skip].iter().all(|byte| *byte == 0));
    assert_eq!((&joined[skip..skip + 64], &joined[skip + 64..]), (&[0x55; 64][..], &stack[..]));
    let threads = core.windows(8).filter(|window| window == b"CORE\0\0\0\0").count();
    assert_eq!(threads, 5, "two NT_PRSTATUS, and one each of NT_PRPSINFO, NT_AUXV and NT_FILE");
    let entry = [9_u64.to_le_bytes(), elf_entry().to_le_bytes()].concat();
    let has = |bytes: &[u8]| memchr::memmem::find(&core, bytes).is_some();
    assert!(has(&entry), "AT_ENTRY is that of the image where the dump does not say it");
    assert!(has(b"chain-cfi.elf\0\0\0chain\0"), "the program of a kernel is its image");
}

/// The file of the program is not at hand, that of its library is.
#[test]
fn the_load_address_of_a_program_is_not_that_of_its_library() {
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(9), BootId([1; 16])));
    let path = data("unwind/chain-cfi.elf").canonicalize().unwrap();
    let image = |kind, path, start, entry| kwab_format::record::Image {
        path: Some(path),
        kind: Some(kind),
        start: Some(start),
        end: Some(start + 0x4000),
        pid: Some(7),
        entry,
        ..kwab_format::record::Image::default()
    };
    let library = path.as_os_str().as_encoded_bytes();
    writer.put(SectionKind::IMAGES, &image(ImageKind::LIBRARY, library, 0x40_0000, Some(0x40_1111)));
    let program = image(ImageKind::EXECUTABLE, b"/srv/demo/t", 0x5555_5555_4000, Some(0x5555_5555_50d0));
    writer.put(SectionKind::IMAGES, &program);
    let cause = Cause { kind: Some(CauseKind::FATAL_SIGNAL), pid: Some(7), signal: Some(11), ..Cause::default() };
    writer.put(SectionKind::CAUSE, &Cause { in_kernel: Some(false), ..cause });
    let regs = [Reg::new(RegId::RIP, 0x5555_5555_5294), Reg::new(RegId::RSP, 0x7fff_0000)];
    let role = Some(RegisterRole::USER);
    let regs = Registers { role, pid: Some(7), regs: Some(List::new(&regs)), ..Registers::default() };
    writer.put(SectionKind::REGISTERS, &regs);
    let core = core_of(&Dump::from_bytes(writer.finish().unwrap()).unwrap());
    let value = |kind: u64, value: u64| [kind.to_le_bytes(), value.to_le_bytes()].concat();
    let has = |bytes: &[u8]| memchr::memmem::find(&core, bytes).is_some();
    assert!(has(&value(9, 0x5555_5555_50d0)), "AT_ENTRY is that of the program");
    assert!(!has(&value(9, 0x40_1111)) && !has(&value(3, 0x40_0040)), "nothing is of the library");
    assert!(has(b"chain-cfi.elf"), "the library is named all the same");
}

fn elf_entry() -> u64 {
    let image = std::fs::read(data("unwind/chain-cfi.elf")).unwrap();
    u64::from_le_bytes(image[24..32].try_into().unwrap())
}

#[test]
fn gdb_finds_the_same_frames_in_the_core_file_as_in_the_living_program() {
    let (dump, callers) = dump();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    std::fs::write(&path, core_of(&dump)).unwrap();
    let output = Command::new("gdb")
        .args(["-q", "-batch", "-nx", "-ex", "bt", "-ex", "info threads"])
        .arg(data("unwind/chain-cfi.elf"))
        .arg(&path)
        .output();
    // The format is judged above; the debugger judges only where it is installed.
    let Ok(output) = output else { return };
    let text = String::from_utf8_lossy(&output.stdout);
    for (number, caller) in callers.iter().enumerate() {
        let frame = format!("#{number} ");
        let line =
            text.lines().find(|line| line.starts_with(&frame)).unwrap_or_else(|| panic!("no frame {number}: {text}"));
        assert!(line.contains(&format!("{caller:016x}")), "{line} is not {caller:#x}: {text}");
    }
    assert!(text.contains("LWP 1000001"), "the second processor is not a thread: {text}");
    // The file has the name of the image, and what the dump does not say about its entry the image does.
    let doubts = String::from_utf8_lossy(&output.stderr);
    assert!(!doubts.contains("may not match"), "{doubts}");
}

/// Addresses of the frames of the crashed thread as a program prints them; `None`, and a word on stderr, where it is
/// missing.
fn frames_by(tool: &str, command: &mut Command) -> Option<Vec<u64>> {
    let output = command.output().ok().filter(|output| output.status.success() || !output.stdout.is_empty());
    let Some(output) = output else {
        eprintln!("{tool} is not installed: its opinion is left out");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let address = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?.strip_prefix("0x")?, 16).ok();
    let mut other = false;
    let mut frames = Vec::new();
    for line in text.lines() {
        // The thread of the second processor.
        other = if line.starts_with("TID ") { line.starts_with("TID 1000001") } else { other };
        frames.extend(Some(line).filter(|line| !other && line.starts_with('#')).and_then(address));
    }
    Some(frames)
}

#[test]
fn eu_stack_finds_the_same_frames_in_the_core_file() {
    let (dump, callers) = dump_of_caller();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    std::fs::write(&path, core_of(&dump)).unwrap();
    let mut command = Command::new("eu-stack");
    command.arg("--core").arg(&path).arg("-e").arg(data("unwind/chain-cfi.elf"));
    let Some(frames) = frames_by("eu-stack", &mut command) else { return };
    assert_eq!(frames.get(..callers.len()), Some(&callers[..]), "{frames:x?}");
}

#[test]
fn drgn_finds_the_same_frames_in_the_core_file() {
    let (dump, callers) = dump_of_caller();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    std::fs::write(&path, core_of(&dump)).unwrap();
    let script = "import sys, drgn
program = drgn.Program()
program.set_core_dump(sys.argv[1])
program.load_debug_info([sys.argv[2]])
thread = next(thread for thread in program.threads() if thread.tid != 1000001)
for number, frame in enumerate(thread.stack_trace()):
    print(f'#{number} {frame.pc:#x}')
";
    let python = std::env::var("KWAB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(python);
    command.args(["-c", script]).arg(&path).arg(data("unwind/chain-cfi.elf"));
    let Some(frames) = frames_by("drgn", &mut command) else { return };
    assert_eq!(frames.get(..callers.len()), Some(&callers[..]), "{frames:x?}");
}

#[test]
fn lldb_opens_the_core_of_a_kernel_and_shows_every_thread_where_it_was() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps/lost-wakeup.kwab");
    let dump = Dump::from_bytes(std::fs::read(path).unwrap()).unwrap();
    let mut core = Vec::new();
    elf_core(&dump.case(), &Ram::of(&dump), &Symbols::new(), &mut core).unwrap();
    // Without this it says `Unsupported OS`.
    assert_eq!(core[7], 3, "the notes are those of Linux");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core");
    std::fs::write(&path, core).unwrap();
    let mut command = Command::new("lldb");
    command.args(["-x", "-b", "-o", "thread list", "-c"]).arg(&path).stdin(std::process::Stdio::null());
    let Ok(output) = command.output() else {
        eprintln!("lldb is not installed: its opinion is left out");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for thread in ["tid = 1000000, 0xffffffff801d822c", "tid = 1, 0xffffffff8024fa8e", "tid = 2, 0xffffffff8024fa8e"] {
        assert!(text.contains(thread), "{thread}: {text}");
    }
}

/// Kind and body of each note of a core file.
fn notes(core: &[u8]) -> Vec<(u32, Vec<u8>)> {
    use object::read::elf::{FileHeader as _, ProgramHeader as _};
    let header = object::elf::FileHeader64::<object::Endianness>::parse(core).unwrap();
    let endian = header.endian().unwrap();
    let mut all = Vec::new();
    for segment in header.program_headers(endian, core).unwrap() {
        let Ok(Some(mut notes)) = segment.notes(endian, core) else { continue };
        while let Ok(Some(note)) = notes.next() {
            all.push((note.n_type(endian).0, note.desc().to_vec()));
        }
    }
    all
}

#[test]
fn every_task_of_a_kernel_is_a_thread_with_its_place_and_name() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps/lost-wakeup.kwab");
    let dump = Dump::from_bytes(std::fs::read(path).unwrap()).unwrap();
    let mut core = Vec::new();
    elf_core(&dump.case(), &Ram::of(&dump), &Symbols::new(), &mut core).unwrap();
    let notes = notes(&core);
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let threads: Vec<(u32, u64)> = notes
        .iter()
        .filter(|(kind, _)| *kind == 1)
        .map(|(_, body)| (word(body, 32) as u32, word(body, 112 + 8 * 16)))
        .collect();
    let case = dump.case();
    let waiting = case.tasks.iter().filter(|task| task.kernel_ip.is_some_and(|ip| ip != 0));
    let waiting: Vec<(u32, u64)> = waiting.filter_map(|task| Some((task.tid?, task.kernel_ip?))).collect();
    assert!(waiting.len() > 1 && waiting.iter().all(|task| threads.contains(task)), "{waiting:x?} {threads:x?}");
    let names: Vec<&[u8]> = notes
        .iter()
        .filter(|(kind, _)| *kind == 3)
        .map(|(_, body)| body[40..56].split(|b| *b == 0).next().unwrap())
        .collect();
    assert!(names.contains(&&b"oneshot"[..]) && names.contains(&&b"exam"[..]), "{names:?}");
    assert_eq!(names.first(), names.last(), "gdb takes the last for the program");
}

#[test]
fn a_dump_without_registers_is_no_core_file() {
    let bytes = imported("kevlar-pipe-profile.log").remove(0);
    let dump = Dump::from_bytes(bytes).unwrap();
    let error = elf_core(&dump.case(), &Ram::of(&dump), &Symbols::new(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, CoreError::NoRegisters), "{error}");
}

fn imported(name: &str) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { source: name.to_owned(), folder: Some(folder.path().to_path_buf()) };
    let log = std::fs::File::open(data("logs").join(name)).unwrap();
    let (_, dumps) = import(log, &options, &mut |_| {}).unwrap();
    let read = |mut file: PendingFile| {
        let mut bytes = Vec::new();
        file.copy_to(&mut bytes).unwrap();
        bytes
    };
    dumps.into_iter().filter_map(|dump| dump.file).map(read).collect()
}

#[test]
fn a_chrome_trace_of_a_real_log_is_valid_and_its_spans_nest() {
    for name in ["kevlar-pipe-profile.log", "kevlar-panic-socket.log"] {
        let dump = Dump::from_bytes(imported(name).remove(0)).unwrap();
        let mut out = Vec::new();
        let traced = chrome_trace(&dump, &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let named = events.iter().filter(|event| event["ph"] == "M").count() as u64;
        let written = traced.spans + traced.calls + traced.instants + 2 * traced.flows + named;
        assert_eq!(events.len() as u64, written, "{name}");
        assert!(traced.spans > 10, "{name}: {traced:?}");
        let mut open: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for event in events.iter().filter(|event| event["cat"] == "span") {
            let (phase, begin) = (event["ph"].as_str().unwrap(), event["ts"].as_f64().unwrap());
            assert!(event["name"].is_string() && event["pid"].is_u64() && ["X", "B"].contains(&phase), "{event}");
            let stack = open.entry(event["tid"].as_u64().unwrap()).or_default();
            stack.retain(|end| *end > begin);
            if phase == "X" {
                let end = begin + event["dur"].as_f64().unwrap();
                assert!(
                    stack.last().is_none_or(|outer| end <= outer + 0.001),
                    "{name}: a span outlives the one around it: {event}"
                );
                stack.push(end);
            }
        }
    }
}

/// The dumps that our kernel wrote, and those that real logs become.
#[test]
fn threads_without_room_for_a_track_are_shown_on_the_one_of_all_processors_and_counted() {
    const THREADS: u32 = 2000;
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
    for tid in 1..=THREADS {
        let stamp = Stamp { ns: Some(tid.into()), ..Stamp::default() };
        writer.put(SectionKind::EVENTS, &ProcessExec { pid: Some(tid), stamp, ..ProcessExec::default() });
    }
    let dump = Dump::from_bytes(writer.finish().unwrap()).unwrap();
    let causes = Causes::of(&dump);
    let write = || perfetto_trace(&dump, &causes, &mut Vec::new()).unwrap();
    let all = write();
    assert_eq!((all.tracks, all.instants, all.left_out), (2 * u64::from(THREADS), THREADS.into(), 0));
    assert!(dump.file.budget.take(dump.file.budget.left() - 20_000));
    let few = write();
    assert!((20..210).contains(&few.tracks), "{few:?}");
    // A process and a thread each, and the track of all processors.
    assert_eq!((few.instants, few.left_out), (THREADS.into(), u64::from(THREADS) - (few.tracks - 1) / 2));
}

fn every_dump() -> Vec<(String, Dump)> {
    let corpus = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps")).unwrap();
    let files = corpus.flatten().map(|entry| entry.path());
    let dumps = files.filter(|path| path.extension().is_some_and(|end| end == "kwab"));
    let mut all: Vec<_> = dumps.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect();
    for log in ["kevlar-panic-socket", "kevlar-pipe-profile", "kevlar-segv-children", "linux-6.1-sysrq-panic"] {
        all.extend(imported(&format!("{log}.log")).into_iter().map(|dump| (log.to_owned(), dump)));
    }
    all.into_iter().map(|(name, bytes)| (name, Dump::from_bytes(bytes).unwrap())).collect()
}

/// What the Trace Event Format asks of an event: the members of its phase, of the right types, and no others.
fn keeps_to_the_format(event: &Value) -> bool {
    let members = event.as_object().unwrap();
    let number = |name: &str| members.get(name).and_then(Value::as_f64).is_some_and(|value| value >= 0.0);
    let common = members["name"].is_string() && members["pid"].is_u64() && members["tid"].is_u64();
    let args = members.get("args").is_none_or(Value::is_object);
    let (own, more): (bool, &[&str]) = match members["ph"].as_str().unwrap() {
        "X" => (number("ts") && number("dur"), &["ts", "dur", "cat"]),
        "B" => (number("ts"), &["ts", "cat"]),
        "i" => (number("ts") && ["g", "p", "t"].contains(&members["s"].as_str().unwrap()), &["ts", "s", "cat"]),
        "s" => (number("ts") && members["id"].is_u64(), &["ts", "id", "cat"]),
        "f" => (number("ts") && members["id"].is_u64() && members["bp"] == "e", &["ts", "id", "cat", "bp"]),
        "M" => (
            ["process_name", "thread_name"].contains(&members["name"].as_str().unwrap())
                && members["args"]["name"].is_string(),
            &[],
        ),
        _ => (false, &[]),
    };
    let usual = ["name", "ph", "pid", "tid", "args"];
    let known = |name: &String| usual.contains(&name.as_str()) || more.contains(&name.as_str());
    common && args && own && members.keys().all(known) && members.get("cat").is_none_or(Value::is_string)
}

#[test]
fn every_event_of_every_trace_keeps_to_the_trace_event_format() {
    let (mut events, mut flows) = (0, 0);
    for (name, dump) in every_dump() {
        let mut out = Vec::new();
        let traced = chrome_trace(&dump, &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let members: Vec<&str> = trace.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["displayTimeUnit", "otherData", "traceEvents"], "{name}");
        assert_eq!(trace["displayTimeUnit"], "ns", "{name}");
        let all = trace["traceEvents"].as_array().unwrap();
        assert!(all.len() as u64 > traced.spans + traced.calls + traced.instants, "{name}: no names of threads");
        for event in all {
            assert!(keeps_to_the_format(event), "{name}: {event}");
        }
        // Every arrow has one begin and one end, and does not go back.
        let ends = |phase: &str| -> BTreeMap<u64, f64> {
            let ends = all.iter().filter(|event| event["ph"] == phase);
            ends.map(|event| (event["id"].as_u64().unwrap(), event["ts"].as_f64().unwrap())).collect()
        };
        let (begins, ends) = (ends("s"), ends("f"));
        assert_eq!((begins.len() as u64, ends.len() as u64), (traced.flows, traced.flows), "{name}");
        assert!(begins.iter().all(|(id, ts)| ends[id] >= *ts), "{name}");
        flows += traced.flows;
        // Slices of one thread lie beside or inside each other: a reader drops one that begins in another and outlives
        // it.
        let mut slices: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
        for event in all.iter().filter(|event| event["ph"] == "X") {
            let (begin, thread) = (event["ts"].as_f64().unwrap(), (&event["pid"], &event["tid"]));
            let thread = (thread.0.as_u64().unwrap(), thread.1.as_u64().unwrap());
            slices.entry(thread).or_default().push((begin, begin + event["dur"].as_f64().unwrap()));
        }
        for (thread, mut slices) in slices {
            slices.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
            let mut open: Vec<f64> = Vec::new();
            for (begin, end) in slices {
                open.retain(|outer| *outer > begin + 0.001);
                assert!(open.last().is_none_or(|outer| end <= outer + 0.001), "{name}, thread {thread:?} at {begin}");
                open.push(end);
            }
        }
        events += all.len();
    }
    assert!(events > 1000 && flows > 100, "only {events} events, {flows} flows");
}

#[test]
fn every_line_of_every_folded_export_keeps_to_the_format_of_flame_graphs() {
    for (name, dump) in every_dump() {
        let mut out = Vec::new();
        folded(&dump, &Symbols::new(), &mut out).unwrap();
        for line in String::from_utf8(out).unwrap().lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            assert!(weight.parse::<u64>().unwrap() > 0 && !weight.starts_with(['0', '+']), "{name}: {line}");
            assert!(stack.split(';').all(|frame| !frame.is_empty() && !frame.contains([' ', '\t'])), "{name}: {line}");
        }
    }
}

#[test]
fn folded_stacks_of_a_real_log_are_frames_and_a_weight() {
    for name in ["kevlar-panic-socket.log", "linux-6.1-sysrq-panic.log"] {
        let dump = Dump::from_bytes(imported(name).remove(0)).unwrap();
        let mut out = Vec::new();
        let lines = folded(&dump, &Symbols::new(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(lines > 3 && text.lines().count() == lines, "{name}: {text}");
        for line in text.lines() {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            assert!(weight.parse::<u64>().unwrap() > 0, "{line}");
            assert!(!stack.contains(' ') && stack.split(';').all(|frame| !frame.is_empty()), "{line}");
        }
    }
}

#[test]
fn damaged_dumps_are_exported_as_far_as_they_are_sound() {
    for name in ["kevlar-panic-socket.log", "kevlar-segv-children.log"] {
        let bytes = imported(name).remove(0);
        for step in 0..120 {
            let mut broken = bytes.clone();
            let at = bytes.len() * step / 120;
            if step % 2 == 0 {
                broken.truncate(at);
            } else {
                broken[at] ^= 0x40;
            }
            let Ok(dump) = Dump::from_bytes(broken) else { continue };
            let mut out = Vec::new();
            chrome_trace(&dump, &mut out).unwrap();
            assert!(serde_json::from_slice::<Value>(&out).is_ok(), "{name}, step {step}");
            perfetto_trace(&dump, &Causes::of(&dump), &mut Vec::new()).unwrap();
            folded(&dump, &Symbols::new(), &mut Vec::new()).unwrap();
            let mut core = Vec::new();
            if elf_core(&dump.case(), &Ram::of(&dump), &Symbols::new(), &mut core).is_ok() {
                assert!(object::File::parse(&*core).is_ok(), "{name}, step {step}");
            }
        }
    }
}

/// The fields of a protobuf message: number and value, where bytes are a value of their own (protobuf.dev, encoding).
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first().expect("a whole number");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (value, length) = match key & 7 {
            0 => (varint(&mut bytes), 0),
            1 => (u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes")), 8),
            2 => (0, usize::try_from(varint(&mut bytes)).unwrap()),
            other => panic!("wire type {other}"),
        };
        let (inside, rest) = bytes.split_at(length);
        fields.push((key >> 3, value, inside));
        bytes = rest;
    }
    fields
}

/// Read without the messages that the writer declares; the numbers are those of `track_event.proto`.
#[test]
fn every_event_of_every_perfetto_trace_is_on_a_track_and_every_flow_has_two_ends() {
    let mut flows = 0;
    for (name, dump) in every_dump() {
        let mut out = Vec::new();
        let traced = perfetto_trace(&dump, &Causes::of(&dump), &mut out).unwrap();
        assert_eq!(out.len() as u64, traced.bytes);
        let (mut tracks, mut open) = (Vec::new(), BTreeMap::<u64, i64>::new());
        let (mut begins, mut ends, mut single) = (BTreeMap::new(), BTreeMap::new(), 0);
        for (number, _, packet) in fields(&out) {
            assert_eq!(number, 1, "{name}: Trace.packet");
            let packet = fields(packet);
            let of = |wanted: u64| packet.iter().find(|field| field.0 == wanted);
            assert!(of(10).is_some() && of(13).is_some(), "{name}: no sequence");
            if let Some((_, _, track)) = of(60) {
                tracks.push(fields(track).iter().find(|field| field.0 == 1).unwrap().1);
                continue;
            }
            let (time, event) = (of(8).unwrap().1, fields(of(11).unwrap().2));
            let one = |wanted: u64| event.iter().find(|field| field.0 == wanted).map(|field| field.1);
            let track = one(11).unwrap();
            assert!(tracks.contains(&track), "{name}: an event before its track {track}");
            match one(9).unwrap() {
                1 => *open.entry(track).or_default() += 1,
                2 => *open.entry(track).or_default() -= 1,
                3 => single += 1,
                4 => assert!(one(30).is_some(), "{name}: a counter without a value"),
                other => panic!("{name}: type {other}"),
            }
            assert!(open.values().all(|open| *open >= 0), "{name}: an end without a begin");
            begins.extend(event.iter().filter(|field| field.0 == 47).map(|field| (field.1, time)));
            ends.extend(event.iter().filter(|field| field.0 == 48).map(|field| (field.1, time)));
        }
        assert_eq!((begins.len() as u64, ends.len() as u64), (traced.flows, traced.flows), "{name}");
        assert!(begins.iter().all(|(flow, time)| ends[flow] >= *time), "{name}");
        assert_eq!((tracks.len() as u64, single), (traced.tracks, traced.instants), "{name}");
        flows += traced.flows;
    }
    assert!(flows > 100, "only {flows} flows");
}
