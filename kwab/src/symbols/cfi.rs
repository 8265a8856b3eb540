//! Applies the unwind tables of an ELF image (`.eh_frame`, `.debug_frame`): registers of the caller from those of the
//! callee.
//!
//! DWARF expressions tell where registers are in frames of a shape of their own: of signal handlers, of a kernel's
//! traps and of procedure linkage stubs.

use std::collections::HashMap;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, Location, Piece, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindOffset, UnwindSection,
};

use super::{Registers, expression};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Registers that a callee must preserve (System V ABI, AMD64, 3.2.1): rbx, rbp, r12 to r15.
const PRESERVED: [u16; 6] = [3, 6, 12, 13, 14, 15];

/// The longest table of a function, in bytes. It is run from its beginning for each frame; a table of this length
/// belongs to a function of thousands of pushes.
const LONGEST: usize = 1 << 14;

/// The unwind tables of one image.
#[derive(Clone, Debug)]
pub struct UnwindTables {
    eh_frame: Vec<u8>,
    debug_frame: Vec<u8>,
    bases: BaseAddresses,
    functions: Vec<Function>,
}

/// Where the table of a function lies.
#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    end: u64,
    offset: usize,
    in_debug_frame: bool,
}

/// What a table says about the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a step lives for one frame, on the stack")]
pub enum Step {
    /// The caller's registers, and whether the callee was entered by a signal rather than a call.
    Caller(Registers, bool),
    /// The table says that there is no caller.
    Outermost,
}

impl UnwindTables {
    /// Reads the sections of an image, given their link addresses; `None` when they describe no function.
    #[must_use]
    pub fn new(eh_frame: Vec<u8>, eh_frame_addr: u64, debug_frame: Vec<u8>, text_addr: u64) -> Option<Self> {
        let bases = BaseAddresses::default().set_eh_frame(eh_frame_addr).set_text(text_addr);
        let mut functions = Vec::new();
        list(&EhFrame::new(&eh_frame, LittleEndian), &bases, false, &mut functions);
        list(&DebugFrame::new(&debug_frame, LittleEndian), &bases, true, &mut functions);
        functions.sort_by_key(|function| (function.start, function.in_debug_frame));
        functions.dedup_by_key(|function| function.start);
        (!functions.is_empty()).then_some(Self { eh_frame, debug_frame, bases, functions })
    }

    /// Number of functions that the unwind tables describe.
    #[must_use]
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether none is; never so for a value that [`UnwindTables::new`] returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The caller of the code at link address `link`, whose registers are `callee`; `read` gives stack words by
    /// run-time address. `None` when the tables do not cover the address or need what is not there.
    #[must_use]
    pub fn step(&self, link: u64, callee: &Registers, read: &dyn Fn(u64) -> Option<u64>) -> Option<Step> {
        let at = self.functions.partition_point(|function| function.start <= link).checked_sub(1)?;
        let function = self.functions.get(at).filter(|function| link < function.end)?;
        let mut context = UnwindContext::new();
        if function.in_debug_frame {
            let section = DebugFrame::new(&self.debug_frame, LittleEndian);
            apply(&section, function, &self.bases, link, &mut context, callee, read)
        } else {
            let section = EhFrame::new(&self.eh_frame, LittleEndian);
            apply(&section, function, &self.bases, link, &mut context, callee, read)
        }
    }
}

fn list<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    in_debug_frame: bool,
    functions: &mut Vec<Function>,
) {
    let mut entries = section.entries(bases);
    let mut shared: HashMap<usize, _> = HashMap::new();
    // A broken entry ends the list: its length is what leads to the next.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let cie = |section: &S, bases: &BaseAddresses, offset: S::Offset| {
            shared
                .entry(UnwindOffset::into(offset))
                .or_insert_with(|| S::cie_from_offset(section, bases, offset))
                .clone()
        };
        let Ok(fde) = partial.parse(cie) else { continue };
        let is_short = fde.entry_len().max(fde.cie().entry_len()) <= LONGEST;
        // Functions the linker dropped keep a table for address 0.
        if fde.initial_address() != 0 && fde.len() > 0 && is_short {
            let offset = fde.offset();
            functions.push(Function { start: fde.initial_address(), end: fde.end_address(), offset, in_debug_frame });
        }
    }
}

fn apply<'a, S: UnwindSection<Slice<'a>>>(
    section: &S,
    function: &Function,
    bases: &BaseAddresses,
    link: u64,
    context: &mut UnwindContext<usize>,
    callee: &Registers,
    read: &dyn Fn(u64) -> Option<u64>,
) -> Option<Step> {
    let fde = section.fde_from_offset(bases, S::Offset::from(function.offset), S::cie_from_offset).ok()?;
    let row = fde.unwind_info_for_address(section, bases, context, link).ok()?;
    let mut frame = CalleeFrame { section, encoding: fde.cie().encoding(), cfa: 0, callee, read };
    frame.cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => callee.get(register.0)?.checked_add_signed(*offset)?,
        CfaRule::Expression(expression) => frame.value(*expression, None)?,
    };
    let return_register = fde.cie().return_address_register();
    if matches!(row.register(return_register), Some(RegisterRule::Undefined)) {
        return Some(Step::Outermost);
    }
    let mut caller = Registers::default();
    for number in 0..Registers::COUNT as u16 {
        caller.set(number, frame.restore(number, row.register(Register(number))));
    }
    if row.register(Register(Registers::RSP)).is_none() {
        caller.set(Registers::RSP, Some(frame.cfa));
    }
    caller.set(Registers::RIP, Some(frame.restore(return_register.0, row.register(return_register))?));
    Some(Step::Caller(caller, fde.is_signal_trampoline()))
}

/// What the rules of a row are applied to.
struct CalleeFrame<'r, S> {
    section: &'r S,
    encoding: gimli::Encoding,
    cfa: u64,
    callee: &'r Registers,
    read: &'r dyn Fn(u64) -> Option<u64>,
}

impl<'a, S: UnwindSection<Slice<'a>>> CalleeFrame<'_, S> {
    /// The caller's register by its rule.
    fn restore(&self, number: u16, rule: Option<RegisterRule<usize>>) -> Option<u64> {
        match rule {
            None => PRESERVED.contains(&number).then(|| self.callee.get(number)).flatten(),
            Some(RegisterRule::SameValue) => self.callee.get(number),
            Some(RegisterRule::Offset(offset)) => (self.read)(self.cfa.checked_add_signed(offset)?),
            Some(RegisterRule::ValOffset(offset)) => self.cfa.checked_add_signed(offset),
            Some(RegisterRule::Register(other)) => self.callee.get(other.0),
            Some(RegisterRule::Expression(expression)) => (self.read)(self.value(expression, Some(self.cfa))?),
            Some(RegisterRule::ValExpression(expression)) => self.value(expression, Some(self.cfa)),
            Some(RegisterRule::Constant(value)) => Some(value),
            Some(_) => None,
        }
    }

    /// What an expression comes to, beginning with this value on its stack (DWARF 5, 6.4.2).
    fn value(&self, expression: UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let mut evaluation = expression.get(self.section).ok()?.evaluation(self.encoding);
        first.into_iter().for_each(|first| evaluation.set_initial_value(first));
        // Nothing but registers and memory may be asked for there.
        let pieces = expression::pieces(evaluation, self.callee, self.read, |_, _| None)?;
        match pieces.as_slice() {
            [Piece { location: Location::Address { address }, size_in_bits: None, .. }] => Some(*address),
            [Piece { location: Location::Value { value }, size_in_bits: None, .. }] => value.to_u64(u64::MAX).ok(),
            _ => None,
        }
    }
}
