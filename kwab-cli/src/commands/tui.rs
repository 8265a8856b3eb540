//! `kwab tui PATH… [--goto ADDRESS] [--symbols PATH] [--good OLD] [--backing INITRAMFS|DIR] [--no-mouse]`
//!
//! Browses crashes in the terminal. Status 0 when the user quits, 2 when a path is not there or there is no terminal.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::analyses::Tui;
use crate::cli::Color;
use crate::failure::{about, system};

/// Runs the command.
pub(crate) fn run(arguments: &Tui, color: Color) -> Result<ExitCode> {
    let goto = match &arguments.goto {
        Some(text) => match kwab::report::filter::number(text) {
            Some(address) => Some(address),
            None => bail!("expected an address such as 0x51c000, got {text}"),
        },
        None => None,
    };
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    let options = kwab_tui::Options {
        paths: arguments.dumps.clone(),
        sources: kwab_tui::load::Sources {
            symbols: arguments.symbols.paths.clone(),
            force: arguments.symbols.force,
            kept: true,
            backing: arguments.backing.clone(),
            good: arguments.good.image.clone(),
            is_asked: false,
        },
        goto,
        mouse: !arguments.no_mouse,
        colours: match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => !plain,
        },
    };
    match kwab_tui::run(options) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(kwab_tui::Error::Path { path, error }) => Err(about(&path, system(&error))),
        Err(error) => Err(error.into()),
    }
}
