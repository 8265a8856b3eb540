//! Hands a page that is longer than the terminal to the user's pager.
//!
//! `KWAB_PAGER`, else `PAGER`, else `less -R`: words as a shell splits them, without a shell. There is no pager when
//! stdout is not a terminal, with `--no-pager`, with `cat` or an empty name, on TERM=dumb, and for a page that fits the
//! screen. Leaving the pager early is not an error: the exit status stays that of the command.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use crate::output;
use crate::paint::{columns, printable, remark, self_contained};

/// Whether `--no-pager` was given.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Prints every page at once from now on.
pub(crate) fn never() {
    NEVER.store(true, Ordering::Relaxed);
}

/// Shows a page: in the pager if it does not fit the terminal.
pub(crate) fn text(page: &str) -> Result<()> {
    let pager = words().filter(|_| !fits(page)).and_then(|words| start(&words));
    let Some(mut pager) = pager else { return output::text(page) };
    // Ctrl-C belongs to the pager, which reads the same terminal.
    let _lent = kwab::output::signals::Lent::now();
    if let Some(mut stdin) = pager.stdin.take() {
        // less ends a colour with its line. A pager that was left early does not read the rest.
        let lines = self_contained(page).join("\n") + "\n";
        let _ = stdin.write_all(printable(&lines).as_bytes());
    }
    // Its own status is not that of the command.
    let _ = pager.wait();
    Ok(())
}

/// The pager and its arguments, where there is to be one.
fn words() -> Option<Vec<String>> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if NEVER.load(Ordering::Relaxed) || is_dumb || !io::stdout().is_terminal() {
        return None;
    }
    let set = ["KWAB_PAGER", "PAGER"].into_iter().find_map(|name| std::env::var(name).ok());
    let words = shlex::split(set.as_deref().unwrap_or("less -R"))?;
    words.first().is_some_and(|first| !first.is_empty() && first != "cat").then_some(words)
}

/// Whether the page leaves a row of the terminal for the prompt.
fn fits(page: &str) -> bool {
    let Ok((width, rows)) = crossterm::terminal::size() else { return true };
    let width = usize::from(width).max(1);
    let taken = |line: &str| columns(line).div_ceil(width).max(1);
    page.lines().map(taken).sum::<usize>() < usize::from(rows)
}

/// Starts it. Without `LESS` and `LESSCHARSET`, less is told to end with a short page, to keep colours, to leave the
/// screen as it is, and that the text is UTF-8.
fn start(words: &[String]) -> Option<Child> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    for (name, value) in [("LESS", "FRX"), ("LESSCHARSET", "utf-8")] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    match command.spawn() {
        Ok(child) => Some(child),
        // A machine without less shows the page as it is.
        Err(error) if error.kind() == io::ErrorKind::NotFound && program == "less" => None,
        Err(error) => {
            remark(&format!("kwab: pager {program}: {}\n", crate::failure::system(&error)));
            None
        }
    }
}
