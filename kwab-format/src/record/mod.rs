//! Lists everything a dump can say: the kinds of records, and how a payload is cut into records.
//!
//! A record is four bytes, kind in the low byte and body length in the upper three, then the body: numbered fields. The
//! list of kinds below is the only one; the submodules hold the fields. Every record carries a [`Stamp`].

#[macro_use]
mod table;

mod cause;
mod events;
mod faults;
mod identity;
mod index;
mod kept;
mod memory;
mod profile;
mod stamp;
mod syscalls;
mod system;

pub use cause::{Cause, CauseKind, Frame, FrameTrust, Reg, RegId, RegisterRole, Registers};
pub use events::*;
pub use faults::*;
pub use identity::{Arch, Cpu, CpuState, Identity, Image, ImageFile, ImageKind, Reason, Segment, Source};
pub use index::{DropReason, DroppedSection, End, IndexEntry, KindTotal};
pub use kept::{Drops, LogChunk, Note, NoteKind, Text, TextKind, UnknownEvent};
pub use memory::*;
pub use profile::*;
pub use stamp::{FIRST_STAMP_NUMBER, Stamp};
pub use syscalls::*;
pub use system::*;

use crate::schema::RecordSchema;
pub use crate::wire::RecordKind;
use crate::wire::{Fields, RecordType, WireError};

/// Bytes of a record header.
pub const RECORD_HEADER_LEN: usize = 4;
/// The longest body that a record header can state.
pub const MAX_BODY_LEN: usize = 0xFF_FFFF;

macro_rules! kinds {
    ($($num:literal $name:ident,)*) => {
        $(impl<'a> RecordType<'a> for $name<'a> {
            const KIND: RecordKind = RecordKind($num);
        })*

        /// A decoded record of any kind.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum AnyRecord<'a> {
            $(#[doc = concat!("Kind ", stringify!($num), ": [`", stringify!($name), "`].")] $name($name<'a>),)*
            /// A kind that this version does not know.
            Unknown(RawRecord<'a>),
        }

        /// Every kind of record, in ascending order of number.
        pub const SCHEMA: &[RecordSchema] = &[
            $(RecordSchema {
                kind: $num,
                name: stringify!($name),
                fields: <$name<'static> as Fields<'static>>::FIELDS,
            },)*
        ];

        impl RecordKind {
            /// The name of the record, or `None` for a kind that this version does not know.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($num => Some(stringify!($name)),)* _ => None }
            }
        }

        impl<'a> RawRecord<'a> {
            /// Decodes the fields; fields and kinds that are not known here do not fail.
            ///
            /// # Errors
            /// [`WireError`] when the body is cut or a known field has the wrong shape.
            pub fn decode(&self) -> Result<AnyRecord<'a>, WireError> {
                match self.kind.0 {
                    $($num => $name::decode(self.body).map(|(record, _)| AnyRecord::$name(record)),)*
                    _ => Ok(AnyRecord::Unknown(*self)),
                }
            }
        }

        impl<'a> AnyRecord<'a> {
            /// The kind in the record header.
            #[must_use]
            pub const fn kind(&self) -> RecordKind {
                match self { $(Self::$name(_) => RecordKind($num),)* Self::Unknown(raw) => raw.kind }
            }

            /// When, where and from what input; empty for unknown kinds.
            #[must_use]
            pub fn stamp(&self) -> Stamp<'a> {
                match self { $(Self::$name(record) => record.stamp,)* Self::Unknown(_) => Stamp::default() }
            }

            /// Appends the body.
            pub(crate) fn encode_body(&self, out: &mut crate::wire::Encoder<'_>) {
                match self { $(Self::$name(record) => record.encode(out),)* Self::Unknown(raw) => out.append(raw.body) }
            }
        }

        $(impl<'a> From<$name<'a>> for AnyRecord<'a> {
            fn from(record: $name<'a>) -> Self {
                Self::$name(record)
            }
        })*
    };
}

kinds! {
    1 Identity,
    2 Source,
    3 Cpu,
    4 Image,
    5 Cause,
    6 Frame,
    7 Registers,
    8 Memory,
    9 StackBounds,
    10 SyscallEntry,
    11 SyscallExit,
    12 SyscallRecord,
    13 UnimplementedSyscall,
    14 CanaryCheck,
    15 PageFault,
    16 UserFault,
    17 UsercopyFault,
    18 UcopyTraceDump,
    19 Usercopy,
    20 Signal,
    21 SignalStackWrite,
    22 ProcessFork,
    23 ProcessExec,
    24 ProcessExit,
    25 CrashReport,
    26 Panic,
    27 SyscallProfile,
    28 PageFaults,
    29 SpanProfile,
    30 Htrace,
    31 HtraceSummary,
    32 PageVerifyFail,
    33 HugePageVerifyFail,
    34 PageVerifyOk,
    35 VmAudit,
    36 ExecPrefault,
    37 UnknownEvent,
    38 FlightEvent,
    39 Vma,
    40 Pte,
    41 PageCheck,
    42 FrameInfo,
    43 Task,
    44 Lock,
    45 LockWait,
    46 LogChunk,
    47 Counter,
    48 Text,
    49 Drops,
    50 Note,
    51 ImageFile,
    250 IndexEntry,
    251 KindTotal,
    252 DroppedSection,
    253 End,
}

/// A record as it stands in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// The kind in its header.
    pub kind: RecordKind,
    /// The bytes of its fields.
    pub body: &'a [u8],
}

/// Cuts a payload into records.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// Starts at the front of a payload.
    #[must_use]
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Bytes behind the last whole record; not empty only when the payload was written wrongly.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawRecord<'a>> {
        let (header, rest) = self.rest.split_first_chunk::<RECORD_HEADER_LEN>()?;
        let [kind, l0, l1, l2] = *header;
        let len = usize::try_from(u32::from_le_bytes([l0, l1, l2, 0])).ok()?;
        let (body, rest) = rest.split_at_checked(len)?;
        self.rest = rest;
        Some(RawRecord { kind: RecordKind(kind), body })
    }
}
