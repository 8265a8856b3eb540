//! Owns the table form in which records are declared, and the description of it that tests and documents read.
//!
//! [`fields!`](macro@fields) turns one table into a struct, its encoder, its decoder and its [`FieldSchema`]s, so that a
//! field is listed exactly once. `FORMAT.md` is compared with these schemas by a test.

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// An unsigned integer of at most this many bits.
    Unsigned(u32),
    /// A zigzag-coded signed integer.
    Signed,
    /// 0 or 1.
    Bool,
    /// Bytes; text is whatever the source wrote, not necessarily UTF-8.
    Bytes,
    /// An unsigned integer of at most `bits` bits with named values; unknown values are kept.
    Enum {
        /// Width of the widest value.
        bits: u32,
        /// Name of the enumeration.
        name: &'static str,
        /// Named values.
        names: &'static [(u64, &'static str)],
    },
    /// Elements, each a set of fields.
    List {
        /// Name of the element.
        element: &'static str,
        /// Its fields.
        fields: &'static [FieldSchema],
    },
}

/// The shape as the documents write it.
impl core::fmt::Display for Shape {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unsigned(bits) => write!(f, "u{bits}"),
            Self::Signed => f.write_str("i64"),
            Self::Bool => f.write_str("bool"),
            Self::Bytes => f.write_str("bytes"),
            Self::Enum { bits, name, .. } => write!(f, "u{bits} {name}"),
            Self::List { element, .. } => write!(f, "list of {element}"),
        }
    }
}

/// One field of a record or list element.
#[derive(Clone, Copy, Debug)]
pub struct FieldSchema {
    /// The number in the key.
    pub number: u8,
    /// The name in the struct and in documents.
    pub name: &'static str,
    /// What it holds.
    pub shape: Shape,
}

/// One kind of record.
#[derive(Clone, Copy, Debug)]
pub struct RecordSchema {
    /// The number in the record header.
    pub kind: u8,
    /// The name of the struct.
    pub name: &'static str,
    /// Its own fields, then the stamp's.
    pub fields: &'static [FieldSchema],
}

/// Declares a struct of optional numbered fields; `record` adds the common [`Stamp`](crate::record::Stamp).
macro_rules! fields {
    ($(#[$doc:meta])* record $name:ident { $($(#[$fdoc:meta])* $num:literal $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name<'a> {
            $($(#[$fdoc])* pub $field: Option<$ty>,)*
            /// When, where and from what input: common to all records.
            pub stamp: $crate::record::Stamp<'a>,
        }
        impl<'a> $crate::wire::Fields<'a> for $name<'a> {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [$crate::schema::FieldSchema] = &[
                $($crate::schema::FieldSchema {
                    number: $num,
                    name: stringify!($field),
                    shape: <$ty as $crate::wire::Value<'a>>::SHAPE,
                },)*
            ];
            #[inline(always)]
            fn encode(&self, out: &mut $crate::wire::Encoder<'_>) {
                $(if $num < $crate::record::FIRST_STAMP_NUMBER && let Some(v) = &self.$field {
                    $crate::wire::Value::put(v, $num, out);
                })*
                $crate::wire::Fields::encode(&self.stamp, out);
                $(if $num >= $crate::record::FIRST_STAMP_NUMBER && let Some(v) = &self.$field {
                    $crate::wire::Value::put(v, $num, out);
                })*
            }
            #[inline(always)]
            fn set(&mut self, number: u8, raw: $crate::wire::Raw<'a>) -> Result<bool, $crate::wire::WireError> {
                match number {
                    $($num => self.$field = Some(
                        $crate::wire::Value::get(raw).ok_or($crate::wire::WireError::BadShape { number })?,
                    ),)*
                    _ => return $crate::wire::Fields::set(&mut self.stamp, number, raw),
                }
                Ok(true)
            }
        }
    };
    ($(#[$doc:meta])* element $name:ident { $($(#[$fdoc:meta])* $num:literal $field:ident : $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $name<'a> {
            $($(#[$fdoc])* pub $field: Option<$ty>,)*
            /// Ties the element to the dump that its byte fields may borrow from.
            #[doc(hidden)]
            pub borrows: core::marker::PhantomData<&'a [u8]>,
        }
        impl<'a> $crate::wire::Fields<'a> for $name<'a> {
            const NAME: &'static str = stringify!($name);
            const FIELDS: &'static [$crate::schema::FieldSchema] = &[
                $($crate::schema::FieldSchema {
                    number: $num,
                    name: stringify!($field),
                    shape: <$ty as $crate::wire::Value<'a>>::SHAPE,
                },)*
            ];
            #[inline(always)]
            fn encode(&self, out: &mut $crate::wire::Encoder<'_>) {
                $(if let Some(v) = &self.$field {
                    $crate::wire::Value::put(v, $num, out);
                })*
            }
            #[inline(always)]
            fn set(&mut self, number: u8, raw: $crate::wire::Raw<'a>) -> Result<bool, $crate::wire::WireError> {
                match number {
                    $($num => self.$field = Some(
                        $crate::wire::Value::get(raw).ok_or($crate::wire::WireError::BadShape { number })?,
                    ),)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

/// Declares an open enumeration: named values of an integer, with every other value kept as it is.
macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident : $int:ty { $($(#[$vdoc:meta])* $num:literal $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);
        impl $name {
            $($(#[$vdoc])* pub const $value: Self = Self($num);)*

            /// Every named value with its name in documents and reports.
            pub const NAMES: &'static [(u64, &'static str)] = &[$(($num, $text),)*];

            /// The name, or `None` for a value that this version does not know.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($num => Some($text),)*
                    _ => None,
                }
            }
        }
        impl<'a> $crate::wire::Value<'a> for $name {
            const SHAPE: $crate::schema::Shape =
                $crate::schema::Shape::Enum { bits: <$int>::BITS, name: stringify!($name), names: Self::NAMES };
            #[inline(always)]
            fn put(&self, number: u8, out: &mut $crate::wire::Encoder<'_>) {
                $crate::wire::Value::put(&self.0, number, out);
            }
            #[inline(always)]
            fn get(raw: $crate::wire::Raw<'a>) -> Option<Self> {
                $crate::wire::Value::get(raw).map(Self)
            }
        }
    };
}
