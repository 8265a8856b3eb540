//! `kwab export DUMP --to elf-core|chrome-trace|folded [-o FILE] [--symbols PATH] [--force]`
//!
//! The forms that other tools read: gdb, drgn and eu-stack open the core file, Perfetto and speedscope the trace, flame
//! graph tools the stacks. What the dump lacks for a form is an error or, where the form can do without, a line on stderr.

use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::analysis::Dump;
use kwab::export::{chrome_trace, elf_core, folded};
use kwab::plain;

use super::analyse::{check_places, load_images, open_dump};
use crate::analyses::SymbolOptions;
use crate::cli::{Export, Form};
use crate::failure::{DAMAGED, about, say};

/// Runs the command.
pub(crate) fn run(arguments: &Export) -> Result<ExitCode> {
    if !arguments.section.is_empty() {
        bail!("--section goes with json, jsonl and csv; this form takes what it needs");
    }
    let mut output = super::export::destination(arguments)?;
    if arguments.to == Form::ElfCore {
        output = output.of_binary()?;
    }
    let options = SymbolOptions { paths: arguments.symbols.clone(), force: false, source: Vec::new() };
    check_places(&options)?;
    let dump = open_dump(&arguments.dump)?;
    let mut form = Vec::new();
    let remark = convert(&dump, arguments, &options, &mut form)?;
    output.write(|out| match (arguments.to, str::from_utf8(&form)) {
        (Form::ChromeTrace, Ok(text)) => out.write_all(plain::json(text).as_bytes()),
        (Form::Folded, Ok(text)) => out.write_all(plain::page(text).as_bytes()),
        _ => out.write_all(&form),
    })?;
    if let Some(remark) = remark {
        say(&about(&arguments.dump, remark));
    }
    if dump.defects().is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let defects = dump.defects().len();
    say(&about(&arguments.dump, format_args!("{defects} defects; what is sound was exported (see kwab check)")));
    Ok(ExitCode::from(DAMAGED))
}

fn convert(dump: &Dump, arguments: &Export, options: &SymbolOptions, out: &mut Vec<u8>) -> Result<Option<String>> {
    match arguments.to {
        Form::ElfCore => {
            let case = dump.case();
            elf_core(&case, &load_images(&case, options)?.symbols, out)?;
        }
        Form::ChromeTrace => {
            let traced = chrome_trace(dump, out)?;
            if traced.spans + traced.calls + traced.instants == 0 {
                bail!("the dump holds no spans, no timed system calls and no flight events");
            }
            if traced.without_begin > 0 {
                return Ok(Some(format!("{} ends of spans have no begin and are left out", traced.without_begin)));
            }
        }
        Form::Folded => {
            let case = dump.case();
            let images = load_images(&case, options)?;
            if folded(dump, &images.symbols, out)? == 0 {
                bail!("the dump holds no function trace and no backtrace");
            }
        }
        Form::Json | Form::Jsonl | Form::Csv => bail!("this form is written elsewhere"),
    }
    Ok(None)
}
