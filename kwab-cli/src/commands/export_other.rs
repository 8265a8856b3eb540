//! `kwab export DUMP --to elf-core|chrome-trace|folded [-o FILE] [--symbols PATH] [--force]`
//!
//! The forms that other tools read: gdb, drgn and eu-stack open the core file, Perfetto and speedscope the trace, flame
//! graph tools the stacks. What the dump lacks for a form is an error or, where the form can do without, a line on stderr.

use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use kwab::analysis::{Dump, Needs};
use kwab::export::{chrome_trace, elf_core, folded};

use super::analyse::{load_images, open_dump};
use crate::analyses::SymbolOptions;
use crate::cli::{Export, Form};
use crate::failure::{DAMAGED, shown};
use crate::output;

/// Runs the command.
pub(crate) fn run(arguments: &Export) -> Result<ExitCode> {
    if !arguments.section.is_empty() {
        bail!("--section goes with json, jsonl and csv; this form takes what it needs");
    }
    let dump = open_dump(&arguments.dump, arguments.which.number, Needs::Everything)?;
    // Into a file first: a form may be longer than the memory that reading a dump may take, and stdout must get nothing of
    // one that cannot be written.
    let mut form = BufWriter::new(tempfile::tempfile().context("a temporary file")?);
    let remark = convert(&dump, arguments, &mut form)?;
    let mut form = form.into_inner().map_err(|error| anyhow::anyhow!("a temporary file: {}", error.error()))?;
    form.seek(SeekFrom::Start(0)).context("a temporary file")?;
    match &arguments.output {
        Some(path) => output::to_file(path, arguments.force, |out| io::copy(&mut form, out).map(drop))?,
        None => output::to_stdout(|out| io::copy(&mut form, out).map(drop))?,
    }
    let name = shown(&arguments.dump);
    // Nothing can be done about a closed stderr.
    if let Some(remark) = remark {
        let _ = writeln!(io::stderr(), "kwab: {name}: {remark}");
    }
    if dump.defects().is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let _ = writeln!(
        io::stderr(),
        "kwab: {name}: {} defects; what is sound was exported (see kwab check)",
        dump.defects().len()
    );
    Ok(ExitCode::from(DAMAGED))
}

fn convert(dump: &Dump, arguments: &Export, out: &mut dyn Write) -> Result<Option<String>> {
    let options = SymbolOptions { paths: arguments.symbols.clone(), force: false, source: Vec::new() };
    match arguments.to {
        Form::ElfCore => {
            let case = dump.case();
            elf_core(&case, &load_images(&case, &options).symbols, out)?;
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
            let images = load_images(&case, &options);
            if folded(dump, &images.symbols, out)? == 0 {
                bail!("the dump holds no function trace and no backtrace");
            }
        }
        Form::Json | Form::Jsonl | Form::Csv => bail!("this form is written elsewhere"),
    }
    Ok(None)
}
