//! The client against a stub that answers as QEMU's does, and against others that do not.

use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use super::wire::unpacked;
use super::*;
use crate::capture::{self, Level, Snapshot};

const XML: &str = "<?xml version=\"1.0\"?><target><architecture>i386:x86-64</architecture>\
    <xi:include href=\"64.xml\"/></target>";

/// The registers of QEMU's description in its order, with two in a comment that it does not have.
fn part() -> String {
    let wide = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split(' ').map(|name| (name, 64));
    let narrow = "eflags cs ss ds es fs gs".split(' ').map(|name| (name, 32));
    let base = [("fs_base", 64), ("gs_base", 64), ("cr0", 64), ("cr3", 64), ("st0", 80)];
    let tag = |(name, bits): (&str, u32)| format!("<reg name=\"{name}\" bitsize=\"{bits}\" type=\"int\"/>\n");
    let tags: String = wide.chain(narrow).map(tag).collect();
    format!("<feature>{tags}<!-- <reg name=\"ss_base\" bitsize=\"64\"/> -->{}</feature>", base.map(tag).concat())
}

/// What `g` answers: the register at position n holds n, rip and rsp lie in pages that can be read.
fn registers(number: u64) -> String {
    let mut out = String::new();
    let mut put = |value: u64, bytes: usize| {
        value.to_le_bytes()[..bytes].iter().for_each(|byte| out.push_str(&format!("{byte:02x}")));
    };
    for position in 0..17 {
        put(if position == 7 { 0x5000 } else { 0x1000 * u64::from(position == 16) + position + number }, 8);
    }
    [2, 0x33, 0x2b, 0, 0, 0, 0].into_iter().for_each(|value| put(value, 4));
    [0x7000, 0x8000, 1, 0x9000].into_iter().for_each(|value| put(value, 8));
    out + &"x".repeat(20)
}

#[derive(Clone, Default)]
struct Stub {
    answers: Arc<Mutex<Vec<u8>>>,
    heard: Arc<Mutex<Vec<String>>>,
    /// Spoils the checksum of the next answer.
    spoils: Arc<Mutex<bool>>,
    selected: Arc<Mutex<u64>>,
}

impl Stub {
    fn open(&self) -> Result<Remote, CaptureError> {
        Remote::open(Box::new(self.clone()), Box::new(self.clone()), Duration::from_secs(60))
    }

    fn answer(&self, question: &str) -> String {
        let words: Vec<&str> = question.split([':', ',']).collect();
        match words[..] {
            ["qSupported", _] => "PacketSize=1000;qXfer:features:read+".to_owned(),
            ["qXfer", "features", "read", "target.xml", "0", _] => format!("l{XML}"),
            ["qXfer", "features", "read", "64.xml", at, count] => {
                let number = |text| usize::from_str_radix(text, 16).expect("a number");
                let (whole, at) = (part(), number(at));
                let end = whole.len().min(at + number(count).min(300));
                format!("{}{}", if end == whole.len() { 'l' } else { 'm' }, &whole[at..end])
            }
            ["qfThreadInfo"] => "m01".to_owned(),
            ["qsThreadInfo"]
                if self.heard.lock().expect("alone").iter().filter(|one| *one == "qsThreadInfo").count() < 2 =>
            {
                "m02".to_owned()
            }
            ["qsThreadInfo"] => "l".to_owned(),
            ["Hg01" | "Hg02"] => {
                *self.selected.lock().expect("alone") = question[3..].parse().expect("a number");
                "OK".to_owned()
            }
            ["g"] => registers(*self.selected.lock().expect("alone")),
            ["qThreadExtraInfo", _] => "CPU#0 [halted ]".bytes().map(|byte| format!("{byte:02x}")).collect(),
            ["D"] => "OK".to_owned(),
            // `0* ` is a zero and three more; nothing behind 0x6000 can be read.
            [at, count] if at.starts_with('m') => match u64::from_str_radix(&at[1..], 16).expect("an address") {
                0x6000.. => "E14".to_owned(),
                _ => "0* ".repeat(usize::from_str_radix(count, 16).expect("a count") / 2),
            },
            _ => String::new(),
        }
    }
}

impl Read for Stub {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let mut answers = self.answers.lock().expect("alone");
        if answers.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = answers.len().min(to.len()).min(7);
        to[..len].copy_from_slice(&answers[..len]);
        answers.drain(..len);
        Ok(len)
    }
}

impl Write for Stub {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = std::str::from_utf8(bytes).expect("text");
        if text == "+" {
            return Ok(1);
        }
        let question = match text.strip_prefix('$') {
            Some(rest) => rest.split('#').next().expect("a question").to_owned(),
            // Not confirmed: the same again.
            None => self.heard.lock().expect("alone").last().cloned().expect("one was asked"),
        };
        if text != "-" {
            self.heard.lock().expect("alone").push(question.clone());
        }
        let said = self.answer(&question);
        let wrong = std::mem::take(&mut *self.spoils.lock().expect("alone"));
        let sum = said.bytes().fold(u8::from(wrong), u8::wrapping_add);
        self.answers.lock().expect("alone").extend_from_slice(format!("+${said}#{sum:02x}").as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn processors_and_memory_of_a_stub_are_read_and_the_machine_is_let_go() {
    let stub = Stub::default();
    // It stops the machine for the client, and says so by itself.
    stub.answers.lock().expect("alone").extend_from_slice(b"$T05thread:01;#07");
    let mut remote = stub.open().expect("greets");
    *stub.spoils.lock().expect("alone") = true;
    let Snapshot { processors, pieces, missing, .. } =
        capture::capture_gdb(&mut remote, &Level::Stacks, true).expect("answers");
    assert_eq!(processors.len(), 2);
    let second = &processors[1];
    assert_eq!((second.number, second.halted, second.in_user), (1, true, true));
    let wanted = [
        (RegId::RAX, 2),
        (RegId::FS_BASE, 0x7000),
        (RegId::RIP, 0x1012),
        (RegId::RFLAGS, 2),
        (RegId::CS, 0x33),
        (RegId::CR3, 0x9000),
    ];
    wanted.iter().for_each(|(id, value)| assert_eq!(second.get(*id), *value, "{id:?}"));
    let stack = pieces.iter().find(|piece| !piece.is_code).expect("a stack");
    assert_eq!((stack.start, stack.bytes.len()), (0x5000 - 128, 128 + 0x1000), "up to what cannot be read");
    assert!(stack.bytes.iter().all(|byte| *byte == 0) && missing.is_empty(), "{missing:?}");
    assert_eq!(stub.heard.lock().expect("alone").last().map(String::as_str), Some("D"));
}

/// Says the same for ever.
struct Endless(&'static [u8]);

impl Read for Endless {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        if self.0.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let len = to.len().min(self.0.len());
        to[..len].copy_from_slice(&self.0[..len]);
        Ok(len)
    }
}

#[test]
fn what_is_silent_babbles_or_breaks_the_rules_of_packets_is_given_up() {
    let cases: [(&'static [u8], &str); 7] = [
        (b"", "no whole answer to qSupported in time"),
        (b"SSH-2.0-x\r\n", "no whole answer to qSupported in time"),
        (b"$aaaaaaaa", "an answer of more than 65536 bytes"),
        (b"$a#00", "wrong checksums"),
        (b"$*~#a8", "cannot be unpacked"),
        (b"-", "no whole answer to qSupported in time"),
        (b"$#00", "does not describe its registers"),
    ];
    for (said, wanted) in cases {
        // Only what waits for the end of the time has little of it.
        let limit = if wanted.ends_with("in time") { Duration::from_millis(100) } else { Duration::from_secs(60) };
        let opened = Remote::open_within(limit, Box::new(Endless(said)), Box::new(std::io::sink()), limit);
        let error = opened.expect_err("refused").to_string();
        assert!(error.contains(wanted), "{said:?}: {error}");
    }
    assert_eq!(unpacked(b"a}\x03* b").as_deref(), Some(&b"a####b"[..]));
    assert_eq!(unpacked(&[b"a".as_slice(), &b"*~".repeat(1000)].concat()), None, "more than the longest");
}
