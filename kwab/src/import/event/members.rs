//! Reads the members of an object into the fields of a record; the macros here are how each event type is declared.
//!
//! Prediction first: [`members!`] compares the input with the members in the order in which the dialects write them,
//! and goes on by name from the first one that differs. Nothing is lost: see [`Extra`].

use crate::text::lex::{Lexer, Malformed, Number};

/// Members that no field holds, kept as they stood.
#[derive(Debug, Default)]
pub struct Extra(Vec<u8>);

impl Extra {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn push(&mut self, member: &[u8]) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(member);
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        (!self.0.is_empty()).then_some(&self.0[..])
    }
}

/// A value that a field can take from a line.
pub(super) trait Take<'a>: Sized {
    /// Reads it; on failure the lexer stands where it stood.
    fn take(lexer: &mut Lexer<'a>) -> Option<Self>;
}

impl<'a> Take<'a> for u64 {
    #[inline(always)]
    fn take(lexer: &mut Lexer<'a>) -> Option<Self> {
        let mark = lexer.at();
        let number = lexer.number().ok()?;
        if number.negative {
            lexer.rewind(mark);
            return None;
        }
        Some(number.magnitude)
    }
}

impl<'a> Take<'a> for u32 {
    #[inline(always)]
    fn take(lexer: &mut Lexer<'a>) -> Option<Self> {
        let mark = lexer.at();
        let value = u64::take(lexer).and_then(|value| u32::try_from(value).ok());
        if value.is_none() {
            lexer.rewind(mark);
        }
        value
    }
}

impl<'a> Take<'a> for i64 {
    #[inline(always)]
    fn take(lexer: &mut Lexer<'a>) -> Option<Self> {
        let mark = lexer.at();
        let value = lexer.number().ok().and_then(Number::signed);
        if value.is_none() {
            lexer.rewind(mark);
        }
        value
    }
}

impl<'a> Take<'a> for bool {
    #[inline(always)]
    fn take(lexer: &mut Lexer<'a>) -> Option<Self> {
        lexer.boolean().ok()
    }
}

impl<'a> Take<'a> for &'a [u8] {
    #[inline(always)]
    fn take(lexer: &mut Lexer<'a>) -> Option<Self> {
        let mark = lexer.at();
        let value = lexer.string().ok();
        if value.is_none() {
            lexer.rewind(mark);
        }
        value
    }
}

/// Bytes that a string has in hexadecimal.
#[derive(Clone, Copy)]
pub(super) struct HexBytes<'a>(pub &'a [u8]);

impl<'a> Take<'a> for HexBytes<'a> {
    fn take(lexer: &mut Lexer<'a>) -> Option<Self> {
        let mark = lexer.at();
        let value = lexer.hex_string().ok().map(Self);
        if value.is_none() {
            lexer.rewind(mark);
        }
        value
    }
}

/// Reads the value of the member that began at `start` into its field, or keeps the member in `extra`.
#[inline(always)]
pub(super) fn member<'a, T: Take<'a>>(
    lexer: &mut Lexer<'a>,
    start: usize,
    position: &mut Option<T>,
    extra: &mut Extra,
) -> Result<(), Malformed> {
    if position.is_none()
        && let Some(value) = T::take(lexer)
    {
        *position = Some(value);
        return Ok(());
    }
    keep(lexer, start, extra)
}

/// Keeps the member that began at `start` and whose value comes next.
#[cold]
pub(super) fn keep(lexer: &mut Lexer<'_>, start: usize, extra: &mut Extra) -> Result<(), Malformed> {
    lexer.skip_value()?;
    extra.push(lexer.since(start));
    Ok(())
}

/// Reads the name of the next member, its comma and its colon; `None` at the end of the object. Gives where it began.
#[cold]
pub(super) fn next_name<'a>(lexer: &mut Lexer<'a>, first: &mut bool) -> Result<Option<(&'a [u8], usize)>, Malformed> {
    lexer.skip_space();
    if lexer.eat_byte(b'}') {
        return Ok(None);
    }
    if !std::mem::take(first) {
        lexer.expect(b',')?;
    }
    let start = lexer.at();
    let name = lexer.string()?;
    lexer.expect(b':')?;
    Ok(Some((name, start)))
}

/// Reads the members of an object up to its `}`: predicted ones first, then by name. `stamp record` stands for the
/// members that every event may have.
macro_rules! members {
    ($lexer:ident, $extra:expr, $first:expr, stamp $record:ident, { $($rows:tt)* } $($more:tt)*) => {
        members!($lexer, $extra, $first, {
            seq => $record.stamp.seq,
            cpu => $record.stamp.cpu,
            ns => $record.stamp.ns,
            tsc => $record.stamp.tsc,
            $($rows)*
        } $($more)*)
    };
    (
        $lexer:ident, $extra:expr, $first:expr, { $($key:ident => $position:expr,)* }
        $(special { $($skey:ident => $read:expr,)* })?
    ) => {{
        let mut first: bool = $first;
        if !first {
            $({
                let start = $lexer.at() + 1;
                if $lexer.eat(concat!(",\"", stringify!($key), "\":").as_bytes()) {
                    member($lexer, start, &mut $position, $extra)?;
                }
            })*
            $($({
                let start = $lexer.at() + 1;
                if $lexer.eat(concat!(",\"", stringify!($skey), "\":").as_bytes()) {
                    special($lexer, start, $extra, $read)?;
                }
            })*)?
        }
        if !$lexer.eat_byte(b'}') {
            while let Some((name, start)) = next_name($lexer, &mut first)? {
                match name {
                    $(name if name == stringify!($key).as_bytes() => member($lexer, start, &mut $position, $extra)?,)*
                    $($(name if name == stringify!($skey).as_bytes() => special($lexer, start, $extra, $read)?,)*)?
                    b"type" => { $lexer.skip_value()?; }
                    _ => keep($lexer, start, $extra)?,
                }
            }
        }
    }};
}

/// Reads a member by its own rule; what the rule refuses is kept as it stood.
pub(super) fn special<'a>(
    lexer: &mut Lexer<'a>,
    start: usize,
    extra: &mut Extra,
    read: impl FnOnce(&mut Lexer<'a>) -> Result<bool, Malformed>,
) -> Result<(), Malformed> {
    let mark = lexer.at();
    if read(lexer) == Ok(true) {
        return Ok(());
    }
    lexer.rewind(mark);
    keep(lexer, start, extra)
}

/// Reads `[…]`, one element at a time.
pub(super) fn array<'a>(
    lexer: &mut Lexer<'a>,
    mut element: impl FnMut(&mut Lexer<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    lexer.expect(b'[')?;
    if lexer.eat_byte(b']') {
        return Ok(());
    }
    loop {
        lexer.skip_space();
        element(lexer)?;
        lexer.skip_space();
        if lexer.eat_byte(b']') {
            return Ok(());
        }
        lexer.expect(b',')?;
    }
}

/// Reads an array of objects into `items`, once.
macro_rules! objects {
    ($items:ident, $already:ident, $element:ident { $($key:literal => $field:ident,)* }) => {
        |lexer| {
            if std::mem::replace(&mut $already, true) {
                return Ok(false);
            }
            array(lexer, |lexer| {
                lexer.expect(b'{')?;
                let mut item = $element::default();
                let mut unknown: Option<(usize, &'a [u8])> = None;
                let mut first = true;
                $({
                    let found = if first {
                        lexer.eat(concat!("\"", $key, "\":").as_bytes())
                    } else {
                        lexer.eat(concat!(",\"", $key, "\":").as_bytes())
                    };
                    if found {
                        first = false;
                        item.$field = Some(Take::take(lexer).ok_or(Malformed)?);
                    }
                })*
                while let Some((name, start)) = next_name(lexer, &mut first)? {
                    match name {
                        $(name if name == $key.as_bytes() && item.$field.is_none() => {
                            item.$field = Some(Take::take(lexer).ok_or(Malformed)?);
                        })*
                        _ => {
                            // One slice holds them all; known members between two unknown ones come along.
                            lexer.skip_value()?;
                            let from = unknown.map_or(start, |(from, _)| from);
                            unknown = Some((from, lexer.since(from)));
                        }
                    }
                }
                item.extra = unknown.map(|(_, members)| members);
                $items.push(item);
                Ok(())
            })?;
            Ok(true)
        }
    };
}

pub(super) use {members, objects};
