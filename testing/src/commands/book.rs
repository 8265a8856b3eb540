//! `cargo xtask book [--check] [--pictures]`: makes the book of `docs/`, with a reference of every command and pictures
//! of the terminal interface.
//!
//! `build/book/src` gets the pages of `docs/`, the README, the manual of the terminal interface, `reference.md` (what
//! `kwab COMMAND --help` prints, for each command) and `pictures.md` (screens of the real program at three sizes, drawn
//! as SVG, and a recording of a session); mdBook turns them into `build/book/html`. mdBook is the one in `PATH`, or is
//! built from crates.io once (`KWAB_CACHE` keeps it). The whole is a step of `cargo xtask test`. `--check` only looks
//! whether every link of every page leads to something; `--pictures` draws again those pictures that `docs/pictures`
//! keeps, and the recording.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::process::Call;
use crate::recording::{Recording, Scene};
use crate::screens::{self, Screen};
use crate::setup::{self, Consent, Tool};
use crate::{binary, links, paths};

/// BookArguments of `book`.
#[derive(Debug, Default, Args)]
pub struct BookArguments {
    /// Only check the links of all pages.
    #[arg(long)]
    pub(super) check: bool,
    /// Only draw the pictures that the pages show.
    #[arg(long, conflicts_with = "check")]
    pub(super) pictures: bool,
}

/// The version of mdBook that is built.
const MDBOOK: &str = "0.5.4";
/// Sizes of terminals: columns and rows.
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];
/// Views: name, arguments of `kwab tui` in the workspace, keys.
const VIEWS: &[(&str, &str, &[&str])] = &[
    ("list", "testing/dumps", &["j"]),
    ("overview", "docs/first/crash.kwab", &[]),
    ("backtrace", "docs/first/crash.kwab", &["2"]),
    ("timeline", "testing/dumps/tlb-shootdown.kwab", &["5"]),
    ("memory", "testing/dumps/nx-tables.kwab", &["6", "v"]),
];

/// The recording: from a dump to the call that used freed memory.
const RECORDING: &[Scene] = &[
    Scene { keys: &["kwab docs/first/crash.kwab"], seconds: 1.5 },
    Scene { keys: &["Enter"], seconds: 6.0 },
    Scene { keys: &["C-l", "kwab inspect docs/first/crash.kwab"], seconds: 1.5 },
    Scene { keys: &["Enter"], seconds: 6.0 },
    Scene { keys: &["Space"], seconds: 3.0 },
    Scene { keys: &["q", "C-l", "kwab tui docs/first/crash.kwab"], seconds: 1.5 },
    Scene { keys: &["Enter"], seconds: 5.0 },
    Scene { keys: &["2"], seconds: 4.0 },
    Scene { keys: &["5"], seconds: 4.0 },
];
/// Columns and rows of the recording.
const RECORDED: (u16, u16) = (110, 34);

/// Runs the command.
pub fn run(arguments: &BookArguments, consent: Consent) -> Result<ExitCode> {
    if arguments.pictures {
        setup::require(&[Tool::Tmux], consent)?;
        let (program, folder) = (binary::kwab()?, paths::root().join("docs/pictures"));
        draw(&program, &folder)?;
        record(&program, &folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (pages, count) = links::check(paths::root())?;
    println!("{count} links of {pages} pages lead to something");
    if arguments.check {
        return Ok(ExitCode::SUCCESS);
    }
    setup::require(&[Tool::Tmux], consent)?;
    let program = binary::kwab()?;
    let book = paths::build("book")?;
    let source = book.join("src");
    let _ = fs::remove_dir_all(&source);
    let pages = copied(&source)?;
    paths::write(&source.join("reference.md"), reference(&program)?.as_bytes())?;
    draw(&program, &source.join("pictures"))?;
    record(&program, &source.join("pictures"))?;
    paths::write(&source.join("pictures.md"), pictures().as_bytes())?;
    paths::write(&source.join("SUMMARY.md"), summary(&pages).as_bytes())?;
    let settings = "[book]\ntitle = \"kwab\"\nlanguage = \"en\"\nsrc = \"src\"\n[build]\nbuild-dir = \"html\"\n";
    paths::write(&book.join("book.toml"), settings.as_bytes())?;
    let (pages, count) = links::check_folders(&source, &[""])?;
    println!("the book has {pages} pages; {count} links lead to something in it");
    Call::new(mdbook()?).arg("build").arg(&book).stage("making the book")?;
    println!("{}", paths::shown(&book.join("html/index.html")));
    Ok(ExitCode::SUCCESS)
}

/// Pages from elsewhere than `docs/`: where each lies, and its name in the book.
const OTHERS: &[(&str, &str)] = &[
    ("README.md", "start.md"),
    ("kwab-tui/README.md", "interface.md"),
    ("GLOSSARY.md", "glossary.md"),
    ("ARCHITECTURE.md", "architecture.md"),
    ("CONTRIBUTING.md", "contributing.md"),
    ("kernel/HARDENING.md", "hardening.md"),
    ("kwab-format/FORMAT.md", "format.md"),
    ("kwab-format/RECORDS.md", "records.md"),
];

/// Copies the pages; gives the file name and the title of each of `docs/` but the first.
fn copied(source: &Path) -> Result<Vec<(String, String)>> {
    fs::create_dir_all(source.join("pictures"))?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(paths::root().join("docs"))? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a page's name is not text")?;
        if !name.ends_with(".md") {
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), source.join(&name)).with_context(|| name.clone())?;
            }
            continue;
        }
        let text = paths::read(&entry.path())?;
        paths::write(&source.join(&name), in_the_book(&text, "docs").as_bytes())?;
        if name != "README.md" {
            let title = text.lines().next().and_then(|line| line.strip_prefix("# ")).context(name.clone())?;
            pages.push((name, title.to_owned()));
        }
    }
    for (from, to) in OTHERS {
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let text = paths::read(&paths::root().join(from))?;
        paths::write(&source.join(to), in_the_book(&text, folder).as_bytes())?;
    }
    pages.sort();
    Ok(pages)
}

/// A page of the workspace's `folder` with its links as the book has them; one to a file that the book has not is only
/// its text.
fn in_the_book(text: &str, folder: &str) -> String {
    let mut text = text.to_owned();
    let targets: Vec<String> = links::targets(&text).into_iter().map(|(_, target)| target.to_owned()).collect();
    for target in targets {
        let (file, heading) = target.split_once('#').map_or((target.as_str(), None), |(file, h)| (file, Some(h)));
        if file.is_empty() {
            continue;
        }
        let place = links::below_root(folder, file);
        let name = OTHERS.iter().find(|(from, _)| *from == place).map(|(_, to)| (*to).to_owned());
        let name = name.or_else(|| place.strip_prefix("docs/").map(str::to_owned));
        let heading = heading.map(|heading| format!("#{heading}")).unwrap_or_default();
        let new = name.map(|name| format!("]({name}{heading})")).unwrap_or_else(|| "]".to_owned());
        text = text.replace(&format!("]({target})"), &new);
    }
    text
}

/// What every command says of itself, from the program's own tree of commands.
fn reference(program: &Path) -> Result<String> {
    let help = |words: &[&str]| -> Result<String> {
        let call = Call::new(program).args(words).arg("--help").env("COLUMNS", "100").env("NO_COLOR", "1");
        Ok(call.capture()?.stdout)
    };
    let all = help(&[])?;
    let mut text = format!("# Commands\n\n```text\n{}\n```\n", all.trim_end());
    for name in commands(&all) {
        let said = help(&[name])?;
        let _ = write!(text, "\n## kwab {name}\n\n```text\n{}\n```\n", said.trim_end());
    }
    Ok(text)
}

/// The names in the part `Commands:` of a help text.
fn commands(help: &str) -> Vec<&str> {
    let rows = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.trim().is_empty());
    let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
    names.filter_map(|row| row.split_whitespace().next()).filter(|name| *name != "help").collect()
}

/// Draws every view at each of the sizes.
fn draw(program: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let home = paths::build("book/home")?;
    for (name, arguments, keys) in VIEWS {
        for size in &SIZES {
            // Nothing of the user's own settings is to be seen, nor where the picture before had ended.
            let home = home.display();
            let command = format!(
                "env -u NO_COLOR KWAB_TUI_STATE= HOME={home} XDG_CONFIG_HOME={home} XDG_STATE_HOME={home} \
                 XDG_CACHE_HOME={home} COLORTERM=truecolor {} tui {arguments}",
                program.display()
            );
            let picture = screens::draw(&Screen { command: &command, keys, size: *size }, paths::root())?;
            let file = folder.join(file_of(name, *size));
            paths::write(&file, picture.as_bytes())?;
            println!("{}", paths::shown(&file));
        }
    }
    Ok(())
}

/// Records the session as `first.cast` and `first.svg`.
fn record(program: &Path, folder: &Path) -> Result<()> {
    let home = paths::build("book/home")?;
    let (home, programs) = (home.display(), program.parent().context("a folder of programs")?.display());
    let shell = format!(
        "env -u NO_COLOR -u KWAB_PAGER -u PAGER -u LESS KWAB_TUI_STATE= HOME={home} XDG_CONFIG_HOME={home} \
         XDG_STATE_HOME={home} XDG_CACHE_HOME={home} COLORTERM=truecolor LC_ALL=C.UTF-8 PS1='$ ' \
         PATH={programs}:\"$PATH\" bash --norc --noprofile"
    );
    let recording = Recording::of(&shell, RECORDING, RECORDED, paths::root())?;
    for (file, text) in [("first.cast", recording.cast()), ("first.svg", recording.svg())] {
        let file = folder.join(file);
        paths::write(&file, text.as_bytes())?;
        println!("{}", paths::shown(&file));
    }
    Ok(())
}

fn file_of(name: &str, (columns, rows): (u16, u16)) -> String {
    format!("{name}-{columns}x{rows}.svg")
}

/// The page of pictures.
fn pictures() -> String {
    let mut text = String::from("# Screens\n\n![a session](pictures/first.svg)\n");
    for (name, arguments, _) in VIEWS {
        let _ = write!(text, "\n## {name}\n\n`kwab tui {arguments}`\n");
        for size in SIZES {
            let _ = write!(text, "\n![{name} at {}×{}](pictures/{})\n", size.0, size.1, file_of(name, size));
        }
    }
    text
}

/// The order of the book.
fn summary(pages: &[(String, String)]) -> String {
    let mut text = String::from("# kwab\n\n[All pages](README.md)\n\n- [First steps](start.md)\n");
    for (name, title) in pages {
        let _ = writeln!(text, "- [{title}]({name})");
    }
    text + "- [The terminal interface](interface.md)\n- [Screens](pictures.md)\n- [Commands](reference.md)\n\
            - [The dump format](format.md)\n- [Records](records.md)\n- [Architecture](architecture.md)\n\
            - [Hardening of the kernel](hardening.md)\n- [Contributing](contributing.md)\n- [Glossary](glossary.md)\n"
}

/// mdBook: the one in `PATH`, or one that is built in the cache.
fn mdbook() -> Result<PathBuf> {
    if let Some(program) = setup::find("mdbook") {
        return Ok(program);
    }
    let tools = paths::cache("tools")?;
    let program = tools.join("bin/mdbook");
    if !program.is_file() {
        let install = ["install", "--locked", "--no-default-features", "--features", "search", "--version", MDBOOK];
        let install = Call::cargo().args(install).arg("mdbook").arg("--root").arg(&tools);
        install.env("CARGO_TARGET_DIR", tools.join("target")).folder(&tools).stage("building mdbook")?;
        let _ = fs::remove_dir_all(tools.join("target"));
    }
    ensure!(program.is_file(), "cargo install left no mdbook in {}", paths::shown(&tools));
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_a_help_text_are_its_rows_and_no_continued_lines() {
        let rows = "  import  Make dumps\n          of logs\n  list    List\n  help    Print\n";
        let help = format!("kwab\n\nCommands:\n{rows}\nOptions:\n  -v  x\n");
        assert_eq!(commands(&help), ["import", "list"]);
    }

    #[test]
    fn links_between_pages_hold_in_the_book() {
        let page = "[a](../README.md) [b](ci.md#x) [c](../kwab-format/FORMAT.md) [d](../kwab/src/lib.rs) [e](#here)";
        let book = in_the_book(page, "docs");
        assert_eq!(book, "[a](start.md) [b](ci.md#x) [c](format.md) [d] [e](#here)");
        assert_eq!(in_the_book("[h](kernel/HARDENING.md)", ""), "[h](hardening.md)");
    }

    #[test]
    fn every_page_stands_in_the_order_of_the_book() {
        let text = summary(&[("a.md".into(), "A page".into())]);
        assert!(text.contains("- [A page](a.md)\n") && text.contains("(reference.md)"), "{text}");
    }
}
