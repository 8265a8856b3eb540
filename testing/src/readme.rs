//! Runs the commands that the README and the pages of `docs/` show and compares what they print with what is shown.
//!
//! Every fenced block marked `console` is a session: a line that starts with `$ ` is run by bash in the workspace's
//! root with our own `kwab` first in `PATH`, and the lines below it are its output. Two things may vary: figures with a
//! unit (`0.09 s`, `41.2 MB/s`) count as equal to any other figure with that unit, and a line `...` stands for any
//! number of lines. A session that cannot be run here, such as one with a guest that hangs, is marked `text`; `$ ` in a
//! block with any other mark is refused, so that no session escapes by a slip.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::paths;
use crate::process::Call;

/// One command of a page with the output shown for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its line in the page, from one.
    pub line: usize,
    /// What is typed.
    pub command: String,
    /// What is shown below it.
    pub output: Vec<String>,
}

/// The commands of all `console` blocks, in order.
pub fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_session = false;
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(mark) = line.strip_prefix("```") {
            in_session = !in_block && mark == "console";
            in_block = !in_block;
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_session) {
            steps.push(Step { line: index + 1, command: command.to_owned(), output: Vec::new() });
        } else if let Some(step) = steps.last_mut().filter(|_| in_session) {
            step.output.push(line.to_owned());
        }
    }
    steps
}

/// The line of a command in a block that is neither run nor said to be text.
fn unmarked(text: &str) -> Option<usize> {
    let mut block: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), block) {
            (Some(mark), None) => block = Some(mark),
            (Some(_), Some(_)) => block = None,
            (None, Some(mark)) if line.starts_with("$ ") && mark != "console" && mark != "text" => {
                return Some(index + 1);
            }
            _ => {}
        }
    }
    None
}

/// Runs every command of the README and of `docs/`; `binaries` is the folder with our own programs. Returns how many
/// there were.
pub fn check(binaries: &Path) -> Result<usize> {
    let mut count = 0;
    for page in pages()? {
        let text = paths::read(&paths::root().join(&page))?;
        if let Some(line) = unmarked(&text) {
            anyhow::bail!("{page}:{line}: a session in a block that is marked neither console nor text");
        }
        let steps = steps(&text);
        for step in &steps {
            check_step(&page, step, binaries)?;
        }
        count += steps.len();
    }
    Ok(count)
}

/// The pages with sessions, relative to the workspace's root: the README first, since later ones may use what it makes.
fn pages() -> Result<Vec<String>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(paths::root().join("docs")).context("docs")? {
        let name = entry?.file_name().into_string().ok().filter(|name| name.ends_with(".md"));
        pages.extend(name.map(|name| format!("docs/{name}")));
    }
    pages.sort_unstable();
    pages.insert(0, "README.md".into());
    Ok(pages)
}

fn check_step(page: &str, step: &Step, binaries: &Path) -> Result<()> {
    let printed = run(step, binaries).with_context(|| format!("{page}:{}", step.line))?;
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let shown: Vec<&str> = step.output.iter().map(|line| line.trim_end()).collect();
    if !agrees(&shown, &printed) {
        let text = format!("{page}:{}: `{}` printed\n{}", step.line, step.command, printed.join("\n"));
        anyhow::bail!("{text}\nwhere the page shows\n{}", shown.join("\n"));
    }
    Ok(())
}

/// What a command prints to the terminal, both streams in the order in which they came.
fn run(step: &Step, binaries: &Path) -> Result<String> {
    let path = std::env::join_paths(
        std::iter::once(binaries.to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let call = Call::new("bash").args(["-c", &format!("{{ {}; }} 2>&1", step.command)]).folder(paths::root());
    let call = call
        .env("CARGO_TERM_QUIET", "true")
        .env("PATH", path)
        .env("COLUMNS", "120")
        .env("NO_COLOR", "1")
        .env("XDG_DATA_HOME", paths::build("docs-data")?)
        .limit(Duration::from_secs(900));
    // A session may show a command that fails; its words are what counts.
    Ok(call.capture_any()?.stdout)
}

/// Whether what was printed fits what is shown.
fn agrees(shown: &[&str], printed: &[&str]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((&"...", rest)), _) => (0..=printed.len()).any(|skipped| agrees(rest, &printed[skipped..])),
        (Some((line, rest)), Some((other, others))) => same(line, other) && agrees(rest, others),
        _ => false,
    }
}

fn same(shown: &str, printed: &str) -> bool {
    shown == printed || masked(shown) == masked(printed)
}

/// Units whose figures depend on the machine and the moment.
const UNITS: &[&str] = &["s", "ms", "us", "µs", "ns", "B/s", "kB/s", "MB/s", "GB/s"];

/// The words of a line with every figure before a unit made equal.
fn masked(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([',', '.', ')', ';']));
    let is_figure =
        |word: &str| word.trim_start_matches('(').chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',');
    let mask = |(at, word): (usize, &&str)| match words.get(at + 1) {
        Some(next) if is_unit(next) && is_figure(word) => "#".to_owned(),
        _ => (*word).to_owned(),
    };
    words.iter().enumerate().map(mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_console_blocks_are_sessions() {
        let text = "# x\n```text\n$ no\n```\n```console\n$ echo a\na\n$ echo b\n```\n$ neither\n";
        let found = steps(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], Step { line: 6, command: "echo a".into(), output: vec!["a".into()] });
        assert_eq!(found[1].output, Vec::<String>::new());
    }

    #[test]
    fn a_session_that_is_not_run_must_say_so() {
        assert_eq!(unmarked("```text\n$ a\n```\n```console\n$ b\n```\n$ c\n"), None);
        assert_eq!(unmarked("```sh\ncargo x\n```\n```\n$ a\n```\n"), Some(5));
        assert_eq!(unmarked("```console \n$ a\n```\n"), Some(2));
    }

    #[test]
    fn a_time_may_vary_and_a_count_may_not() {
        assert!(same("3 dumps in 0.09 s", "3 dumps in 1.20 s"));
        assert!(!same("3 dumps in 0.09 s", "4 dumps in 0.09 s"));
        assert!(!same("41 events", "42 events"));
    }

    #[test]
    fn dots_on_a_line_stand_for_any_number_of_lines() {
        assert!(agrees(&["a", "...", "z"], &["a", "z"]));
        assert!(agrees(&["a", "...", "z"], &["a", "b", "c", "z"]));
        assert!(!agrees(&["a", "...", "z"], &["a", "b", "c"]));
        assert!(!agrees(&["a"], &["a", "b"]));
    }
}
