//! The `kwab` command: parse, call the library, render.
//!
//! [`cli`] says what can be asked, [`commands`] has one module per command whose first lines are its manual, [`render`]
//! puts reports into words and columns, [`output`] writes to the terminal or to a file that is whole or absent, and
//! [`failure`] decides the exit status: 0 clean, 1 an analysis has findings, 2 usage or I/O, 3 damaged
//! or partial, also a loss that `--strict` forbids.

mod addresses;
mod analyses;
mod catalogue;
mod cli;
mod commands;
mod examples;
mod failure;
mod fleet;
mod following;
mod health;
mod images;
mod inputs;
mod manual_pages;
mod mcp;
mod output;
mod page;
mod pager;
mod paint;
mod render;
mod serving;
mod sharing;
mod since;
mod suggested;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

fn main() -> ExitCode {
    let parsed = examples::with(cli::Arguments::command()).try_get_matches();
    let arguments = match parsed.and_then(|matches| cli::Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            // The message quotes arguments.
            output::remark(&error.render().to_string());
            return ExitCode::from(failure::FAILED);
        }
        Err(help) => {
            // Help and version have nothing to say to a closed pipe.
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    if !commands::takes_the_terminal(&arguments) {
        kwab::output::signals::prepare();
    }
    match commands::run(arguments) {
        Ok(status) => status,
        Err(error) => failure::report(&error),
    }
}
