//! Unwind tables, stack words and registers of any bytes: a step is a result, and a walk ends within its limit.
#![no_main]

use kwab::unwind::{Registers, Space, UnwindTables, backtrace};
use kwab_fuzz::Input;
use libfuzzer_sys::fuzz_target;

const STACK: u64 = 0x7000_0000;
const LIMIT: usize = 64;

struct Fuzzed<'a> {
    tables: Option<UnwindTables>,
    stack: &'a [u8],
    code: std::ops::Range<u64>,
}

impl Space for Fuzzed<'_> {
    fn captured(&self, addr: u64) -> &[u8] {
        let at = addr.checked_sub(STACK).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.stack.get(at..)).unwrap_or_default()
    }

    fn is_code(&self, addr: u64) -> bool {
        self.code.contains(&addr)
    }

    fn bytes_before(&self, addr: u64) -> Vec<u8> {
        addr.to_le_bytes().to_vec()
    }

    fn tables(&self, _addr: u64) -> Option<(&UnwindTables, u64)> {
        self.tables.as_ref().map(|tables| (tables, 0))
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let (text, ip, sp) = (input.word(), input.word(), STACK + u64::from(input.byte()));
    let (eh_frame, debug_frame) = (input.piece().to_vec(), input.piece().to_vec());
    let tables = UnwindTables::new(eh_frame, text, debug_frame, text);
    let mut start = Registers::at(ip, sp);
    for number in 0..17 {
        if number != 7 && number != 16 {
            start.set(number, Some(STACK + u64::from(input.byte()) * 8));
        }
    }
    let space = Fuzzed { tables, stack: input.0, code: text..text.saturating_add(1 << 20) };
    if let Some(tables) = &space.tables {
        for link in [ip, text, text.wrapping_add(16), u64::MAX] {
            let _ = tables.step(link, &start, &|addr| space.word(addr));
        }
    }
    assert!(backtrace(&space, &start, LIMIT).frames.len() <= LIMIT);
});
