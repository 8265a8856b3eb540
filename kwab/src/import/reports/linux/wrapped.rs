//! Second halves of lines of a report that a mail program wrapped: a module, the value of a register, bytes of code.

use super::super::build::Builder;
use super::super::registers;
use super::super::report::{Code, LogPosition};
use super::super::words::{hex, is_symbol_byte, text};
use super::access;

/// Bytes of code that are kept together.
const LONGEST_CODE: usize = 512;

/// Takes the second half of the line before; what may still be read as a line of its own is given back.
pub fn learn<'l>(builder: &mut Builder, line: &'l [u8], position: LogPosition) -> &'l [u8] {
    let behind = builder.report.last.line + 1 == position.line;
    let open_register = builder.open_register.take();
    if !behind {
        return line;
    }
    if module(builder, line, position.line - 1) || code(builder, line, position.line) {
        return b"";
    }
    if let Some(name) = open_register
        && let Some((value, rest)) = hex(line).filter(|(_, rest)| line.len() - rest.len() >= 8)
        && rest.first().is_none_or(|byte| *byte == b' ')
    {
        builder.registers(registers::Line { pairs: vec![(name, value)], user: false });
        return rest.trim_ascii_start();
    }
    line
}

/// A line without the register that it ends with before its value, and that register: `RAX: 0000000000000001 RBX:`.
pub fn without_open(line: &[u8]) -> (&[u8], Option<String>) {
    let open = || {
        let rest = line.strip_suffix(b":")?;
        let at = memchr::memrchr(b' ', rest)?;
        let name = &rest[at + 1..];
        registers::is_register(name).then(|| (line[..at].trim_ascii_end(), Some(text(name))))
    };
    open().unwrap_or((line, None))
}

/// `[module]` behind a frame.
fn module(builder: &mut Builder, line: &[u8], before: u64) -> bool {
    let name = line.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]"));
    let Some(name) = name.filter(|name| !name.is_empty() && name.iter().all(|byte| is_symbol_byte(*byte))) else {
        return false;
    };
    let location = builder.report.location.as_mut().filter(|frame| frame.line == before && frame.module.is_none());
    if let Some(frame) = location {
        frame.module = Some(text(name));
        return true;
    }
    let last = builder.last_frame().filter(|frame| frame.line == before && frame.module.is_none());
    last.map(|frame| frame.module = Some(text(name))).is_some()
}

/// `43 10 <c7> 03`: bytes behind those of `Code:` on the line before.
fn code(builder: &mut Builder, line: &[u8], number: u64) -> bool {
    let follows = builder.code_line + 1 == number && builder.code_line > 0;
    let open = |code: &&mut Code| follows && code.marked.is_none() && code.bytes.len() < LONGEST_CODE;
    let Some(code) = builder.report.code.as_mut().filter(open) else { return false };
    let Some(more) = access::bytes(line) else { return false };
    code.marked = more.marked.map(|at| at + code.bytes.len() as u64);
    code.bytes.extend(more.bytes);
    builder.code_line = number;
    true
}
