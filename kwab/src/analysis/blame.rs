//! Names the guilty function of a death: the innermost frame that neither reports, nor serves, nor waits for others.
//!
//! [`guilty`] goes outwards over the frames and, in each, over the functions that were inlined there. Reporters, panic
//! machinery and trap entries say nothing. Allocators, lists, locks and copies do what their caller says: a fault there
//! means that something was corrupted before, and the caller is named with that remark. Where only such frames are
//! known, the innermost helper is named: a place is worth more than silence.

use schemars::JsonSchema;
use serde::Serialize;

use super::frame::TraceFrame;
use crate::symbols::{Role, role};

/// The function that a hypothesis blames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Guilty {
    /// Its demangled name.
    pub name: String,
    /// Source file, when an image or the kernel says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in it: of the fault, or of the call that did not return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The physical function that it was inlined into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined_into: Option<String>,
    /// The allocator, list, lock or copy function in which it died: something was corrupted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_in: Option<String>,
    /// Allocators, lists, locks, copies and waits that it had called when it died, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<String>,
    /// Who called it, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<String>,
}

/// Path of the functions that an interrupt or exception of the kernel enters by.
const INTERRUPT: &str = "machine::x86_64::entry::trap";

/// Callers that are named: the whole way from a system call is rarely longer.
const CALLERS: usize = 16;

impl Guilty {
    /// `function (file:line)`, or the part of it that is known.
    #[must_use]
    pub fn in_words(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({file}:{line})", self.name),
            (Some(file), None) => format!("{} ({file})", self.name),
            _ => self.name.clone(),
        }
    }
}

/// One function of a frame, as the source or the symbol table has it.
pub(super) struct Function<'f> {
    pub(super) name: &'f str,
    file: Option<String>,
    line: Option<u32>,
    inlined_into: Option<String>,
}

/// The functions of a frame, innermost first.
pub(super) fn functions(frame: &TraceFrame) -> impl Iterator<Item = Function<'_>> {
    let outer = frame.functions.last().and_then(|function| function.function.as_deref());
    let inner = frame.functions.iter().filter_map(move |function| {
        Some(Function {
            name: function.function.as_deref()?,
            file: function.file.as_deref().map(str::to_owned),
            line: function.line,
            inlined_into: outer.filter(|_| function.inlined).map(str::to_owned),
        })
    });
    let bare = frame.name.as_deref().filter(|_| frame.functions.is_empty()).map(|label| {
        let (file, line) = match frame.source.as_deref().map(|source| (source, source.rsplit_once(':'))) {
            Some((_, Some((file, line)))) if line.parse::<u32>().is_ok() => (Some(file.to_owned()), line.parse().ok()),
            Some((source, _)) => (Some(source.to_owned()), None),
            None => (None, None),
        };
        Function { name: without_offset(label), file, line, inlined_into: None }
    });
    inner.chain(bare)
}

/// The name in `name+0x12`.
fn without_offset(label: &str) -> &str {
    label.rsplit_once("+0x").map_or(label, |(name, _)| name)
}

/// The guilty function of a stack, innermost frame first; `None` when no frame has a name.
#[must_use]
pub fn guilty(trace: &[TraceFrame]) -> Option<Guilty> {
    let mut died_in: Option<String> = None;
    let mut first_named: Option<Guilty> = None;
    let mut called: Vec<String> = Vec::new();
    for (number, frame) in trace.iter().enumerate() {
        for (inner, function) in functions(frame).enumerate() {
            let made = |died_in: Option<String>, called: Vec<String>| Guilty {
                name: function.name.to_owned(),
                file: function.file.clone(),
                line: function.line,
                inlined_into: function.inlined_into.clone(),
                died_in,
                called,
                callers: callers(trace, number, inner),
            };
            match role(function.name) {
                Role::Suspect => return Some(made(died_in, called)),
                // What the interrupt ran is not what the interrupted function called.
                Role::Reporter if function.name.starts_with(INTERRUPT) => called.clear(),
                Role::Reporter => {}
                helps => {
                    if helps == Role::Helper {
                        died_in.get_or_insert_with(|| function.name.to_owned());
                    }
                    first_named.get_or_insert_with(|| made(None, Vec::new()));
                    let owner = owner(function.name);
                    if called.len() < CALLERS && called.last() != Some(&owner) {
                        called.push(owner);
                    }
                }
            }
        }
    }
    first_named
}

/// The function that a closure belongs to, or the function itself. A static is not a function: a closure that it holds
/// keeps its own name.
pub(crate) fn owner(name: &str) -> String {
    const CLOSURE: &str = "::{{closure}}";
    let Some((own, _)) = name.split_once(CLOSURE) else { return name.to_owned() };
    let last = own.rsplit("::").next().unwrap_or(own);
    let is_static = last.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    if is_static { format!("{own}{CLOSURE}") } else { own.to_owned() }
}

/// The functions behind a function of a frame that are not machinery; a function and its own closures are one.
fn callers(trace: &[TraceFrame], number: usize, inner: usize) -> Vec<String> {
    let here = trace.get(number).into_iter().flat_map(move |frame| functions(frame).skip(inner + 1));
    let behind = trace.iter().skip(number + 1).flat_map(functions);
    let telling = here.chain(behind).filter(|function| role(function.name) != Role::Reporter);
    let mut names: Vec<String> = telling.map(|function| owner(function.name)).collect();
    names.dedup();
    names.truncate(CALLERS);
    names
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::symbols::{SourceFrame, SourceVersion};
    use crate::unwind::Trust;

    fn frame(functions: &[(&str, u32)]) -> TraceFrame {
        let last = functions.len() - 1;
        let source = |(at, (name, line)): (usize, &(&str, u32))| SourceFrame {
            function: Some(Arc::from(*name)),
            file: Some(Arc::from("kernel/src/mm/map.rs")),
            version: SourceVersion::Unknown,
            line: Some(*line),
            inlined: at < last,
            machinery: false,
        };
        TraceFrame {
            ip: 0xffff_ffff_8010_0000,
            sp: None,
            name: Some(format!("{}+0x10", functions[last].0)),
            source: None,
            trust: Trust::UnwindTable,
            machinery: false,
            functions: functions.iter().enumerate().map(source).collect(),
            at: None,
        }
    }

    #[test]
    fn a_panic_in_an_inlined_callee_blames_the_callee_and_names_what_it_was_inlined_into() {
        let trace = [
            frame(&[("kernel::crash::panic::start", 1)]),
            frame(&[("core::panicking::panic_bounds_check", 1)]),
            frame(&[
                ("<[u8] as core::ops::index::Index>::index", 9),
                ("kernel::mm::map::slot", 40),
                ("kernel::mm::map::unmap", 90),
            ]),
            frame(&[("kernel::syscalls::memory::munmap", 12)]),
        ];
        let found = guilty(&trace).unwrap();
        assert_eq!((found.name.as_str(), found.line), ("kernel::mm::map::slot", Some(40)));
        assert_eq!(found.inlined_into.as_deref(), Some("kernel::mm::map::unmap"));
        assert_eq!(found.callers, ["kernel::mm::map::unmap", "kernel::syscalls::memory::munmap"]);
        assert_eq!(found.died_in, None);
    }

    #[test]
    fn a_fault_in_an_allocator_blames_its_caller_and_says_where_it_died() {
        let trace = [
            frame(&[("machine::heap::Heap::pop", 1)]),
            frame(&[("alloc::vec::Vec<T>::push", 1)]),
            frame(&[("kernel::fs::pipe::write", 7)]),
        ];
        let found = guilty(&trace).unwrap();
        assert_eq!(
            (found.name.as_str(), found.died_in.as_deref()),
            ("kernel::fs::pipe::write", Some("machine::heap::Heap::pop"))
        );
        assert_eq!(guilty(&trace[..1]).unwrap().name, "machine::heap::Heap::pop");
        assert_eq!(guilty(&[]), None);
    }

    #[test]
    fn a_closure_belongs_to_its_function_and_keeps_its_name_in_a_table_of_functions() {
        let trace = [
            frame(&[("kernel::fs::pipe::write::{{closure}}", 7), ("kernel::fs::pipe::write", 8)]),
            frame(&[("kernel::syscalls::file_rw::read_vectors::{{closure}}", 3)]),
            frame(&[("kernel::syscalls::file_rw::CALLS::{{closure}}", 29)]),
        ];
        let found = guilty(&trace).unwrap();
        let callers = [
            "kernel::fs::pipe::write",
            "kernel::syscalls::file_rw::read_vectors",
            "kernel::syscalls::file_rw::CALLS::{{closure}}",
        ];
        assert_eq!(found.callers, callers);
    }

    #[test]
    fn helpers_and_waits_that_it_had_called_are_listed_and_those_of_an_interrupt_are_not() {
        let trace = [
            frame(&[("kernel::sched::tick", 1)]),
            frame(&[("machine::x86_64::entry::trap::interrupt", 1)]),
            frame(&[("machine::percpu::relax", 1), ("machine::x86_64::interrupts::tlb::ask", 9)]),
            frame(&[("machine::x86_64::memory::stacks::release", 150)]),
            frame(&[("kernel::task::clone::clone", 3)]),
        ];
        let found = guilty(&trace).unwrap();
        assert_eq!(found.name, "machine::x86_64::memory::stacks::release");
        assert_eq!(found.called, ["machine::percpu::relax", "machine::x86_64::interrupts::tlb::ask"]);
        assert_eq!(found.callers, ["kernel::task::clone::clone"]);
    }
}
