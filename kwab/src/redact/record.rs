//! Rewrites one record: keeps, shortens or removes each field as the table says, and counts what is gone.
//!
//! The body is read once into the last value of each known field, which is what every reader takes, and written again
//! in the only form that the format allows. So nothing of the old bytes remains that no field holds.

use std::collections::BTreeMap;
use std::rc::Rc;

use kwab_format::record::*;
use kwab_format::wire::{Encoder, FieldIter, Raw, SLACK, WireError, unzigzag};
use kwab_format::{FieldSchema, Fields as _, RawRecord, RecordType as _, Shape};

use super::known::Known;
use super::removed::{Place, Removed};
use super::table::{self, Field, Holds};
use super::{Policy, memory, texts};
use crate::model::fields::{columns, schema_of, split_prefixed};

/// Bytes that a rewritten record can be longer by: a label and a length that take the place of bytes.
const GROWTH: usize = 256;

/// Rewrites the records of one dump.
#[derive(Debug)]
pub(super) struct Rewriter {
    policy: Policy,
    known: Rc<Known>,
    /// What was removed so far.
    pub(super) removed: Removed,
    /// The record that is being written; kept for the next one.
    scratch: Vec<u8>,
    plans: BTreeMap<u8, Option<Rc<Plan>>>,
}

/// The fields of a kind of record: what they may hold, and how they are encoded.
#[derive(Debug)]
struct Plan {
    own: Vec<Field>,
    shapes: Vec<&'static FieldSchema>,
}

impl Plan {
    /// `None` for a kind that the table or the format does not know.
    fn of(kind: RecordKind) -> Option<Self> {
        let (rows, schema) = (table::rows(kind.0)?, schema_of(kind)?);
        let own = rows.fields.iter().chain(table::STAMP).copied().collect();
        Some(Self { own, shapes: columns(schema).collect() })
    }
}

/// What the fields of a record say about its other fields.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whose {
    /// The names in it are those of the kernel.
    pub(super) kernel: bool,
    /// The registers in it are a program's.
    user: bool,
    arch: Option<Arch>,
}

/// The value of a field after redaction.
enum Fate {
    Kept,
    Text(String),
    Gone,
}

impl Rewriter {
    pub(super) fn new(policy: Policy, known: Rc<Known>) -> Self {
        Self { policy, known, removed: Removed::default(), scratch: Vec::new(), plans: BTreeMap::new() }
    }

    /// The record as it may be shared; `None` when nothing of it may, or it is malformed.
    pub(super) fn rewrite(&mut self, raw: RawRecord<'_>) -> Option<RawRecord<'_>> {
        let plan = self.plans.entry(raw.kind.0).or_insert_with(|| Plan::of(raw.kind).map(Rc::new)).clone();
        let Some(plan) = plan else {
            self.removed.add(Place::kind(raw.kind.0), raw.body.len());
            return None;
        };
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.resize(raw.body.len() + GROWTH + SLACK, 0);
        let mut out = Encoder::new(&mut scratch, 0);
        let whose = self.whose(raw);
        let place = Place::kind(raw.kind.0);
        let written = if raw.kind == Memory::KIND {
            self.memory(raw.body, &plan.own, &plan.shapes, &mut out)
        } else {
            self.fields(raw.body, &plan.own, &plan.shapes, whose, place, &mut out)
        };
        let end = out.position();
        self.scratch = scratch;
        match (written, end) {
            (Ok(()), Some(end)) => Some(RawRecord { kind: raw.kind, body: self.scratch.get(..end)? }),
            _ => {
                self.removed.add(place, raw.body.len());
                None
            }
        }
    }

    fn fields(
        &mut self,
        body: &[u8],
        own: &[Field],
        shapes: &[&FieldSchema],
        whose: Whose,
        place: Place,
        out: &mut Encoder<'_>,
    ) -> Result<(), WireError> {
        for (field, raw) in self.values(body, own, place)? {
            let shape = shapes.iter().find(|shape| shape.number == field.number).map(|shape| shape.shape);
            self.field(field, raw, shape, whose, place.at(field.number), out)?;
        }
        Ok(())
    }

    /// The last value of each field that the table knows, in ascending order; what it does not know is removed.
    fn values<'a>(&mut self, body: &'a [u8], own: &[Field], place: Place) -> Result<Vec<(Field, Raw<'a>)>, WireError> {
        let mut values: Vec<(Field, Raw<'a>)> = Vec::new();
        let mut fields = FieldIter::new(body);
        while let Some((number, raw)) = fields.next_field()? {
            match own.iter().find(|field| field.number == number) {
                Some(field) => match values.binary_search_by_key(&number, |(field, _)| field.number) {
                    Ok(at) => values[at].1 = raw,
                    Err(at) => values.insert(at, (*field, raw)),
                },
                None => self.removed.add(place.at(number), length(raw)),
            }
        }
        Ok(values)
    }

    fn field(
        &mut self,
        field: Field,
        raw: Raw<'_>,
        shape: Option<Shape>,
        whose: Whose,
        place: Place,
        out: &mut Encoder<'_>,
    ) -> Result<(), WireError> {
        let number = field.number;
        let malformed = Err(WireError::BadShape { number });
        let Some(shape) = shape else { return malformed };
        match (raw, shape) {
            (Raw::Bytes(bytes), Shape::List { element, fields }) => {
                let Holds::List(own) = field.holds else { return malformed };
                self.list(bytes, own, fields, (element, number), whose, place, out)
            }
            (Raw::Bytes(bytes), Shape::Bytes) => {
                match self.text(field.holds, bytes, whose) {
                    Fate::Kept => out.bytes(number, bytes),
                    Fate::Text(text) => {
                        out.bytes(number, text.as_bytes());
                        if text.as_bytes() != bytes {
                            self.removed.add(place, bytes.len().saturating_sub(text.len()).max(1));
                        }
                    }
                    Fate::Gone => self.removed.add(place, bytes.len()),
                }
                Ok(())
            }
            (Raw::Int(value), Shape::Unsigned(_) | Shape::Signed | Shape::Bool | Shape::Enum { .. }) => {
                if !fits(value, shape) {
                    return malformed;
                }
                if self.number(field.holds, value, shape) {
                    out.int(number, value);
                } else {
                    self.removed.add(place, length(raw));
                }
                Ok(())
            }
            _ => malformed,
        }
    }

    /// Elements one by one; a register is an element whose number says what its value is.
    #[expect(clippy::too_many_arguments, reason = "the parts of one field")]
    fn list(
        &mut self,
        bytes: &[u8],
        own: &[Field],
        schema: &'static [FieldSchema],
        (element, number): (&str, u8),
        whose: Whose,
        place: Place,
        out: &mut Encoder<'_>,
    ) -> Result<(), WireError> {
        let shapes: Vec<&FieldSchema> = schema.iter().collect();
        let mut result = Ok(());
        out.nested(number, |out| {
            let mut rest = bytes;
            while result.is_ok() {
                // Elements without a field have nothing to judge, and a few kilobytes unpack to millions of them.
                let empty = rest.iter().take_while(|length| **length == 0).count();
                let (passed, behind) = rest.split_at(empty);
                out.append(passed);
                if behind.is_empty() {
                    return;
                }
                let Some((body, behind)) = split_prefixed(behind) else {
                    result = Err(WireError::BadShape { number });
                    return;
                };
                rest = behind;
                let held = if element == "Reg" { self.register(body, whose) } else { None };
                let whose = if element == "PanicFrame" { self.of_frame(body, whose) } else { whose };
                if held == Some(Holds::Private) {
                    self.removed.add(place.of(2), 8);
                    continue;
                }
                let changed: Vec<Field>;
                let own = match held {
                    Some(holds) => {
                        let value = |field: &Field| if field.number == 2 { Field { holds, ..*field } } else { *field };
                        changed = own.iter().map(value).collect();
                        changed.as_slice()
                    }
                    None => own,
                };
                out.prefixed(|out| result = self.fields(body, own, &shapes, whose, place.element(), out));
            }
        });
        result
    }

    /// What the value of a register may hold; `Private` for those of a program but its place and state.
    fn register(&self, body: &[u8], whose: Whose) -> Option<Holds> {
        let (reg, _) = Reg::decode(body).ok()?;
        let Some(id) = reg.id else { return whose.user.then_some(Holds::Private) };
        let arm = whose.arch == Some(Arch::AARCH64);
        let x86 = whose.arch.is_none_or(|arch| arch == Arch::X86_64);
        Some(match id.0 {
            0x102 | 0x110..=0x113 | 0x121 | 0x201 | 0x208 | 0x209 => Holds::Address,
            0x100 | 0x103 | 0x104 | 0x108 | 0x116 | 0x117 | 0x120 | 0x200 | 0x202..=0x207 => Holds::Count,
            31 | 32 if arm => Holds::Address,
            7 | 16 | 58 | 59 if x86 => Holds::Address,
            49 if x86 => Holds::Count,
            // Linux prints the base of a segment in the place of its selector, and a program chooses where that is.
            50..=55 if x86 && reg.value.is_some_and(|value| value > u64::from(u16::MAX)) => Holds::Address,
            50..=55 if x86 => Holds::Count,
            _ if whose.user => Holds::Private,
            _ => Holds::Word,
        })
    }

    /// Whose a frame of a panic's list is: one that is not the kernel's is named by a program.
    fn of_frame(&self, body: &[u8], whose: Whose) -> Whose {
        let addr = PanicFrame::decode(body).ok().and_then(|(frame, _)| frame.addr);
        Whose { kernel: whose.kernel && addr.is_none_or(|addr| self.known.is_kernel(addr)), ..whose }
    }

    fn number(&self, holds: Holds, value: u64, shape: Shape) -> bool {
        match (holds, shape) {
            (Holds::Named, Shape::Enum { names, .. }) => names.iter().any(|(known, _)| *known == value),
            (Holds::Named, Shape::Bool) | (Holds::Count, _) => true,
            (Holds::Clock, _) => self.policy == Policy::Kernel,
            (Holds::Address, _) => self.known.is_address(value),
            (Holds::Entry, _) => self.known.is_entry(value),
            (Holds::Recorded, _) => value <= u64::from(u32::MAX) || self.known.is_address(value),
            (Holds::Word, Shape::Signed) => {
                let value = unzigzag(value);
                (-4096..i64::from(i32::MAX)).contains(&value) || self.known.is_word(value.cast_unsigned())
            }
            (Holds::Word, _) => self.known.is_word(value),
            _ => false,
        }
    }

    fn text(&self, holds: Holds, bytes: &[u8], whose: Whose) -> Fate {
        let of_kernel = self.policy == Policy::Kernel;
        let some = |text: Option<String>| text.map_or(Fate::Gone, Fate::Text);
        match holds {
            Holds::Known if texts::is_known(bytes) => Fate::Kept,
            Holds::Symbol if of_kernel && whose.kernel => some(texts::symbol(bytes)),
            Holds::Source if of_kernel && whose.kernel => some(texts::source(bytes)),
            Holds::Version if of_kernel => some(texts::version(bytes)),
            Holds::Prose if of_kernel => some(texts::prose(bytes, &self.known)),
            Holds::BuildId if of_kernel && whose.kernel && (8..=32).contains(&bytes.len()) => Fate::Kept,
            _ if bytes.is_empty() => Fate::Kept,
            _ => Fate::Gone,
        }
    }

    fn memory(
        &mut self,
        body: &[u8],
        own: &[Field],
        shapes: &[&FieldSchema],
        out: &mut Encoder<'_>,
    ) -> Result<(), WireError> {
        let place = Place::kind(Memory::KIND.0);
        let (record, _) = Memory::decode(body)?;
        let kept = memory::kept(&record, self.policy, &self.known);
        let mut values = self.values(body, own, place)?;
        if kept.as_ref().is_some_and(|kept| kept.removed > 0)
            && let Some(label) = own.iter().find(|field| field.number == 9)
            && let Err(at) = values.binary_search_by_key(&9, |(field, _)| field.number)
        {
            values.insert(at, (*label, Raw::Bytes(memory::LABEL)));
        }
        for (field, raw) in values {
            let shape = shapes.iter().find(|shape| shape.number == field.number).map(|shape| shape.shape);
            match (field.holds, raw, &kept) {
                (Holds::Memory, Raw::Bytes(bytes), Some(kept)) => {
                    out.bytes(field.number, &kept.bytes);
                    if kept.removed > 0 {
                        self.removed.add(place.at(field.number), kept.removed);
                    }
                    debug_assert_eq!(kept.bytes.len(), bytes.len());
                }
                (Holds::Memory, Raw::Bytes(bytes), None) => {
                    self.removed.add(place.at(field.number), bytes.len());
                    if record.wanted.is_none() {
                        out.int(7, bytes.len() as u64);
                    }
                }
                (Holds::Known, Raw::Bytes(_), Some(kept)) if kept.removed > 0 && field.number == 9 => {
                    out.bytes(9, memory::LABEL);
                }
                _ => self.field(field, raw, shape, Whose::default(), place.at(field.number), out)?,
            }
        }
        Ok(())
    }

    /// Whom the names and registers of a record belong to.
    fn whose(&self, raw: RawRecord<'_>) -> Whose {
        let known = &self.known;
        let half = |addr: Option<u64>| addr.is_none_or(|addr| known.is_kernel(addr));
        let mut whose = Whose { kernel: true, user: raw.kind == CrashReport::KIND, arch: known.arch };
        // Decoding reads every element of every list.
        if ![Frame::KIND, Cause::KIND, Image::KIND, Registers::KIND].contains(&raw.kind) {
            return whose;
        }
        match raw.decode() {
            Ok(AnyRecord::Frame(frame)) => whose.kernel = half(frame.addr),
            Ok(AnyRecord::Cause(cause)) => {
                whose.kernel = cause.in_kernel.unwrap_or_else(|| cause.ip.is_some_and(|ip| known.is_kernel(ip)));
            }
            Ok(AnyRecord::Image(image)) => {
                whose.kernel = matches!(image.kind, Some(ImageKind::KERNEL | ImageKind::MODULE)) && image.pid.is_none();
            }
            Ok(AnyRecord::Registers(registers)) => {
                whose.arch = registers.arch.or(known.arch);
                whose.user = registers.role.is_none_or(|role| role == RegisterRole::USER) || self.of_user(&registers);
            }
            _ => {}
        }
        whose
    }

    /// Whether a program ran with these registers: by the code segment, else by where they point.
    fn of_user(&self, registers: &Registers<'_>) -> bool {
        let value = |wanted: u16| {
            registers.regs.iter().flat_map(kwab_format::List::iter).find(|reg| reg.id == Some(RegId(wanted)))?.value
        };
        let arm = registers.arch.or(self.known.arch) == Some(Arch::AARCH64);
        let (sp, ip) = if arm { (31, 32) } else { (7, 16) };
        match value(51).filter(|_| !arm) {
            Some(cs) => cs & 3 == 3,
            None => !([sp, ip].into_iter().filter_map(value).any(|addr| self.known.is_kernel(addr))),
        }
    }
}

/// Bytes of a value, as they are counted.
const fn length(raw: Raw<'_>) -> usize {
    match raw {
        Raw::Int(_) => 8,
        Raw::Bytes(bytes) => bytes.len(),
    }
}

const fn fits(value: u64, shape: Shape) -> bool {
    match shape {
        Shape::Bool => value <= 1,
        Shape::Unsigned(bits) | Shape::Enum { bits, .. } => bits >= 64 || value >> bits == 0,
        _ => true,
    }
}
