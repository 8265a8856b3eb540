//! The table by which a reader of this kernel's memory finds threads, locks and times: all lists for
//! [`machine::describe`].
//!
//! A kernel that hangs so that it cannot dump is captured from outside (`kwab capture`), and read by this.

use machine::arch::described;
use machine::console;
use machine::describe::{Description, Entry, Part};
use machine::sync::SpinLock;

use super::{panic, watchdog};
use crate::mm::frames;
use crate::sync::reason;
use crate::task::{fields, tree};
use crate::trace::{flight, ring};
use crate::{log, uts};

/// How a lock looks, and what the compiler says of the place that took it ([`core::panic::Location`]).
static LOCKS: [Entry; 6] = [
    Entry::number("lock.holder", SpinLock::<()>::HOLDER),
    Entry::number("lock.taken", SpinLock::<()>::LOCATION),
    Entry::number("place.file", 0x00),
    Entry::number("place.file_length", 0x08),
    Entry::number("place.line", 0x10),
    Entry::number("place.column", 0x14),
];

static DESCRIPTION: Description<25> = Description::new(
    &DESCRIPTION,
    [
        Part::of(&described::IMAGE),
        Part::of(&described::BLOCKS),
        Part::of(&described::AWAITED),
        Part::of(&described::STOPPED),
        Part::of(&described::REGISTERS),
        Part::of(&described::CONTROL),
        Part::of(&described::CLOCK),
        Part::of(&LOCKS),
        Part::of(&fields::STAND),
        Part::of(&fields::FRAME),
        Part::of(&fields::SCHED),
        Part::of(&fields::FIELDS),
        Part::of(&fields::CALLS),
        Part::of(&ring::FIELDS),
        Part::of(&ring::TEXTS),
        Part::of(&flight::FIELDS),
        Part::of(&panic::FIELDS),
        Part::of(&panic::PARTS),
        Part::of(&tree::FIELDS),
        Part::of(&reason::FIELDS),
        Part::of(&log::FIELDS),
        Part::of(&frames::FIELDS),
        Part::of(&console::FIELDS),
        Part::of(&watchdog::FIELDS),
        Part::of(&uts::FIELDS),
    ],
);

/// Keeps the table in the image, where nothing else refers to it.
pub fn keep() {
    core::hint::black_box(&DESCRIPTION);
}
