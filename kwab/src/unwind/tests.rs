//! Unwinding a real program that jumped to address zero, judged by gdb (`testing/data/unwind/make.sh` made the
//! fixtures).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::*;
use crate::symbols::{Image, IndexCache, Probe};

struct Case {
    image: Image,
    /// Words by address, as they lie in memory.
    stack: BTreeMap<u64, [u8; 8]>,
    start: Registers,
    expected: Vec<u64>,
    use_tables: bool,
}

fn fixture(kind: &str) -> Case {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/unwind");
    let path: PathBuf = dir.join(format!("chain-{kind}.elf"));
    let text = std::fs::read_to_string(dir.join(format!("chain-{kind}.gdb"))).unwrap();
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let mut case = Case {
        image: Image::open(&path, &IndexCache::none()).unwrap(),
        stack: BTreeMap::new(),
        start: Registers::default(),
        expected: Vec::new(),
        use_tables: true,
    };
    let names = [("rip", 16), ("rsp", 7), ("rbp", 6), ("rbx", 3), ("r12", 12), ("r13", 13), ("r14", 14), ("r15", 15)];
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with('#') {
            case.expected.push(hex(words[1]));
        } else if let Some((addr, values)) = line.split_once(":\t") {
            // gdb names the variable behind an address.
            let addr = hex(addr.split_whitespace().next().unwrap());
            for (at, value) in values.split_whitespace().enumerate() {
                case.stack.insert(addr + at as u64 * 8, hex(value).to_le_bytes());
            }
        } else if let Some((_, number)) = names.iter().find(|(name, _)| words.first() == Some(name)) {
            case.start.set(*number, Some(hex(words[1])));
        }
    }
    case
}

impl Space for Case {
    fn captured(&self, addr: u64) -> &[u8] {
        self.stack.get(&addr).map_or(&[], |word| word.as_slice())
    }

    fn is_code(&self, addr: u64) -> bool {
        self.image.is_code(addr)
    }

    fn bytes_before(&self, addr: u64) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        let found = self.image.read(addr.saturating_sub(8), &mut bytes);
        bytes.truncate(found);
        bytes
    }

    fn tables(&self, addr: u64) -> Option<(&UnwindTables, u64)> {
        let tables = self.image.unwind_tables().filter(|_| self.use_tables && self.image.is_code(addr))?;
        Some((tables, 0))
    }
}

fn ips(trace: &Backtrace) -> Vec<u64> {
    trace.frames.iter().map(|frame| frame.ip).collect()
}

#[test]
fn a_jump_to_zero_unwinds_to_the_start_by_unwind_tables() {
    let case = fixture("cfi");
    let trace = backtrace(&case, &case.start, 64);
    assert_eq!(ips(&trace), case.expected);
    let trust: Vec<_> = trace.frames.iter().map(|frame| frame.trust.short()).collect();
    assert_eq!(trust, ["ip", "top", "cfi", "cfi", "cfi", "cfi", "cfi", "cfi"]);
}

#[test]
fn the_debug_frame_section_serves_where_there_is_no_eh_frame() {
    let case = fixture("fp");
    let trace = backtrace(&case, &case.start, 64);
    assert_eq!(ips(&trace), case.expected);
    assert!(trace.frames.iter().any(|frame| frame.trust == Trust::UnwindTable));
}

#[test]
fn expressions_lead_from_a_handler_to_what_it_interrupted_on_another_stack() {
    let case = fixture("signal");
    let trace = backtrace(&case, &case.start, 64);
    assert_eq!(ips(&trace), case.expected);
    assert!(trace.frames[1..].iter().all(|frame| frame.trust == Trust::UnwindTable), "{trace:?}");
    // The interrupted instruction did not call: its frame is asked for at its own address, not at the one before.
    let probes: Vec<_> = trace.frames.iter().map(|frame| frame.probe == Probe::Exact).collect();
    assert_eq!(probes, [true, false, false, true, false, false]);
    assert_eq!(trace.stopped, Stopped::NoCaller);
    let without = |addr: u64| {
        let mut case = fixture("signal");
        case.stack.remove(&addr);
        ips(&backtrace(&case, &case.start, 64)).len()
    };
    // The words of the handler's frame that hold the interrupted RSP and RIP.
    let frame = trace.frames[2].sp.unwrap();
    assert!(without(frame + 0xa0) <= 4 && without(frame + 0xa8) <= 4, "a frame was made up");
}

#[test]
fn frame_pointers_serve_where_there_are_no_tables() {
    let mut case = fixture("fp");
    case.use_tables = false;
    let trace = backtrace(&case, &case.start, 64);
    assert_eq!(ips(&trace), case.expected);
    assert!(trace.frames[2..].iter().all(|frame| frame.trust == Trust::FramePointer), "{trace:?}");
}

#[test]
fn a_scan_finds_the_callers_when_there_is_nothing_else_and_says_so() {
    let mut case = fixture("cfi");
    case.use_tables = false;
    let trace = backtrace(&case, &case.start, 64);
    assert_eq!(ips(&trace), case.expected);
    assert!(trace.frames[2..].iter().all(|frame| frame.trust == Trust::Scan), "{trace:?}");
}

#[test]
fn a_stack_cut_anywhere_gives_a_prefix_of_the_frames_and_says_where_bytes_are_missing() {
    let whole = fixture("cfi");
    for kept in 0..whole.stack.len() {
        let mut case = fixture("cfi");
        case.stack = whole.stack.iter().take(kept).map(|(k, v)| (*k, *v)).collect();
        let trace = backtrace(&case, &case.start, 64);
        assert!(case.expected.starts_with(&ips(&trace)), "{kept} words: {trace:?}");
        if kept == 0 {
            assert_eq!(trace.stopped, Stopped::NotCaptured(case.start.sp().unwrap()));
        }
    }
}

#[test]
fn a_frame_pointer_that_points_at_itself_ends_the_walk() {
    let mut case = fixture("fp");
    case.use_tables = false;
    let rbp = case.start.get(Registers::RBP).unwrap();
    case.stack.insert(rbp, rbp.to_le_bytes());
    let trace = backtrace(&case, &case.start, 1000);
    assert!(trace.frames.len() < 20, "{} frames", trace.frames.len());
    let stacks: Vec<_> = trace.frames.iter().filter_map(|frame| frame.sp).collect();
    assert!(stacks.windows(2).all(|pair| pair[0] < pair[1]), "a frame lies below the one it called");
}

#[test]
fn registers_and_stacks_of_garbage_end_without_a_panic() {
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..300 {
        let mut case = fixture(if round % 2 == 0 { "cfi" } else { "fp" });
        case.use_tables = round % 3 != 0;
        for value in case.stack.values_mut() {
            if random() % 4 == 0 {
                let word = if random() % 2 == 0 { 0x40_1000 + random() % 0x100 } else { random() };
                *value = word.to_le_bytes();
            }
        }
        for number in [6, 7, 16] {
            if random() % 3 == 0 {
                case.start.set(number, Some(if random() % 2 == 0 { u64::MAX - random() % 16 } else { random() }));
            }
        }
        assert!(backtrace(&case, &case.start, 128).frames.len() <= 128);
    }
    let nothing = backtrace(&fixture("cfi"), &Registers::default(), 8);
    assert_eq!((nothing.frames.len(), nothing.stopped), (0, Stopped::NoRegisters));
}
