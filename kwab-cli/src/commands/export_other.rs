//! `kwab export DUMP --to elf-core|minidump|perfetto|chrome-trace|folded [-o FILE] [--symbols PATH] [--force]`
//!
//! The forms that other tools read: gdb, drgn and eu-stack open the core file, lldb the minidump, Perfetto and
//! speedscope the traces, and flame graph tools the stacks. What the dump lacks for a form is an error or, where the
//! form can do without, a line on stderr.

use std::borrow::Cow;
use std::io::{self, BufWriter, Read, Seek as _, SeekFrom, Write};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use kwab::causes::{Causes, Evidence};
use kwab::export::{PerfettoTrace, chrome_trace, elf_core, folded, minidump, perfetto_trace};
use kwab::memory::Ram;
use kwab::model::{Depth, Dump};
use kwab::plain;
use kwab::units::count;

use super::analyse::{check_sources, load_images, open_dump};
use crate::analyses::SymbolOptions;
use crate::cli::{Export, Form};
use crate::failure::{DAMAGED, about, say};

/// Whether this module writes a form.
pub(super) const fn writes(form: Form) -> bool {
    matches!(form, Form::ElfCore | Form::Minidump | Form::ChromeTrace | Form::Perfetto | Form::Folded)
}

/// Runs the command.
pub(crate) fn run(arguments: &Export) -> Result<ExitCode> {
    if !arguments.section.is_empty() {
        bail!("--section applies to the forms json, jsonl and csv; the other forms choose their sections");
    }
    let mut output = super::export::destination(arguments)?;
    if matches!(arguments.to, Form::ElfCore | Form::Minidump | Form::Perfetto) {
        output = output.of_binary()?;
    }
    let options = SymbolOptions { paths: arguments.symbols.clone(), force: false, source: Vec::new() };
    check_sources(&options)?;
    let dump = open_dump(&arguments.dump, arguments.which.number, Depth::Export)?;
    // Into a file first: a form may be longer than the memory that reading a dump may take, and stdout must get nothing
    // of one that cannot be written.
    let mut form = BufWriter::new(tempfile::tempfile().context("a temporary file")?);
    let remark = convert(&dump, arguments, &options, &mut form)?;
    let mut form = form.into_inner().map_err(|error| anyhow::anyhow!("a temporary file: {}", error.error()))?;
    form.seek(SeekFrom::Start(0)).context("a temporary file")?;
    output.write(|out| match arguments.to {
        Form::ChromeTrace => copy_spelt(&mut form, out, plain::json),
        Form::Folded => copy_spelt(&mut form, out, plain::page),
        _ => io::copy(&mut form, out).map(drop),
    })?;
    if let Some(remark) = remark {
        say(&about(&arguments.dump, remark));
    }
    if dump.defects().is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let defects = count(dump.defects().len() as u64, "defect", "defects");
    say(&about(&arguments.dump, format_args!("{defects}; what is sound was exported (see kwab check)")));
    Ok(ExitCode::from(DAMAGED))
}

/// Copies text in pieces of whole characters, each as `spell` has it; what is not UTF-8 as it is.
fn copy_spelt(from: &mut impl Read, out: &mut dyn Write, spell: fn(&str) -> Cow<'_, str>) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut kept = 0;
    loop {
        let read = from.read(&mut buffer[kept..])?;
        let filled = kept + read;
        let (text, whole) = match str::from_utf8(&buffer[..filled]) {
            Ok(text) => (Some(text), filled),
            // A character that the end of the buffer cuts waits for its rest.
            Err(error) if error.error_len().is_none() && read > 0 => {
                (str::from_utf8(&buffer[..error.valid_up_to()]).ok(), error.valid_up_to())
            }
            Err(_) => (None, filled),
        };
        match text {
            Some(text) => out.write_all(spell(text).as_bytes())?,
            None => out.write_all(&buffer[..whole])?,
        }
        if read == 0 {
            return Ok(());
        }
        buffer.copy_within(whole..filled, 0);
        kept = filled - whole;
    }
}

fn convert(dump: &Dump, arguments: &Export, options: &SymbolOptions, out: &mut dyn Write) -> Result<Option<String>> {
    match arguments.to {
        Form::ElfCore => {
            let case = dump.case();
            elf_core(&case, &Ram::of(dump), &load_images(&case, options)?.symbols, out)?;
        }
        Form::Minidump => minidump(&dump.case(), out)?,
        Form::ChromeTrace => {
            let traced = chrome_trace(dump, out)?;
            if traced.spans + traced.calls + traced.instants == 0 {
                bail!("the dump holds no spans, no timed system calls and no flight events");
            }
            return Ok(left_out(traced.without_begin, traced.left_out));
        }
        Form::Perfetto => {
            let causes = Causes::of(dump);
            let traced = perfetto_trace(dump, &causes, out)?;
            if traced.runs + traced.spans + traced.calls + traced.instants == 0 {
                bail!("the dump holds no spans, no timed system calls and no events with a time");
            }
            let said = [Some(told(&traced, &causes)), left_out(traced.without_begin, traced.left_out)];
            return Ok(Some(said.into_iter().flatten().collect::<Vec<_>>().join("; ")));
        }
        Form::Folded => {
            // The form sorts the records itself: two cases of one dump would be beyond what its memory promises.
            let symbols = load_images(&dump.case(), options)?.symbols;
            if folded(dump, &symbols, out)? == 0 {
                bail!("the dump holds no function trace and no backtrace");
            }
        }
        Form::Json | Form::Jsonl | Form::Csv | Form::Parquet => bail!("this form is written elsewhere"),
    }
    Ok(None)
}

/// What a Perfetto trace holds.
fn told(traced: &PerfettoTrace, causes: &Causes) -> String {
    let counts = causes.counts();
    let of = |wanted: Evidence| {
        let rows = counts.iter().filter(|((_, evidence), _)| *evidence == wanted);
        rows.map(|(_, count)| count).sum::<u64>()
    };
    let alone: u64 = causes.unpaired.values().sum();
    let parts = [
        count(traced.runs, "turn of a thread", "turns of threads"),
        count(traced.calls, "call", "calls"),
        count(traced.spans, "span", "spans"),
        count(traced.instants, "event", "events"),
    ];
    let flows = count(traced.flows, "flow", "flows");
    let (order, across) = (of(Evidence::Order), of(Evidence::AcrossLoss));
    let alone = count(alone, "event", "events");
    format!(
        "{}; {flows}, {order} of them by order alone, {across} across lost events; {alone} without a partner",
        parts.join(", ")
    )
}

/// What a trace lacks.
fn left_out(without_begin: u64, for_memory: u64) -> Option<String> {
    let ends = (without_begin > 0)
        .then(|| format!("{} without begin left out", count(without_begin, "end of a span", "ends of spans")));
    let memory = (for_memory > 0)
        .then(|| format!("{} left out for memory (--max-mem allows more)", count(for_memory, "event", "events")));
    let parts: Vec<String> = ends.into_iter().chain(memory).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}
