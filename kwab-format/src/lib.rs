//! Owns the bytes of a kwab dump: what the dying kernel writes and what the host reads back.
//!
//! A *dump* is a file header, then self-delimiting *sections*, then an end section. A section is a header (sync mark,
//! kind, flags, length, sequence number, dump id, position, CRC), a payload and the payload's CRC. A payload is a run of
//! *records*; a record is a kind, a length and numbered *fields*. `FORMAT.md` beside this crate is normative: where it
//! and the code disagree, the code is wrong.
//!
//! Three ideas carry everything else:
//! - **Append-only.** [`Writer`] fills one buffer that the caller gave it and hands whole sections to a [`Sink`]. It
//!   never seeks, allocates, locks or panics, and a sink that fails in one section does not hurt the next.
//! - **Damage costs one section.** Every byte is under a CRC and [`Reader`] finds the next sync mark by itself, so it
//!   yields what is sound *and* a list of [`Defect`]s, never an early end.
//! - **Absent is not zero.** Every field is an `Option`; a reader skips fields and kinds that it does not know.
//!
//! The writer itself is about 1.2 KiB, which a kernel best keeps in a static; beside it, writing takes at most 2 KiB of stack
//! in a release build (`tests/stack.rs` measures, `benches/stack.rs` prints).
//!
//! Map: [`section`] (headers), [`wire`] (fields), [`record`] (what a dump can say), [`writer`], [`reader`] and [`walk`], [`armour`]
//! (the form for a shared serial console), [`stream`] (dumps inside a larger run of bytes), [`tail`] (the end section and index of a large dump), [`lz4`].
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable
    )
)]

#[macro_use]
mod schema;

pub mod armour;
pub mod defect;
mod list;
pub mod lz4;
pub mod reader;
pub mod record;
pub mod section;
pub mod sink;
pub mod stream;
pub mod tail;
mod totals;
pub mod walk;
pub mod wire;
pub mod writer;

pub use defect::{Defect, DefectKind};
pub use list::{List, ListIter};
pub use reader::{Reader, Section};
pub use record::{AnyRecord, RawRecord, RecordKind, Records};
pub use schema::{FieldSchema, RecordSchema, Shape};
pub use section::{BootId, DumpId, FileHeader, Flags, SectionHeader, SectionKind};
pub use sink::{Sink, SinkError, SliceSink};
pub use walk::{Item, Sections};
pub use wire::{Fields, RecordType, WireError};
pub use writer::{Compression, DropReason, IndexSlot, MIN_BUFFER, WriteError, Writer};
