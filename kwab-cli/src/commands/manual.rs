//! `kwab schema COMMAND`, `kwab completions SHELL`, `kwab man [-o DIR]`: what the program says about itself.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;
use kwab::analysis::forms::{AuditReport, TriageReport, VerifyReport};
use kwab::bisect::report::BisectReport;
use kwab::builds::BuildChanges;
use kwab::capture::CaptureReport;
use kwab::follow::FollowLine;
use kwab::import::ImportReport;
use kwab::oracle::report::OracleReport;
use kwab::pack::Manifest;
use kwab::redact::RedactReport;
use kwab::report::address::search::SearchReport;
use kwab::report::address::translate::Translation;
use kwab::report::address::whatis::WhatIs;
use kwab::report::catalogue::Catalogue;
use kwab::report::check::CheckReports;
use kwab::report::ci::CiReport;
use kwab::report::diff::{Difference, FolderDifference};
use kwab::report::inspect::Report;
use kwab::report::salvage::SalvageReport;
use kwab::typed::PrintReport;

use crate::catalogue::Changes;
use crate::cli::{Arguments, Completions, Man, Schema, SchemaOf};
use crate::failure::{about, system};
use crate::output::{self, Output};

/// Prints the schema of a command's JSON.
pub(crate) fn schema(arguments: &Schema) -> Result<ExitCode> {
    let schema = match arguments.command {
        SchemaOf::Import => schemars::schema_for!(ImportReport),
        SchemaOf::Inspect => schemars::schema_for!(Report),
        SchemaOf::Check => schemars::schema_for!(CheckReports),
        SchemaOf::Index => schemars::schema_for!(Changes),
        SchemaOf::List => schemars::schema_for!(Catalogue),
        SchemaOf::Trends => schemars::schema_for!(super::trends::Trend),
        SchemaOf::Symbols => schemars::schema_for!(super::symbols::Stored),
        SchemaOf::Prune => schemars::schema_for!(super::prune::Pruned<'_>),
        SchemaOf::Follow => schemars::schema_for!(FollowLine<'_>),
        SchemaOf::Ci => schemars::schema_for!(CiReport),
        SchemaOf::Diff => schemars::schema_for!(Difference),
        SchemaOf::DiffOfBuilds => schemars::schema_for!(BuildChanges),
        SchemaOf::DiffOfDirectories => schemars::schema_for!(FolderDifference),
        SchemaOf::Salvage => schemars::schema_for!(SalvageReport),
        SchemaOf::Redact => schemars::schema_for!(RedactReport),
        SchemaOf::Pack => schemars::schema_for!(Manifest),
        SchemaOf::Doctor => schemars::schema_for!(crate::health::Health),
        SchemaOf::Triage => schemars::schema_for!(TriageReport),
        SchemaOf::AuditVm => schemars::schema_for!(AuditReport),
        SchemaOf::VerifyPages => schemars::schema_for!(VerifyReport),
        SchemaOf::Bisect => schemars::schema_for!(BisectReport),
        SchemaOf::Oracle => schemars::schema_for!(OracleReport),
        SchemaOf::Capture => schemars::schema_for!(CaptureReport),
        SchemaOf::Translate => schemars::schema_for!(Translation),
        SchemaOf::Search => schemars::schema_for!(SearchReport),
        SchemaOf::Whatis => schemars::schema_for!(WhatIs),
        SchemaOf::Print => schemars::schema_for!(PrintReport),
        SchemaOf::Mcp => schemars::schema_for!(crate::mcp::Answer),
    };
    output::json(&schema)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a completion script.
pub(crate) fn completions(arguments: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = offered(&Arguments::command());
    match arguments.shell {
        Shell::Zsh => zsh(&command, &mut script)?,
        shell => clap_complete::generate(shell, &mut command, "kwab", &mut script),
    }
    if arguments.shell == Shell::Fish {
        fish_operands(&command, &mut script)?;
    }
    output::to_stdout(|out| out.write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The program without its hidden commands, which the scripts of `clap_complete` offer like others.
fn offered(all: &clap::Command) -> clap::Command {
    let shown = all.get_subcommands().filter(|sub| !sub.is_hide_set());
    named().args(all.get_arguments()).subcommands(shown)
}

/// The program with nothing but its version, which makes the flag for it.
fn named() -> clap::Command {
    clap::Command::new("kwab").version(env!("CARGO_PKG_VERSION"))
}

/// The script for zsh. That of `clap_complete` takes a command for the file that can stand in its place, and the word
/// behind it for the command: it is made without these files, which are offered beside the commands.
fn zsh(command: &clap::Command, script: &mut Vec<u8>) -> io::Result<()> {
    const COMMANDS: &str = "\":: :_kwab_commands\"";
    const EITHER: &str = "\
_kwab_first() {
    _alternative 'commands:command:_kwab_commands' 'files:dump or log:_files'
}

";
    let options = command.get_arguments().filter(|argument| !argument.is_positional());
    let mut bare = named().args(options).subcommands(command.get_subcommands());
    let mut made = Vec::new();
    clap_complete::generate(Shell::Zsh, &mut bare, "kwab", &mut made);
    let made = String::from_utf8_lossy(&made).replacen(COMMANDS, "\":: :_kwab_first\"", 1);
    let end = made.rfind("\nif [").map_or(made.len(), |at| at + 1);
    script.write_all([&made[..end], EITHER, &made[end..]].concat().as_bytes())
}

/// The words that operands of commands can be: the script of `clap_complete` for fish knows those of options alone, and
/// of `kwab help` none.
fn fish_operands(command: &clap::Command, script: &mut Vec<u8>) -> io::Result<()> {
    let mut put = |name: &str, words: &[String]| {
        let words = words.join(" ");
        writeln!(script, "complete -c kwab -n \"__fish_kwab_using_subcommand {name}\" -a \"{words}\"")
    };
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    put("help", &shown.map(|sub| sub.get_name().to_owned()).collect::<Vec<_>>())?;
    for sub in command.get_subcommands() {
        for operand in sub.get_positionals() {
            let values = operand.get_value_parser().possible_values();
            let words: Vec<_> = values.into_iter().flatten().map(|value| value.get_name().to_owned()).collect();
            if !words.is_empty() {
                put(sub.get_name(), &words)?;
            }
        }
    }
    Ok(())
}

/// Prints or writes the manual.
pub(crate) fn man(arguments: &Man) -> Result<ExitCode> {
    let mut command = crate::examples::with(Arguments::command());
    command.build();
    match &arguments.output {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| about(folder, system(&error)))?;
            pages(&command, "kwab", folder, arguments.force)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output::to_stdout(|out| out.write_all(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands; no page is written when one of the names is refused.
fn pages(command: &clap::Command, name: &str, folder: &Path, force: bool) -> Result<()> {
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    let mut all = vec![(command, name.to_string())];
    all.extend(subcommands.map(|sub| (sub, format!("{name}-{}", sub.get_name()))));
    let target = |name: &str| Output::of(Some(&folder.join(format!("{name}.1"))), force, []);
    let all: Vec<_> = all.into_iter().map(|(page, name)| Ok((page, target(&name)?))).collect::<Result<_>>()?;
    for (page, output) in all {
        let page = clap_mangen::Man::new(page.clone());
        output.write(|out| page.render(out))?;
    }
    Ok(())
}
