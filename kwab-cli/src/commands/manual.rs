//! `kwab schema COMMAND`, `kwab completions SHELL`, `kwab man [-o DIR]`: what the program says about itself.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory as _;
use kwab::analysis::forms::{AuditReport, TriageReport, VerifyReport};
use kwab::bisect::report::BisectReport;
use kwab::import::ImportReport;
use kwab::report::catalogue::Catalogue;
use kwab::report::check::CheckReports;
use kwab::report::inspect::Report;
use kwab::report::salvage::SalvageReport;

use crate::cli::{Arguments, Completions, Man, Schema, SchemaOf};
use crate::failure::{about, system};
use crate::output;

/// Prints the schema of a command's JSON.
pub(crate) fn schema(arguments: &Schema) -> Result<ExitCode> {
    let schema = match arguments.command {
        SchemaOf::Import => schemars::schema_for!(ImportReport),
        SchemaOf::Inspect => schemars::schema_for!(Report),
        SchemaOf::Check => schemars::schema_for!(CheckReports),
        SchemaOf::List => schemars::schema_for!(Catalogue),
        SchemaOf::Salvage => schemars::schema_for!(SalvageReport),
        SchemaOf::Triage => schemars::schema_for!(TriageReport),
        SchemaOf::AuditVm => schemars::schema_for!(AuditReport),
        SchemaOf::VerifyPages => schemars::schema_for!(VerifyReport),
        SchemaOf::Bisect => schemars::schema_for!(BisectReport),
    };
    output::json(&schema)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a completion script.
pub(crate) fn completions(arguments: &Completions) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "kwab", &mut script);
    output::to_stdout(|out| out.write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints or writes the manual.
pub(crate) fn man(arguments: &Man) -> Result<ExitCode> {
    let mut command = Arguments::command();
    command.build();
    match &arguments.output {
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|error| about(folder, system(&error)))?;
            clap_mangen::generate_to(command, folder).map_err(|error| about(folder, system(&error)))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output::to_stdout(|out| out.write_all(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
