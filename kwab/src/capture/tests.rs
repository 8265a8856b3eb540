//! The monitor's text, and a guest that a script plays.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kwab_format::record::{CauseKind, Memory, MemoryKind, RegId};
use kwab_format::wire::{Encoder, Fields as _};
use kwab_format::{BootId, DumpId, FileHeader, Flags, RecordType as _, SectionKind, lz4};

use super::qmp::{Limits, Session};
use super::vmcore::Vmcore;
use super::{CaptureError, Level, Nmi, Options, capture, of_core, registers, words};
use crate::export::elf_core;
use crate::memory::{Ram, Reader, Wanted};
use crate::model::Dump;
use crate::model::emit::DumpWriter;
use crate::symbols::Symbols;

/// As QEMU 7.2 prints two processors, shortened.
const TEXT: &str = "\
CPU#0
RAX=0000000000000001 RBX=ffff888000000000 RCX=0000000000000002 RDX=0000000000000003
RSI=0000000000000004 RDI=0000000000000005 RBP=ffffc90000003f00 RSP=ffffc90000003e80
R8 =0000000000000006 R9 =0000000000000007 R10=0000000000000008 R11=0000000000000246
R12=0000000000000009 R13=000000000000000a R14=000000000000000b R15=000000000000000c
RIP=ffffffff80101010 RFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0
ES =0000 0000000000000000 ffffffff 00c00100
CS =0010 0000000000000000 ffffffff 00a09b00 DPL=0 CS64 [-RA]
SS =0018 0000000000000000 ffffffff 00c09300 DPL=0 DS   [-WA]
DS =0000 0000000000000000 ffffffff 00c00100
FS =0000 00007f0000001000 ffffffff 00c00100
GS =0000 ffff888003c00000 ffffffff 00c00100
CR0=80050033 CR2=0000000000000010 CR3=0000000001000000 CR4=000006f0
EFER=0000000000000d01

CPU#1
RIP=ffffffff80102020 RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1
RSP=ffffc90000007f80
";

#[test]
fn registers_of_two_processors_are_read() {
    let all = registers::parse(TEXT);
    assert_eq!(all.len(), 2);
    let value = |id| all[0].get(id);
    assert_eq!((value(RegId::R8), value(RegId::R15), value(RegId::CS)), (6, 12, 0x10));
    assert_eq!((value(RegId::FS_BASE), value(RegId::GS_BASE)), (0x7f00_0000_1000, 0xffff_8880_03c0_0000));
    assert_eq!((value(RegId::CR3), value(RegId::EFER), all[0].ip()), (0x100_0000, 0xd01, 0xffff_ffff_8010_1010));
    assert!(!all[0].halted && !all[0].interrupts_on() && all[1].halted && all[1].interrupts_on());
    assert!(registers::parse("CPU#0\nEAX=00000000 EIP=0000fff0\n").is_empty());
}

#[test]
fn memory_ends_where_it_cannot_be_accessed() {
    let text = "ffff0: 0x0000000000000001 0x0000000000000002\n100000: 0x3 Cannot access memory\n";
    assert_eq!(words::parse(text, 9), [1, 2, 3]);
    assert_eq!(words::parse(text, 1), [1]);
    assert_eq!(words::parse("Cannot access memory\r\n", 9), [0u64; 0]);
}

/// A monitor that repeats what it says for ever, some bytes at a time.
struct Repeats(&'static str, usize);

impl Read for Repeats {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        std::thread::sleep(Duration::from_millis(1));
        if self.0.is_empty() {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let rest = &self.0.as_bytes()[self.1 % self.0.len()..];
        let len = rest.len().min(to.len()).min(16);
        to[..len].copy_from_slice(&rest[..len]);
        self.1 += len;
        Ok(len)
    }
}

#[test]
fn a_monitor_that_says_nothing_or_only_events_is_given_up() {
    const GREETING: &str = r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}}}"#;
    let limits = Limits { greeting: Duration::from_millis(60), answer: Duration::from_millis(90) };
    let opened = |input: Box<dyn Read>| {
        let began = std::time::Instant::now();
        let error = Session::open_within(limits, input, Box::new(std::io::sink())).map(drop).expect_err("no answer");
        assert!(began.elapsed() < Duration::from_secs(10), "{error}");
        error.to_string()
    };
    assert!(opened(Box::new(Repeats("", 0))).contains("does another program hold it?"));
    assert!(opened(Box::new(Repeats("a line without end", 0))).contains("no greeting"));
    let greeted = |rest| Box::new(std::io::Cursor::new(GREETING).chain(&b"\n"[..]).chain(Repeats(rest, 0)));
    let events = "{\"event\": \"RTC_CHANGE\"}\n";
    for rest in ["", events, "{\"event\": "] {
        assert!(opened(greeted(rest)).contains("no answer to qmp_capabilities"), "{rest}");
    }
}

/// A guest whose monitor answers by rule; everything but the first page of the stack is readable.
#[derive(Clone, Default)]
struct Guest {
    answers: Arc<Mutex<Vec<u8>>>,
    heard: Arc<Mutex<Vec<String>>>,
    panics: bool,
}

impl Guest {
    fn session(&self) -> Result<Session, CaptureError> {
        let greeting = r#"{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": []}}"#;
        self.say(greeting);
        Session::open(Box::new(self.clone()), Box::new(self.clone()))
    }

    fn say(&self, line: &str) {
        self.answers.lock().expect("alone").extend_from_slice(format!("{line}\r\n").as_bytes());
    }

    fn monitor(&self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["info", "registers", "-a"] => TEXT.to_owned(),
            ["x", count, at] => {
                let count: u64 = count.trim_matches(['/', 'x', 'g']).parse().expect("a number");
                let at = u64::from_str_radix(&at[2..], 16).expect("hexadecimal");
                let readable = at >> 12 != 0xf_fffc_9000_0007;
                let row = |word| format!("{:x}: 0x{:016x}\r\n", at + 8 * word, at + 8 * word);
                if readable { (0..count).map(row).collect() } else { "Cannot access memory\r\n".to_owned() }
            }
            _ => panic!("{line}"),
        }
    }
}

impl Read for Guest {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let mut answers = self.answers.lock().expect("alone");
        if answers.is_empty() {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let len = answers.len().min(to.len()).min(100);
        to[..len].copy_from_slice(&answers[..len]);
        answers.drain(..len);
        Ok(len)
    }
}

impl Write for Guest {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let value: serde_json::Value = serde_json::from_slice(bytes).expect("a whole line");
        let command = value["execute"].as_str().expect("a command").to_owned();
        self.say(r#"{"timestamp": {"seconds": 1}, "event": "RTC_CHANGE"}"#);
        match command.as_str() {
            "query-dump" => self.say(r#"{"return": {"status": "completed", "completed": 1, "total": 1}}"#),
            "dump-guest-memory" => {
                let path = value["arguments"]["protocol"].as_str().and_then(|text| text.strip_prefix("file:"));
                std::fs::write(path.expect("a file"), core_of(&machine(), &[])).expect("written");
                self.say(r#"{"return": {}}"#);
            }
            "query-status" => self.say(r#"{"return": {"status": "running", "running": true}}"#),
            "human-monitor-command" => {
                let text = self.monitor(value["arguments"]["command-line"].as_str().expect("a line"));
                self.say(&serde_json::json!({ "return": text }).to_string());
            }
            _ => self.say(r#"{"return": {}}"#),
        }
        if command == "inject-nmi" && self.panics {
            self.say(r#"{"event": "GUEST_PANICKED", "data": {"action": "pause"}}"#);
        }
        self.heard.lock().expect("alone").push(command);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const OPTIONS: Options = Options { nmi: true, wait: Duration::ZERO, level: Level::Stacks };

#[test]
fn a_guest_that_ignores_the_interrupt_becomes_a_dump_and_runs_on() {
    let guest = Guest::default();
    let mut session = guest.session().expect("greets");
    let snapshot = capture(&mut session, &OPTIONS).expect("answers").expect("read");
    assert_eq!((snapshot.nmi, snapshot.qemu.as_str()), (Nmi::Ignored, "QEMU 7.2.22"));
    assert_eq!(snapshot.missing, ["CPU 1: the stack at 0xffffc90000007f80 cannot be read"]);
    let heard = guest.heard.lock().expect("alone").clone();
    let stops = heard.iter().filter(|command| ["stop", "cont"].contains(&command.as_str()));
    assert_eq!(stops.collect::<Vec<_>>(), ["stop", "cont"]);
    let mut bytes = Vec::new();
    snapshot.write(7, 1, &mut bytes).expect("memory");
    let dump = Dump::from_bytes(bytes).expect("a dump");
    let case = dump.case();
    assert_eq!(case.causes.first().and_then(|cause| cause.kind), Some(CauseKind::LIVE));
    assert_eq!((case.registers.len(), case.cpus.len()), (2, 2));
    let code = case.memory.iter().find(|piece| piece.kind == Some(MemoryKind::CODE)).expect("code");
    let at = code.marked.expect("the instruction") as usize;
    let word = code.bytes.expect("bytes")[at..at + 8].try_into().expect("eight bytes");
    assert_eq!(u64::from_le_bytes(word), 0xffff_ffff_8010_1010);
}

#[test]
fn a_guest_that_panics_on_the_interrupt_is_left_alone() {
    let guest = Guest { panics: true, ..Guest::default() };
    let mut session = guest.session().expect("greets");
    assert!(capture(&mut session, &OPTIONS).expect("answers").is_none());
    assert!(!guest.heard.lock().expect("alone").contains(&"stop".to_owned()));
}

#[test]
fn what_does_not_greet_as_qemu_is_refused() {
    for (line, wanted) in [("{\"hello\": 1}", "not its greeting"), ("SSH-2.0-x", "not JSON")] {
        let guest = Guest::default();
        guest.say(line);
        let error = guest.session().expect_err("refused").to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

/// Physical memory by address: page tables that map the kernel's addresses, code, and the note with a build-id.
pub(super) fn machine() -> Vec<(u64, Vec<u8>)> {
    let table = |entries: &[(usize, u64)]| {
        let mut page = vec![0; 4096];
        entries.iter().for_each(|(at, raw)| page[at * 8..at * 8 + 8].copy_from_slice(&raw.to_le_bytes()));
        page
    };
    let mut text = vec![0x90; 4096];
    text[0x40..0x40 + 16].copy_from_slice(b"\x04\0\0\0\x08\0\0\0\x03\0\0\0GNU\0");
    text[0x50..0x58].copy_from_slice(b"BUILD-ID");
    let mut first = table(&[(511, 0x100_1003)]);
    first.extend(table(&[(510, 0x100_2003)]));
    first.extend(table(&[(0, 0x100_3003)]));
    first.extend(table(&[(0x101, 0x100_4001), (0x102, 0x200_0001)]));
    first.extend(text);
    first.extend(vec![0; 8192]);
    vec![(0x100_0000, first), (0x200_0000, vec![7; 100])]
}

/// An ELF core with this memory, one segment each, and these notes.
pub(super) fn core_of(memory: &[(u64, Vec<u8>)], notes: &[u8]) -> Vec<u8> {
    let count = memory.len() as u64 + 1;
    let mut core = vec![0; 64];
    core[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    core[16..20].copy_from_slice(&[4, 0, 62, 0]);
    core[32] = 64;
    core[54] = 56;
    core[56..58].copy_from_slice(&(count as u16).to_le_bytes());
    let mut at = 64 + 56 * count;
    let mut row = |kind: u32, paddr: u64, length: usize| {
        let mut row = kind.to_le_bytes().to_vec();
        row.resize(8, 0);
        [at, 0, paddr, length as u64, length as u64, 0].iter().for_each(|word| row.extend(word.to_le_bytes()));
        at += length as u64;
        core.extend(row);
    };
    row(4, 0, notes.len());
    memory.iter().for_each(|(paddr, bytes)| row(1, *paddr, bytes.len()));
    core.extend_from_slice(notes);
    memory.iter().for_each(|(_, bytes)| core.extend_from_slice(bytes));
    core
}

pub(super) fn file(bytes: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file
}

/// A note of QEMU with these control registers and instruction pointer.
pub(super) fn qemu_note(cr3: u64, ip: u64) -> Vec<u8> {
    let mut body = vec![0; 8 + 8 * 18 + 24 * 10 + 8 * 6];
    body[8 + 8 * 16..][..8].copy_from_slice(&ip.to_le_bytes());
    body[8 + 8 * 18 + 24 * 10 + 24..][..8].copy_from_slice(&cr3.to_le_bytes());
    let mut note = [5_u32, body.len() as u32, 0].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    note.extend(b"QEMU\0\0\0\0");
    note.extend(body);
    note
}

#[test]
fn all_memory_of_a_guest_is_in_its_dump_and_zeros_are_not_holes() {
    let guest = Guest::default();
    let mut session = guest.session().expect("greets");
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { level: Level::All(folder.path().to_owned()), nmi: false, ..OPTIONS };
    let snapshot = capture(&mut session, &options).expect("answers").expect("read");
    assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0, "the core is removed");
    let kernel = snapshot.kernel.clone().expect("a kernel");
    assert_eq!(kernel.build_id, Some((b"BUILD-ID".to_vec(), 0xffff_ffff_8010_1040)));
    assert_eq!((kernel.start, kernel.end), (0xffff_ffff_8010_1000, 0xffff_ffff_8010_3000));
    let mut bytes = Vec::new();
    let totals = snapshot.write(7, 1, &mut bytes).expect("memory");
    assert_eq!((totals.bytes, totals.zeros), (7 * 4096 + 100, 8192));
    let dump = Dump::from_bytes(bytes).expect("a dump");
    assert!(dump.defects().is_empty() && dump.left_out == 1, "{:?}", dump.defects());
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let mut page = [1; 4096];
    assert_eq!((ram.read(0x100_5000, &mut page), page[0], page[4095]), (4096, 0, 0));
    assert_eq!(ram.read(0x100_7000, &mut page), 0, "not captured is not zero");
    assert_eq!((ram.read(0x200_0000, &mut page), page[99]), (100, 7));
    let space = Wanted::default().find(&case).expect("CPU 0 has page tables");
    let reader = Reader::new(&case, &ram);
    assert_eq!(reader.word(&space, 0xffff_ffff_8010_1800), Some(0x9090_9090_9090_9090));
}

#[test]
fn a_core_of_a_machine_becomes_a_dump_with_registers_code_and_memory() {
    let ip = 0xffff_ffff_8010_1080;
    let snapshot = of_core(file(&core_of(&machine(), &qemu_note(0x100_0000, ip)))).expect("a core");
    assert!(snapshot.missing.is_empty(), "{:?}", snapshot.missing);
    assert_eq!((snapshot.processors.len(), snapshot.processors[0].ip()), (1, ip));
    let code = snapshot.pieces.iter().find(|piece| piece.is_code).expect("code");
    assert_eq!((code.start, code.bytes.len(), code.bytes[64]), (ip - 64, 192, 0x90));
    let mut bytes = Vec::new();
    snapshot.write(8, 1, &mut bytes).expect("memory");
    let dump = Dump::from_bytes(bytes).expect("a dump");
    let case = dump.case();
    assert_eq!(case.identities[0].kernel_build_id, Some(&b"BUILD-ID"[..]));
    assert_eq!(case.images[0].build_id_at, Some(0xffff_ffff_8010_1040));
}

/// A note of a thread with this instruction pointer and these flags.
fn status_note(ip: u64, flags: u64) -> Vec<u8> {
    let mut body = vec![0; 336];
    body[112 + 8 * 16..][..8].copy_from_slice(&ip.to_le_bytes());
    body[112 + 8 * 18..][..8].copy_from_slice(&flags.to_le_bytes());
    let mut note = [5_u32, body.len() as u32, 1].into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    note.extend(b"CORE\0\0\0\0");
    note.extend(body);
    note
}

#[test]
fn tasks_that_sleep_are_no_processors_of_a_core() {
    let notes = [status_note(0x1000, 0), status_note(0x2000, 2), status_note(0x3000, 0), status_note(0x4000, 0x46)];
    let snapshot = of_core(file(&core_of(&machine(), &notes.concat()))).expect("a core");
    let processors: Vec<_> = snapshot.processors.iter().map(|one| (one.number, one.ip())).collect();
    assert_eq!(processors, [(0, 0x2000), (1, 0x4000)]);
    // Without flags anywhere nothing tells them apart.
    let snapshot = of_core(file(&core_of(&machine(), &notes[0]))).expect("a core");
    assert_eq!(snapshot.processors.len(), 1);
}

#[test]
fn a_machine_goes_out_as_a_core_and_comes_back_with_the_words_of_its_linux() {
    let words = |root: u64| {
        format!("OSRELEASE=6.1.0\nPAGESIZE=4096\nSYMBOL(swapper_pg_dir)={root:x}\nNUMBER(phys_base)=0\n").into_bytes()
    };
    let mut memory = machine();
    // A program has a page that looks like the kernel's words, and comes first.
    memory.insert(0, (0x80_0000, words(0xffff_ffff_8080_0000)));
    memory[0].1.resize(4096, 0);
    let text = words(0xffff_ffff_8100_0000);
    memory[1].1[5 * 4096..][..text.len()].copy_from_slice(&text);
    let taken = |core: &[u8]| {
        let mut bytes = Vec::new();
        of_core(file(core)).expect("a core").write(9, 1, &mut bytes).expect("memory");
        Dump::from_bytes(bytes).expect("a dump")
    };
    let core_file = |dump: &Dump| {
        let mut core = Vec::new();
        elf_core(&dump.case(), &Ram::of(dump), &Symbols::new(), &mut core).expect("it has registers");
        core
    };
    let first = taken(&core_of(&memory, &qemu_note(0x100_0000, 0xffff_ffff_8010_1080)));
    let core = core_file(&first);
    let read = Vmcore::open(file(&core)).expect("a core");
    assert_eq!((read.info.as_deref(), read.missing.len()), (str::from_utf8(&text).ok(), 0));
    for (paddr, bytes) in &memory {
        let mut found = vec![0xff; bytes.len()];
        assert_eq!((read.read(*paddr, &mut found).expect("read"), &found), (bytes.len(), bytes), "{paddr:#x}");
    }
    let segments = super::core_file::segments(&file(&core), core.len() as u64).expect("headers");
    let code: Vec<_> = segments.iter().filter(|segment| segment.vaddr == 0xffff_ffff_8010_1000).collect();
    assert_eq!((code.len(), code[0].paddr, code[0].length), (1, 0x100_4000, 4096));
    assert_eq!(core[code[0].offset as usize..][..4096], memory[1].1[4 * 4096..][..4096]);
    // What came back says the release.
    assert_eq!(taken(&core).case().identities[0].kernel_version, Some(&b"6.1.0"[..]));
}

#[test]
fn a_kernel_that_is_no_linux_is_told_by_a_note_that_no_reader_takes_for_one() {
    let dump = Dump::open("../testing/dumps/lost-wakeup.kwab".as_ref(), crate::model::Depth::Export).expect("a dump");
    let mut core = Vec::new();
    elf_core(&dump.case(), &Ram::of(&dump), &Symbols::new(), &mut core).expect("it has registers");
    let has = |text: &[u8]| memchr::memmem::find(&core, text).is_some();
    assert!(!has(b"VMCOREINFO"));
    assert!(has(b"KWAB\0\0\0\0KERNEL=kwab\nOSRELEASE=6.1.0-kwab\nBUILD-ID=65220f0ead8c"));
    assert!(has(b"\nPAGESIZE=4096\nKERNELOFFSET=0\nDIRECTMAP=ffff800000000000\nCRASHTIME=1795197575\n"));
}

#[test]
fn a_dump_that_claims_more_memory_than_its_length_can_hold_is_no_core() {
    let snapshot = of_core(file(&core_of(&machine(), &qemu_note(0x100_0000, 0xffff_ffff_8010_1080)))).expect("a core");
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(9), BootId([0; 16])));
    super::dump::put(&snapshot, None, &mut writer).expect("memory");
    let zeros = Memory { paddr: Some(0x1_0000_0000), zeros: Some(1 << 50), ..Memory::default() };
    let mut records = [0; 64];
    let mut encoder = Encoder::new(&mut records, 4);
    zeros.encode(&mut encoder);
    let end = encoder.position().expect("room");
    records[..4].copy_from_slice(&[Memory::KIND.0, (end - 4) as u8, 0, 0]);
    let mut packed = [0; 128];
    packed[..4].copy_from_slice(&(end as u32).to_le_bytes());
    let used = lz4::compress(&records[..end], &mut packed[4..], &mut [0; lz4::TABLE_LEN]).expect("room");
    writer.put_packed(SectionKind::MEMORY, Flags::COMPRESSED, 1, &packed[..4 + used], None);
    let dump = Dump::from_bytes(writer.finish().expect("memory")).expect("a dump");
    let error = elf_core(&dump.case(), &Ram::of(&dump), &Symbols::new(), &mut Vec::new()).expect_err("too much");
    assert!(error.to_string().contains("the dump claims 1125.9 TB of memory"), "{error}");
}

#[test]
fn cores_that_are_cut_overlap_or_are_of_a_program_say_so() {
    let whole = core_of(&machine(), &[]);
    let cut = of_core(file(&whole[..whole.len() - 40])).expect("a core");
    assert!(cut.missing.iter().any(|text| text.contains("40 bytes of memory at 0x200003c")), "{:?}", cut.missing);
    let twice = [(0x1000, vec![1; 4096]), (0x1800, vec![2; 4096])];
    let core = Vmcore::open(file(&core_of(&twice, &[]))).expect("a core");
    let loads: Vec<_> = core.loads.iter().map(|load| (load.paddr, load.length)).collect();
    assert_eq!(loads, [(0x1000, 4096), (0x2000, 2048)]);
    let refused = |bytes: &[u8]| of_core(file(bytes)).expect_err("refused").to_string();
    assert!(refused(b"\x7fELF").contains("shorter"));
    assert!(refused(&core_of(&[], &[])).contains("holds no memory"));
    let mut program = core_of(&[(0, vec![1; 8])], &[]);
    program[64 + 56 + 16] = 1;
    assert!(refused(&program).contains("of a program"));
}

#[test]
fn a_megabyte_that_two_thousand_segments_share_is_no_gigabytes_of_memory() {
    const SEGMENTS: u64 = 2000;
    const EACH: u64 = 1 << 20;
    let memory: Vec<(u64, Vec<u8>)> = (0..SEGMENTS).map(|number| (number * EACH, Vec::new())).collect();
    let mut bytes = core_of(&memory, &[]);
    let body = bytes.len() as u64;
    for number in 0..SEGMENTS as usize {
        let row = 64 + 56 * (1 + number);
        bytes[row + 8..row + 16].copy_from_slice(&body.to_le_bytes());
        bytes[row + 32..row + 40].copy_from_slice(&EACH.to_le_bytes());
    }
    bytes.resize(bytes.len() + EACH as usize, 7);
    let core = Vmcore::open(file(&bytes)).expect("a core");
    let held: u64 = core.loads.iter().map(|load| load.length).sum();
    assert_eq!(held, bytes.len() as u64);
    let lost = format!("{} bytes of memory: the segments claim more than the {held} bytes", SEGMENTS * EACH - held);
    assert!(core.missing.iter().any(|text| text.starts_with(&lost)), "{:?}", core.missing);
}

#[test]
fn an_image_at_the_end_of_the_addresses_where_kernels_run_is_found() {
    let mut memory = vec![0; 0x40_0000];
    // Tables, and two large pages at the end of the last GiB but for its last 2 MiB.
    let mut put = |at: usize, word: u64| memory[at..at + 8].copy_from_slice(&word.to_le_bytes());
    put(0x1000 + 8 * 511, 0x2003);
    put(0x2000 + 8 * 511, 0x3003);
    put(0x3000 + 8 * 509, 0x83);
    put(0x3000 + 8 * 510, 0x20_0083);
    memory[0x4010..0x4020].copy_from_slice(b"\x04\0\0\0\x08\0\0\0\x03\0\0\0GNU\0");
    memory[0x4020..0x4028].copy_from_slice(b"build-id");
    let bytes = core_of(&[(0, memory)], &qemu_note(0x1000, 0xffff_ffff_ffd0_0000));
    let kernel = of_core(file(&bytes)).expect("a core").kernel.expect("an image");
    assert_eq!((kernel.start, kernel.end), (0xffff_ffff_ffa0_0000, 0xffff_ffff_ffe0_0000));
    assert_eq!(kernel.build_id, Some((b"build-id".to_vec(), 0xffff_ffff_ffa0_4010)));
}

#[test]
fn mutated_cores_end_without_a_panic_and_within_their_bytes() {
    let whole = core_of(&machine(), &qemu_note(0x100_0000, 0xffff_ffff_8010_1080));
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random() % 4 {
            // Mostly headers and notes, where lengths and offsets are; tables too.
            let room = if random() % 4 == 0 { bytes.len() } else { 800 };
            let at = random() as usize % room;
            bytes[at] = random() as u8;
        }
        bytes.truncate(bytes.len() - if random() % 8 == 0 { random() as usize % bytes.len() } else { 0 });
        if let Ok(snapshot) = of_core(file(&bytes)) {
            let mut dump = Vec::new();
            snapshot.write(1, 1, &mut dump).expect("memory");
            assert!(dump.len() < 4 * whole.len(), "{} bytes of {}", dump.len(), whole.len());
        }
    }
}
