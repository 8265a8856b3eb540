//! `kwab translate DUMP ADDRESS`, `kwab search DUMP PATTERN`, `kwab whatis DUMP ADDRESS`
//!
//! Status 0: answered, also when the answer is that nothing is mapped or found; 3: something that the answer needs was
//! not captured, or is damaged; 2: it could not be asked. `--json` prints the same as values.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kwab::memory::{Ram, Space, Wanted};
use kwab::model::{Case, Depth};
use kwab::report::address::search::{Pattern, search};
use kwab::report::address::translate::translate;
use kwab::report::address::whatis::Question;

use super::analyse::{check_sources, load_images, open_dump};
use crate::addresses::{PatternForm, Search, SpaceOptions, Translate, Whatis, number};
use crate::failure::{DAMAGED, about, shown};
use crate::output;
use crate::render;

impl SpaceOptions {
    pub(super) fn find(self, case: &Case<'_>, dump: &std::path::Path) -> Result<Space> {
        let wanted = Wanted { pid: self.pid, cpu: self.cpu, cr3: self.cr3 };
        wanted.find(case).map_err(|error| about(dump, error))
    }
}

/// Partial when something was missing.
fn status(incomplete: bool) -> ExitCode {
    ExitCode::from(if incomplete { DAMAGED } else { 0 })
}

/// Runs `kwab translate`.
pub(crate) fn run_translate(arguments: &Translate) -> Result<ExitCode> {
    let dump = open_dump(&arguments.dump, arguments.which.number, Depth::Rules)?;
    let case = dump.case();
    let space = arguments.space.find(&case, &arguments.dump)?;
    let answer = translate(&case, &Ram::of(&dump), &space, arguments.address, &shown(&arguments.dump));
    output::beside(&answer)?;
    if arguments.json {
        output::json(&answer)?;
    } else {
        output::text(&render::address::translation(&answer))?;
    }
    Ok(status(answer.incomplete))
}

/// Runs `kwab search`.
pub(crate) fn run_search(arguments: &Search) -> Result<ExitCode> {
    check_sources(&arguments.symbols)?;
    let pattern = pattern(arguments)?;
    let dump = open_dump(&arguments.dump, arguments.which.number, Depth::Rules)?;
    let case = dump.case();
    let images = load_images(&case, &arguments.symbols)?;
    let (ram, name) = (Ram::of(&dump), shown(&arguments.dump));
    let report = search(&case, &ram, &images.symbols, &pattern, arguments.rows, &name);
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&render::address::hits(&report))?;
    }
    Ok(status(report.lost > 0 || !dump.defects().is_empty()))
}

fn pattern(arguments: &Search) -> Result<Pattern> {
    let given = arguments.pattern.as_str();
    let form = arguments.form.unwrap_or(if given.starts_with("0x") { PatternForm::Pointer } else { PatternForm::Text });
    let (bytes, align) = match form {
        PatternForm::Text => (given.as_bytes().to_vec(), 1),
        PatternForm::Hex => {
            (from_hex(given).with_context(|| format!("{given}: expected pairs of hexadecimal digits"))?, 1)
        }
        PatternForm::Pointer => (number(given).map_err(anyhow::Error::msg)?.to_le_bytes().to_vec(), 8),
    };
    Ok(Pattern::new(bytes, arguments.align.unwrap_or(align))?)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

/// Runs `kwab whatis`.
pub(crate) fn run_whatis(arguments: &Whatis) -> Result<ExitCode> {
    check_sources(&arguments.symbols)?;
    let dump = open_dump(&arguments.dump, arguments.which.number, Depth::Rules)?;
    let case = dump.case();
    let images = load_images(&case, &arguments.symbols)?;
    let space = arguments.space.find(&case, &arguments.dump)?;
    let ram = Ram::of(&dump);
    let question =
        Question { case: &case, ram: &ram, symbols: &images.symbols, space: &space, addr: arguments.address };
    let answer = question.answer(arguments.physical, &shown(&arguments.dump));
    output::beside(&answer)?;
    if arguments.json {
        output::json(&answer)?;
    } else {
        output::text(&render::address::facts(&answer))?;
    }
    Ok(status(!dump.defects().is_empty()))
}
