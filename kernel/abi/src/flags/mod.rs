//! Names the bits and commands of Linux system calls: what `O_RDONLY|O_CLOEXEC` is, both ways.
//!
//! A [`FlagSet`] is one word of one call: *fields*, of which exactly one value holds under a mask (`O_RDWR`, a futex
//! command), and *bits*, each on or off. A plain enumeration is one field that covers the word. Every name is also a
//! constant (`flags::file::O_CLOEXEC`), of type `u64` because the argument arrives in a 64-bit register.
//!
//! Each set names its source: a uapi header, relative to `/usr/include`, or a manual page. `tests/headers.rs` compiles
//! the names against the system's headers and compares the numbers.

use core::fmt;

pub mod file;
pub mod memory;
pub mod process;
pub mod socket;
pub mod system;
pub mod time;

/// A part of a word that holds one of several values.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The bits that belong to the field.
    pub mask: u64,
    /// Values under the mask and their names.
    pub values: &'static [(u64, &'static str)],
}

/// The names of one word of one call.
#[derive(Debug)]
pub struct FlagSet {
    /// Name of the set, for people.
    pub name: &'static str,
    /// Header or manual page that defines the numbers.
    pub source: &'static str,
    /// Name of the word when it is zero as a whole (`PROT_NONE`).
    pub zero: Option<&'static str>,
    /// Parts that hold one of several values, printed first.
    pub fields: &'static [Field],
    /// Single bits, and combinations of bits before the bits they contain.
    pub bits: &'static [(u64, &'static str)],
}

/// Every set there is.
pub static ALL: &[&[&FlagSet]] = &[file::ALL, memory::ALL, process::ALL, socket::ALL, system::ALL, time::ALL];

impl FlagSet {
    /// Writes `value` as names joined by `|`, what has no name as one hexadecimal rest.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write(&self, value: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        if value == 0
            && let Some(zero) = self.zero
        {
            return out.write_str(zero);
        }
        let mut rest = value;
        let mut separator = "";
        for field in self.fields {
            let part = value & field.mask;
            if let Some((_, name)) = field.values.iter().find(|(v, _)| *v == part) {
                out.write_str(separator)?;
                out.write_str(name)?;
                separator = "|";
                rest &= !field.mask;
            }
        }
        for &(bits, name) in self.bits {
            if bits != 0 && rest & bits == bits {
                out.write_str(separator)?;
                out.write_str(name)?;
                separator = "|";
                rest &= !bits;
            }
        }
        match (rest, separator) {
            (0, "") => out.write_str("0"),
            (0, _) => Ok(()),
            _ => write!(out, "{separator}{rest:#x}"),
        }
    }

    /// The same as something `format!` takes.
    pub fn display(&self, value: u64) -> Display<'_> {
        Display { set: self, value }
    }

    /// Every name of the set with its number.
    pub fn names(&self) -> impl Iterator<Item = (u64, &'static str)> + '_ {
        let fields = self.fields.iter().flat_map(|field| field.values.iter().copied());
        fields.chain(self.bits.iter().copied()).chain(self.zero.map(|name| (0, name)))
    }
}

/// A word of a [`FlagSet`] that prints as its names.
#[derive(Debug, Clone, Copy)]
pub struct Display<'a> {
    set: &'a FlagSet,
    value: u64,
}

impl fmt::Display for Display<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.set.write(self.value, f)
    }
}

/// `Some` of a name, if there is one.
macro_rules! optional_name {
    () => {
        None
    };
    ($name:ident) => {
        Some(stringify!($name))
    };
}
use optional_name;

/// Declares one set and a constant for each of its names.
macro_rules! flag_set {
    ($(#[$doc:meta])* $set:ident from $source:literal {
        $(zero $zero:ident,)?
        $(field $mask:literal { $($fname:ident = $fvalue:literal,)* })*
        bits { $($name:ident = $value:literal,)* }
        also { $($also:ident),* }
    }) => {
        $(
            #[doc = concat!("`", stringify!($zero), "`: nothing of ", stringify!($set), " (", $source, ").")]
            pub const $zero: u64 = 0;
        )?
        $($(
            #[doc = concat!("`", stringify!($fname), "` of ", stringify!($set), " (", $source, ").")]
            pub const $fname: u64 = $fvalue;
        )*)*
        $(
            #[doc = concat!("`", stringify!($name), "` of ", stringify!($set), " (", $source, ").")]
            pub const $name: u64 = $value;
        )*
        $(#[$doc])*
        pub static $set: FlagSet = FlagSet {
            name: stringify!($set),
            source: $source,
            zero: optional_name!($($zero)?),
            fields: &[$(Field { mask: $mask, values: &[$(($fname, stringify!($fname)),)*] },)*],
            bits: &[$(($name, stringify!($name)),)* $(($also, stringify!($also)),)*],
        };
    };
}
use flag_set;
