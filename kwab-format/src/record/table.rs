//! Owns the table form in which records, their elements and open enumerations are declared.
//!
//! `fields!` turns one table into a struct, its encoder, its decoder and its [`FieldSchema`](crate::FieldSchema)s;
//! `open_enum!` turns one into an integer type with named values.

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
