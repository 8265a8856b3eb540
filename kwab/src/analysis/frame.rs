//! A frame of a stack with its name, as rules, blame and reports read it.

use kwab_format::record::Frame;

use super::quote::text;
use crate::model::RecordRef;
use crate::symbols::{PrintedFunction, SourceFrame};
use crate::unwind::Trust;

/// A frame with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceFrame {
    /// Return address, or the instruction of the first frame.
    pub ip: u64,
    /// Stack pointer in this frame, for one that was walked.
    pub sp: Option<u64>,
    /// `function+0xoffset`, if any.
    pub name: Option<String>,
    /// File and line, if known.
    pub source: Option<String>,
    /// How it was found.
    pub trust: Trust,
    /// Whether it is panic or library machinery.
    pub machinery: bool,
    /// The functions at the address as the source has them, innermost first; all but the last are inlined.
    pub functions: Vec<SourceFrame>,
    /// The record, for a frame that the kernel printed.
    pub at: Option<RecordRef>,
}

impl TraceFrame {
    /// Its name, or its address.
    #[must_use]
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{:#x}", self.ip))
    }

    /// The innermost function here that is not machinery: the frame's own, or one that was inlined into it.
    #[must_use]
    pub fn of_interest(&self) -> String {
        let interest = self.functions.iter().find(|function| !function.machinery);
        match interest.and_then(|function| function.function.as_ref().filter(|_| function.inlined)) {
            Some(name) => format!("{name}, inlined into {}", self.label()),
            None => self.label(),
        }
    }
}

/// The function of a frame that the kernel printed by name; `None` without one.
pub(super) fn printed_function(frame: &Frame<'_>) -> Option<PrintedFunction> {
    let module = frame.module.map(|module| text(Some(module)));
    PrintedFunction::new(&text(frame.symbol), frame.symbol_size, module.as_deref())
}
