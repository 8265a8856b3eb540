//! Stacks as objects: that of the death, then where all other processors and tasks stood.

use kwab::analysis::stacks::{self, Stack};
use kwab::analysis::verify::Backing;
use kwab::analysis::{Context, TraceFrame};
use kwab::model::Case;
use kwab::symbols::Symbols;
use kwab::unwind::Stopped;
use pyo3::prelude::*;

use crate::symbols::Function;

/// A frame of a stack.
#[pyclass(frozen, get_all, module = "kwab")]
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Return address, or the instruction of the first frame.
    ip: u64,
    /// Stack pointer in the frame, when it was walked.
    sp: Option<u64>,
    /// The function with its offset.
    name: Option<String>,
    /// File and line, when they are known.
    source: Option<String>,
    /// How it was found: `exact`, `unwind table`, `top of stack`, `frame pointer`, `scan`, `printed`.
    trust: &'static str,
    /// Whether it is panic or library machinery.
    machinery: bool,
    /// The functions at the address, innermost first; all but the last are inlined.
    functions: Vec<Function>,
    /// The record, for a frame that the kernel printed.
    at: Option<String>,
}

#[pymethods]
impl Frame {
    fn __repr__(&self) -> String {
        format!("<kwab.Frame {:#x} {:?}, {}>", self.ip, self.name.as_deref().unwrap_or("?"), self.trust)
    }
}

/// A stack, and who stood there.
#[pyclass(frozen, get_all, module = "kwab")]
#[derive(Debug, Clone)]
pub(crate) struct Backtrace {
    /// Whose stack it is; equal stacks have several owners.
    owners: Vec<String>,
    /// Whether it is the stack of the death.
    of_death: bool,
    /// Whether it is user code.
    user: bool,
    /// The frames, innermost first.
    frames: Vec<Frame>,
    /// Why it ends where it does, when that leaves callers unknown.
    ends: Option<String>,
    /// The record that the stack comes from.
    at: Option<String>,
}

#[pymethods]
impl Backtrace {
    fn __len__(&self) -> usize {
        self.frames.len()
    }

    fn __repr__(&self) -> String {
        format!("<kwab.Backtrace of {:?}, {} frames>", self.owners, self.frames.len())
    }
}

/// All stacks of a dump, that of the death first.
pub(crate) fn all(case: &Case<'_>, symbols: &Symbols) -> Vec<Backtrace> {
    let ctx = Context::new(case, symbols, &Backing::none());
    let death = (!ctx.trace.is_empty()).then(|| Backtrace {
        owners: vec![if ctx.death.program.is_empty() { "the kernel".to_owned() } else { ctx.death.program.clone() }],
        of_death: true,
        user: !ctx.death.in_kernel,
        frames: ctx.trace.iter().map(frame).collect(),
        ends: None,
        at: ctx.death.at.map(|at| at.to_string()),
    });
    let others = stacks::all(case, symbols, &ctx.death).into_iter().map(other);
    death.into_iter().chain(others).collect()
}

fn other(stack: Stack) -> Backtrace {
    Backtrace {
        owners: stack.owners,
        of_death: false,
        user: stack.user,
        frames: stack.frames.iter().map(frame).collect(),
        ends: stack.stopped.and_then(Stopped::in_words),
        at: stack.at.map(|at| at.to_string()),
    }
}

fn frame(frame: &TraceFrame) -> Frame {
    Frame {
        ip: frame.ip,
        sp: frame.sp,
        name: frame.name.clone(),
        source: frame.source.clone(),
        trust: frame.trust.name(),
        machinery: frame.machinery,
        functions: frame.functions.iter().map(Function::from).collect(),
        at: frame.at.map(|at| at.to_string()),
    }
}
