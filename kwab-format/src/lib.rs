//! Owns the bytes of a kwab dump: what the dying kernel writes and what the host reads back.
//!
//! A *dump* is a file header, then self-delimiting *sections*, then an end section. A section is a header (sync mark,
//! kind, flags, length, sequence number, dump id, position, CRC), a payload and the payload's CRC. A payload is a run
//! of *records*; a record is a kind, a length and numbered *fields*. `FORMAT.md` beside this crate is normative: where
//! it and the code disagree, the code is wrong.
//!
//! Three ideas carry everything else:
//! - **Append-only.** [`Writer`] fills one buffer that the caller gave it and hands whole sections to a [`Sink`]. It
//!   never seeks, allocates, locks or panics, and a sink that fails in one section does not hurt the next.
//! - **Damage costs one section.** Every byte is under a CRC and [`Reader`] finds the next sync mark by itself, so it
//!   yields what is sound *and* a list of [`Defect`]s, never an early end.
//! - **Absent is not zero.** Every field is an `Option`; a reader skips fields and kinds that it does not know.
//!
//! The writer itself is 1.3 KiB, which a kernel best keeps in a static. In a release build for a kernel, `put` takes at
//! most 456 bytes of stack, `close` 648 and `new` 3.2 KiB; no function of writer, armour and reader can reach a panic.
//!
//! ```
//! use kwab_format::record::{Cause, CauseKind};
//! use kwab_format::*;
//!
//! let (mut region, mut buf) = ([0; 8192], [0; 4096]);
//! let header = FileHeader::new(DumpId(0x5EED), BootId::default());
//! let mut writer = Writer::new(SliceSink::new(&mut region), &mut buf, header);
//! writer.begin(SectionKind::CAUSE)?;
//! writer.put(&Cause { kind: Some(CauseKind::PANIC), message: Some(b"no init found"), ..Cause::default() })?;
//! let (sink, result) = writer.finish();
//! result?;
//!
//! for item in Reader::new(sink.written()).expect("just written").sections() {
//!     match item {
//!         Item::Section(section) => {
//!             for record in section.records() {
//!                 if let Ok(AnyRecord::Cause(cause)) = record.decode() {
//!                     assert_eq!(cause.message, Some(&b"no init found"[..]));
//!                 }
//!             }
//!         }
//!         Item::Defect(defect) => panic!("{defect}"),
//!     }
//! }
//! # Ok::<(), WriteError>(())
//! ```
//!
//! Map: [`section`] (headers), [`wire`] (fields), [`record`] (what a dump can say), [`writer`], [`reader`] and
//! [`walk`], [`armour`] (the form for a shared serial console) and [`parity`] (what mends it), [`stream`] (dumps inside
//! a larger run of bytes), [`tail`] (the end section and index of a large dump), [`lz4`].
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

pub mod armour;
pub mod defect;
mod gaps;
mod list;
pub mod lz4;
pub mod parity;
mod payload;
pub mod reader;
pub mod record;
pub mod reed_solomon;
mod schema;
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
pub use writer::{Compression, DropReason, IndexSlot, MIN_BUFFER, Progress, WriteError, Writer};
