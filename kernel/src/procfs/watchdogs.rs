//! The watchdogs' settings in `/proc/sys/kernel` (Linux, "Documentation for /proc/sys/kernel/").

use alloc::string::ToString as _;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use linux_abi::Errno;

use super::Target;
use super::system::parse;
use crate::patience;

type Text = Result<Vec<u8>, Errno>;

fn number(value: u64) -> Text {
    let mut text = value.to_string().into_bytes();
    text.push(b'\n');
    Ok(text)
}

/// 0 or 1: `EINVAL` for anything else.
fn switch(text: &[u8]) -> Result<bool, Errno> {
    match parse::<u64>(text)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Errno::EINVAL),
    }
}

pub(super) fn hung_task(_: Target) -> Text {
    number(patience::TASK.get())
}

pub(super) fn set_hung_task(_: Target, text: &[u8]) -> Result<(), Errno> {
    patience::TASK.set(parse(text)?)
}

pub(super) fn stall(_: Target) -> Text {
    number(patience::QUIET.get())
}

pub(super) fn set_stall(_: Target, text: &[u8]) -> Result<(), Errno> {
    patience::QUIET.set(parse(text)?)
}

pub(super) fn threshold(_: Target) -> Text {
    number(patience::threshold())
}

pub(super) fn set_threshold(_: Target, text: &[u8]) -> Result<(), Errno> {
    patience::set_threshold(parse(text)?)
}

pub(super) fn processors(_: Target) -> Text {
    number(u64::from(patience::PROCESSOR.get() > 0))
}

pub(super) fn set_processors(_: Target, text: &[u8]) -> Result<(), Errno> {
    patience::watch_processors(switch(text)?);
    Ok(())
}

pub(super) fn nmi(_: Target) -> Text {
    number(u64::from(patience::NMI.load(Relaxed)))
}

pub(super) fn set_nmi(_: Target, text: &[u8]) -> Result<(), Errno> {
    patience::NMI.store(switch(text)?, Relaxed);
    Ok(())
}
