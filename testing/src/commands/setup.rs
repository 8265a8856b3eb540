//! `cargo xtask setup`: installs everything that any command needs, and fetches Debian's Linux and BusyBox.
//!
//! Other commands do the part they need by themselves; this one is for doing it all at once, before a train ride.

use std::process::ExitCode;

use anyhow::Result;

use crate::setup::{self, Consent};
use crate::{debian, guest, paths};

/// Runs the command.
pub fn run(consent: Consent) -> Result<ExitCode> {
    setup::require(&setup::all(), consent)?;
    setup::require_targets()?;
    println!("Linux    {}", paths::shown(&debian::linux(consent)?));
    println!("BusyBox  {}", paths::shown(&debian::busybox(consent)?));
    println!("guest    {}", paths::shown(&guest::program("oneshot", consent)?));
    Ok(ExitCode::SUCCESS)
}
