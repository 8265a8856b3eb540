//! `cargo xtask exam [NAME...] [--repeat N] [--keep]`: plants each known bug in our kernel and asks whether the first
//! hypothesis of the triage names it.
//!
//! Each question is a fresh guest under TCG. `clean` is the run without a bug, which must give no finding. What was
//! collected lies in `build/exam`: `NAME.kwab` with its console beside it; of three boots each, `cargo xtask results`
//! makes the tables. Without `--repeat` a question that was answered wrongly is asked once more, for the sake of busy
//! machines, and said to be a flake when it is right then. `--keep` stores the dumps under `testing/dumps`, where
//! golden transcripts are made of them.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;

use crate::exam::row::ExamRow;
use crate::exam::{self, QUESTIONS, Question, Room};
use crate::kernel::Which;
use crate::results::{self, Circumstances};
use crate::setup::{self, Consent, Tool};
use crate::{guest, image, paths};

/// ExamArguments of `exam`.
#[derive(Debug, Args)]
pub struct ExamArguments {
    /// Names of bugs, or `clean`; without any, all.
    names: Vec<String>,
    /// How often each is asked; what is not always right is a flake.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Keep the last dump of each under `testing/dumps`.
    #[arg(long)]
    keep: bool,
}

impl ExamArguments {
    /// Every question once.
    pub const fn once() -> Self {
        Self { names: Vec::new(), repeat: 1, keep: false }
    }
}

/// Runs the command.
pub fn run(arguments: &ExamArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let began = Circumstances::now();
    let wanted =
        |question: &&Question| arguments.names.is_empty() || arguments.names.iter().any(|name| name == question.name());
    let chosen: Vec<&Question> = QUESTIONS.iter().filter(wanted).collect();
    ensure!(!chosen.is_empty(), "no planted bug of that name");
    let mut rows = Vec::new();
    for question in &chosen {
        rows.push(ask(question, arguments, &room(question, consent)?)?);
    }
    let right = rows.iter().filter(|row| row.right == row.asked).count();
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    println!("{right} of {} right, {:.0} s", rows.len(), seconds);
    let complete = arguments.names.is_empty() && arguments.repeat >= TABLE;
    results::keep_junit("exam", complete, &rows.iter().map(ExamRow::case).collect::<Vec<_>>())?;
    let wrong = rows.iter().filter(|row| row.right == 0 || (arguments.repeat > 1 && row.right < row.asked));
    let failures: Vec<String> = wrong.filter_map(|row| row.case().failure()).collect();
    results::keep("exam", complete, began, rows)?;
    results::verdict(&failures)
}

/// Boots of each question that the tables of results are made of.
const TABLE: u32 = 3;

/// Asks a question as often as wanted.
fn ask(question: &Question, arguments: &ExamArguments, room: &Room) -> Result<ExamRow> {
    let mut row = ExamRow::of(question);
    let again = |row: &ExamRow| arguments.repeat == 1 && row.asked == 1 && row.right == 0;
    while row.asked < arguments.repeat || again(&row) {
        let since = Instant::now();
        let (answer, serial) = exam::sit(question, room)?;
        row.seconds += since.elapsed().as_secs_f64();
        row.asked += 1;
        let stem = room.folder.join(question.name());
        paths::write(&stem.with_extension("log"), &serial)?;
        let Some(answer) = answer else {
            row.first = "no dump".to_owned();
            println!("WRONG  {:<18} no dump; the console is in {}.log", question.name(), paths::shown(&stem));
            continue;
        };
        paths::write(&stem.with_extension("kwab"), &answer.dump)?;
        if arguments.keep {
            let kept = paths::root().join("testing/dumps").join(question.name()).with_extension("kwab");
            paths::write(&kept, &answer.dump)?;
        }
        let is_right = question.is_answered(&answer.triage);
        if !is_right {
            // The next run writes over the other.
            paths::write(&room.folder.join(format!("{}-wrong.kwab", question.name())), &answer.dump)?;
        }
        row.note(is_right, answer.triage.hypotheses.first());
        let word = if is_right { "right" } else { "WRONG" };
        println!("{word}  {:<18} {}  ({} KiB)", question.name(), row.first, answer.dump.len() >> 10);
    }
    if row.right > 0 && row.right < row.asked {
        println!("flake  {:<18} right {} times of {}", question.name(), row.right, row.asked);
    }
    Ok(row)
}

/// The guest: our kernel, BusyBox, and the exam's programs for this question.
pub(super) fn room(question: &Question, consent: Consent) -> Result<Room> {
    let mut tree = image::base(consent)?;
    tree.program("/bin/exam", &guest::program("exam", consent)?)?;
    let words: Vec<String> = ["/bin/exam"].iter().chain(question.programs).map(|word| (*word).to_owned()).collect();
    crate::boot::put_command(&mut tree, &words);
    let folder = paths::build("exam")?;
    let initrd = folder.join(format!("{}.cpio", question.name()));
    paths::write(&initrd, &tree.archive())?;
    Ok(Room { kernel: Which::Ours.image(consent)?, initrd, options: Which::Ours.options().to_owned(), folder })
}
