//! The monitor's text, and a guest that a script plays.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kwab_format::record::{CauseKind, MemoryKind, RegId};

use super::qmp::Session;
use super::{CaptureError, Nmi, Options, capture, registers, words};
use crate::model::Dump;

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

const OPTIONS: Options = Options { nmi: true, wait: Duration::ZERO };

#[test]
fn a_guest_that_ignores_the_interrupt_becomes_a_dump_and_runs_on() {
    let guest = Guest::default();
    let mut session = guest.session().expect("greets");
    let snapshot = capture(&mut session, OPTIONS).expect("answers").expect("read");
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
    assert!(capture(&mut session, OPTIONS).expect("answers").is_none());
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
