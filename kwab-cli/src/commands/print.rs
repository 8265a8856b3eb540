//! `kwab print DUMP [EXPRESSION] [--frame N] [--task TID]`
//!
//! Shows statics, and arguments and locals of a frame, by the types in the image's debug information. Status 0: shown;
//! 3: some of it was not captured, or the dump is damaged; 2: there is nothing of that name or shape. What the compiler
//! did not keep is said, and is not the dump's fault.

use std::process::ExitCode;

use anyhow::Result;
use kwab::memory::{Ram, Reader};
use kwab::model::Depth;
use kwab::typed::{Expression, FrameChoice, Limits, Subject, print};

use super::analyse::{check_sources, load_images, open_dump};
use crate::addresses::Print;
use crate::failure::{DAMAGED, about, shown};
use crate::output;
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &Print) -> Result<ExitCode> {
    check_sources(&arguments.symbols)?;
    let expression = arguments.expression.as_deref().map(|text| Ok((text, Expression::parse(text)?))).transpose();
    let expression = expression.map_err(|error: kwab::typed::ExpressionError| anyhow::anyhow!("{error}"))?;
    let dump = open_dump(&arguments.dump, arguments.which.number, Depth::Rules)?;
    let case = dump.case();
    let images = load_images(&case, &arguments.symbols)?;
    let space = arguments.space.find(&case, &arguments.dump)?;
    let ram = Ram::of(&dump);
    let subject = Subject { case: &case, symbols: &images.symbols, reader: Reader::new(&case, &ram), space: &space };
    let choice = FrameChoice { number: arguments.frame, task: arguments.task, cpu: arguments.space.cpu };
    let limits = Limits { depth: arguments.depth.into(), elements: arguments.rows.into() };
    let asked = expression.as_ref().map(|(text, expression)| (*text, expression));
    let report = print(subject, asked, choice, limits, &shown(&arguments.dump))
        .map_err(|error| about(&arguments.dump, error))?;
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&render::print::values(&report))?;
    }
    let partial = report.incomplete || !dump.defects().is_empty();
    Ok(ExitCode::from(if partial { DAMAGED } else { 0 }))
}
