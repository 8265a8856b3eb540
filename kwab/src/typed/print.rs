//! Finds what an expression names, in a frame or among the statics, and shows it.

use std::rc::Rc;

use schemars::JsonSchema;
use serde::Serialize;

use super::error::PrintError;
use super::expression::{Expression, PathStep};
use super::place::Machine;
use super::scope::{Scope, statics};
use super::stack::of_thread;
use super::value::{Limits, Missing, Node, Typed, Values};
use crate::analysis::{Postmortem, View};
use crate::memory::{Reader, Space};
use crate::model::Case;
use crate::symbols::info::Info;
use crate::symbols::{LoadedImage, Registers, Symbols, short};
use crate::unwind::{self, Frame, Space as _, UnwindTables};

/// The version of [`PrintReport`]'s JSON form.
pub const SCHEMA: u32 = 1;
/// Frames that are walked to reach the one that is asked for.
const MOST_FRAMES: usize = 256;

/// Which frame of which stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameChoice {
    /// Its number, 0 innermost.
    pub number: usize,
    /// The thread; without it the one that died.
    pub task: Option<u32>,
    /// The processor, of which thread 0 is the idle one.
    pub cpu: Option<u32>,
}

/// What is shown, and of which frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrintReport {
    /// Version of this form.
    pub schema: u32,
    /// Name of the dump as the user gave it.
    pub file: String,
    /// The expression; none for all variables of the frame.
    pub expression: Option<String>,
    /// The frame, when there is one.
    pub frame: Option<String>,
    /// The values in order of scope.
    pub values: Vec<Node>,
    /// Whether something of them is missing.
    pub incomplete: bool,
}

/// What values are read from.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'s, 'a> {
    /// The records of the dump.
    pub case: &'s Case<'a>,
    /// The images that it names.
    pub symbols: &'s Symbols,
    /// The memory that it holds.
    pub reader: Reader<'s, 'a>,
    /// The address space.
    pub space: &'s Space,
}

/// Stack words come from wherever the dump has them.
struct Deep<'s, 'a> {
    view: View<'s, 'a>,
    subject: Subject<'s, 'a>,
}

impl unwind::Space for Deep<'_, '_> {
    fn captured(&self, addr: u64) -> &[u8] {
        self.view.captured(addr)
    }

    fn word(&self, addr: u64) -> Option<u64> {
        self.subject.reader.word(self.subject.space, addr)
    }

    fn is_code(&self, addr: u64) -> bool {
        self.view.is_code(addr)
    }

    fn bytes_before(&self, addr: u64) -> Vec<u8> {
        self.view.bytes_before(addr)
    }

    fn tables(&self, addr: u64) -> Option<(&UnwindTables, u64)> {
        self.view.tables(addr)
    }
}

/// A frame with its image and scope.
struct Placed<'s> {
    image: &'s LoadedImage,
    info: Rc<Info>,
    scope: Option<Scope>,
    machine: Machine<'s>,
    name: String,
}

/// Shows an expression, or all variables of the frame without one.
///
/// # Errors
/// [`PrintError`] when there is nothing of that name or shape; what is missing in the dump is not an error.
pub fn print(
    subject: Subject<'_, '_>,
    expression: Option<(&str, &Expression)>,
    choice: FrameChoice,
    limits: Limits,
    file: &str,
) -> Result<PrintReport, PrintError> {
    let word = |addr| subject.reader.word(subject.space, addr);
    let read = |addr: u64, out: &mut [u8]| subject.reader.read(subject.space, addr, out);
    let placed = subject.frame(choice, &word);
    // A processor alone chooses an address space, and no frame.
    let asked = choice.number > 0 || choice.task.is_some();
    let mut report = PrintReport {
        schema: SCHEMA,
        file: file.to_owned(),
        expression: expression.map(|(text, _)| text.to_owned()),
        frame: placed.as_ref().ok().and_then(Option::as_ref).map(|placed| placed.name.clone()),
        values: Vec::new(),
        incomplete: false,
    };
    // Without a frame there may still be statics.
    let placed = match placed {
        Ok(placed) => placed,
        Err(error) if asked || expression.is_none() => return Err(error),
        Err(_) => None,
    };
    let Some((_, expression)) = expression else {
        let placed = placed.ok_or(PrintError::NoDebugInfo)?;
        let values = Values::new(&placed.info, &read, limits);
        for variable in placed.scope.iter().flat_map(|scope| &scope.variables) {
            let store = placed.machine.locate(&placed.info, &variable.entry);
            let typed = Typed { store, die: placed.info.type_of(&variable.entry) };
            report.values.push(values.show(Some(&variable.name), &typed, limits.depth));
        }
        report.incomplete = placed.info.is_cut() || report.values.iter().any(is_incomplete);
        return Ok(report);
    };
    let local = placed.as_ref().and_then(|placed| {
        let variable = placed.scope.as_ref()?.variables.iter().find(|variable| variable.name == expression.name)?;
        let store = placed.machine.locate(&placed.info, &variable.entry);
        Some((Rc::clone(&placed.info), Typed { store, die: placed.info.type_of(&variable.entry) }))
    });
    let (info, typed) = match local {
        Some(local) => local,
        None => {
            report.frame = None;
            subject.found_static(&expression.name, placed.as_ref(), &word)?
        }
    };
    let values = Values::new(&info, &read, limits);
    let node = match reached(&values, typed, expression)? {
        Ok(typed) => values.show(report.expression.as_deref(), &typed, limits.depth),
        Err(missing) => Node { name: report.expression.clone(), missing: Some(missing), ..Node::default() },
    };
    report.incomplete = info.is_cut() || is_incomplete(&node);
    report.values.push(node);
    Ok(report)
}

/// Follows the steps of an expression.
fn reached(
    values: &Values<'_>,
    mut typed: Typed,
    expression: &Expression,
) -> Result<Result<Typed, Missing>, PrintError> {
    let derefs = std::iter::repeat_n(None, expression.derefs.min(16));
    for step in expression.steps.iter().map(Some).chain(derefs) {
        let (next, shown) = match step {
            Some(PathStep::Field(name)) => (values.field(&typed, name), format!(".{name}")),
            Some(PathStep::Index(number)) => (values.element(&typed, *number), format!("[{number}]")),
            None => (values.follow(&typed), "*".to_owned()),
        };
        let unfit = || PrintError::Unfit { step: shown, type_name: values.type_of(&typed).name };
        match next.ok_or_else(unfit)? {
            Ok(next) => typed = next,
            Err(missing) => return Ok(Err(missing)),
        }
    }
    Ok(Ok(typed))
}

fn is_incomplete(node: &Node) -> bool {
    node.missing == Some(Missing::NotCaptured) || node.fields.iter().any(is_incomplete)
}

impl Subject<'_, '_> {
    /// The frame that is asked for; `Ok(None)` when its image has no DWARF.
    fn frame<'w>(
        &'w self,
        choice: FrameChoice,
        word: &'w dyn Fn(u64) -> Option<u64>,
    ) -> Result<Option<Placed<'w>>, PrintError> {
        let death = Postmortem::of(self.case);
        let (registers, pid) = match choice.task {
            None => (death.for_unwinding(), death.code_pid()),
            Some(tid) => of_thread(self.case, tid, choice.cpu)?,
        };
        let deep = Deep { view: View::of(self.case, self.symbols, pid, &death), subject: *self };
        let trace = unwind::backtrace(&deep, &registers, MOST_FRAMES);
        let frames = trace.frames.len();
        let frame = trace.frames.get(choice.number);
        let frame = frame.ok_or(PrintError::NoFrame { number: choice.number, frames })?;
        Ok(self.placed(&deep, frame, choice.number, pid, word))
    }

    fn placed<'w>(
        &'w self,
        deep: &Deep<'_, '_>,
        frame: &Frame,
        number: usize,
        pid: Option<u32>,
        word: &'w dyn Fn(u64) -> Option<u64>,
    ) -> Option<Placed<'w>> {
        let at = frame.probe.instruction(frame.ip);
        let image = self.symbols.image_at(at, pid)?;
        let info = Rc::new(Info::of(&image.image)?);
        let link = image.link(at);
        let caller = deep.tables(at).and_then(|(tables, bias)| {
            match tables.step(at.wrapping_sub(bias), &frame.registers, word)? {
                crate::symbols::Step::Caller(caller, _) => caller.sp(),
                crate::symbols::Step::Outermost => None,
            }
        });
        let mut machine =
            Machine { registers: frame.registers, cfa: caller, frame_base: None, bias: image.bias, link, word };
        let scope = Scope::at(&info, link);
        machine.frame_base = scope.as_ref().and_then(|scope| machine.base(&info, &scope.function));
        let name =
            short(&self.symbols.resolve(frame.ip, pid, frame.probe)).unwrap_or_else(|| format!("{:#x}", frame.ip));
        Some(Placed { image, info, scope, machine, name: format!("#{number} {name}") })
    }

    /// The static of a name, in the frame's image first.
    fn found_static<'w>(
        &'w self,
        name: &str,
        placed: Option<&Placed<'w>>,
        word: &'w dyn Fn(u64) -> Option<u64>,
    ) -> Result<(Rc<Info>, Typed), PrintError> {
        let mut any = false;
        let first = placed.map(|placed| (placed.image, Some(Rc::clone(&placed.info))));
        let others = self.symbols.loaded().iter().map(|image| (image, None));
        for (image, info) in first.into_iter().chain(others) {
            let Some(info) = info.or_else(|| Info::of(&image.image).map(Rc::new)) else { continue };
            any = true;
            let mut found = statics(&info, name);
            found.dedup_by(|a, b| a.name == b.name);
            match found.as_slice() {
                [] => {}
                [own] => {
                    let registers = Registers::default();
                    let machine = Machine { registers, cfa: None, frame_base: None, bias: image.bias, link: 0, word };
                    let store = machine.locate(&info, &own.entry);
                    let die = info.type_of(&own.entry);
                    return Ok((info, Typed { store, die }));
                }
                several => {
                    let names: Vec<&str> = several.iter().take(8).map(|one| one.name.as_str()).collect();
                    return Err(PrintError::Ambiguous(names.join(", ")));
                }
            }
        }
        Err(if any { PrintError::Unknown(name.to_owned()) } else { PrintError::NoDebugInfo })
    }
}
