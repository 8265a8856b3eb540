//! `kwab doctor [--index FILE] [--json]`
//!
//! Looks at what kwab can use on this machine: symbols, their cache, QEMU, a browser, the terminal, an index. Each line
//! says what was found, what it is for, and the command that mends it. Nothing is changed, and no program is run.
//! Status 0: nothing is lacking; 1: something is.

use std::io::IsTerminal as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use kwab::symbols::IndexCache;
use kwab::units::count;

use super::analyse;
use crate::catalogue::{INDEX, store::Store};
use crate::cli::{Color, Doctor};
use crate::failure::{FINDINGS, shown, system};
use crate::health::{Checked, Health, SCHEMA, State};
use crate::output::{self, Style};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &Doctor, color: Color) -> Result<ExitCode> {
    let format = kwab::format::section::VERSION_MAJOR;
    let health = Health {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        format: format!("{format}.{}", kwab::format::section::VERSION_MINOR),
        checks: vec![
            symbols(),
            debug_files(),
            debuginfod(),
            cache(),
            temporary(),
            qemu(),
            browser(),
            colors(color),
            width(),
            encoding(),
            index(arguments.index.as_deref()),
        ],
    };
    output::beside(&health)?;
    if arguments.json {
        output::json(&health)?;
    } else {
        output::text(&render::doctor::page(&health, Style::of_stdout(color, false)))?;
    }
    let lacks = health.checks.iter().any(|check| check.state == State::Lacking);
    Ok(ExitCode::from(if lacks { FINDINGS } else { 0 }))
}

fn good(name: &str, purpose: &str, found: impl Into<String>) -> Checked {
    let (name, purpose) = (name.to_owned(), purpose.to_owned());
    Checked { name, state: State::Good, found: found.into(), purpose, mend: None }
}

fn lacking(name: &str, purpose: &str, found: impl Into<String>, mend: &str) -> Checked {
    Checked { state: State::Lacking, mend: Some(mend.to_owned()), ..good(name, purpose, found) }
}

fn unused(name: &str, purpose: &str, found: impl Into<String>) -> Checked {
    Checked { state: State::Unused, ..good(name, purpose, found) }
}

/// Kernels that this workspace built, or images in the user's store: both are found without a flag.
fn symbols() -> Checked {
    let (name, purpose) = ("symbols", "function names and lines in backtraces without a flag");
    match analyse::built().iter().find(|path| path.file_name().is_some_and(|name| name == "kernel")) {
        None => match kwab::symbols::Store::of_user().list().as_slice() {
            [] => lacking(name, purpose, "no kernel in target/, and no image in the store", "cargo xtask kernel"),
            kept => good(name, purpose, format!("{} in the store", count(kept.len() as u64, "image", "images"))),
        },
        Some(kernel) => good(name, purpose, shown(kernel)),
    }
}

/// Debug files of a distribution, by build-id.
fn debug_files() -> Checked {
    let (name, purpose) = ("debug files", "names and lines of a distribution's kernel and programs, by build-id");
    let folder = Path::new("/usr/lib/debug/.build-id");
    if folder.is_dir() {
        return good(name, purpose, shown(folder));
    }
    lacking(name, purpose, "no /usr/lib/debug/.build-id", "apt-get install linux-image-$(uname -r)-dbg")
}

/// The client that fetches debug files by build-id.
fn debuginfod() -> Checked {
    let (name, purpose) = ("debuginfod", "fetches debug files by build-id, without a flag");
    match (program(&["debuginfod-find"]), std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty())) {
        (None, _) => lacking(name, purpose, "no debuginfod-find", "apt-get install debuginfod"),
        (Some(_), false) => {
            lacking(name, purpose, "DEBUGINFOD_URLS is not set", "export DEBUGINFOD_URLS='URL of your server'")
        }
        (Some(path), true) => good(name, purpose, shown(&path)),
    }
}

/// Where indexes of images are kept.
fn cache() -> Checked {
    let (name, purpose) = ("cache", "keeps indexes of images, so that the second run is fast");
    let cache = IndexCache::of_user();
    let Some(folder) = cache.folder() else {
        return lacking(
            name,
            purpose,
            "neither XDG_CACHE_HOME nor HOME is set",
            "export XDG_CACHE_HOME=/var/tmp/cache",
        );
    };
    // What is not there yet is made when it is needed, below what is there.
    let there = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    if writable(there) {
        return good(name, purpose, shown(folder));
    }
    lacking(name, purpose, format!("{} cannot be written", shown(there)), "export XDG_CACHE_HOME=/var/tmp/cache")
}

fn temporary() -> Checked {
    let (name, purpose) = ("temporary files", "holds what is written to a stream until it is whole");
    let folder = std::env::temp_dir();
    if writable(&folder) {
        return good(name, purpose, shown(&folder));
    }
    lacking(name, purpose, format!("{} cannot be written", shown(&folder)), "export TMPDIR=/var/tmp")
}

fn qemu() -> Checked {
    let (name, purpose) = ("qemu", "boots kernels: cargo xtask boot, kwab follow --exec, kwab bisect");
    match program(&["qemu-system-x86_64"]) {
        Some(path) => good(name, purpose, shown(&path)),
        None => lacking(name, purpose, "no qemu-system-x86_64", "apt-get install qemu-system-x86"),
    }
}

fn browser() -> Checked {
    let (name, purpose) = ("browser", "shows the page of kwab report");
    let named = std::env::var_os("BROWSER").filter(|name| !name.is_empty()).map(PathBuf::from);
    let known = ["xdg-open", "firefox", "chromium", "chromium-browser", "google-chrome", "open"];
    match named.or_else(|| program(&known)) {
        Some(path) => good(name, purpose, shown(&path)),
        None => lacking(name, purpose, "no browser in PATH", "apt-get install chromium"),
    }
}

fn colors(color: Color) -> Checked {
    let (name, purpose) = ("colours", "marks what matters most in the terminal");
    if !std::io::stdout().is_terminal() {
        return unused(name, purpose, "stdout is not a terminal");
    }
    if Style::of_stdout(color, false).color {
        let deep = std::env::var("COLORTERM").is_ok_and(|depth| depth == "truecolor" || depth == "24bit");
        return good(name, purpose, if deep { "24 bits" } else { "16 colours" });
    }
    lacking(name, purpose, "off: NO_COLOR, TERM=dumb or --color never", "unset NO_COLOR; export TERM=xterm-256color")
}

fn width() -> Checked {
    let (name, purpose) = ("width", "tables need 80 columns, kwab tui is best with 120");
    if !std::io::stdout().is_terminal() {
        return unused(name, purpose, "stdout is not a terminal");
    }
    match crossterm::terminal::size() {
        Ok((columns, _)) if columns >= 80 => good(name, purpose, format!("{columns} columns")),
        Ok((columns, _)) => lacking(name, purpose, format!("{columns} columns"), "stty cols 120 (or a wider window)"),
        Err(error) => lacking(name, purpose, system(&error), "stty cols 120"),
    }
}

/// Lines and blocks are drawn with characters that the locale must have, and on the console its font.
fn encoding() -> Checked {
    let (name, purpose) = ("box drawing", "lines, arrows and blocks in tables and kwab tui");
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let lower = locale.to_lowercase();
    if !lower.contains("utf-8") && !lower.contains("utf8") {
        let found = if locale.is_empty() { "no locale is set".to_owned() } else { format!("the locale is {locale}") };
        return lacking(name, purpose, found, "export LC_ALL=C.UTF-8");
    }
    if set("TERM").as_deref() == Some("linux") {
        let font = "the console's font may lack some characters";
        return lacking(name, purpose, font, "setfont Lat15-Terminus16 (package console-setup)");
    }
    good(name, purpose, locale)
}

fn index(named: Option<&Path>) -> Checked {
    let (name, purpose) = ("index", "kwab list answers from it");
    let path = named.unwrap_or(Path::new(INDEX));
    match Store::open(path) {
        Ok(Some(_)) => good(name, purpose, shown(path)),
        Ok(None) if named.is_none() => unused(name, purpose, "none in this directory; kwab index DIR makes one"),
        Ok(None) => lacking(name, purpose, format!("{}: no such file", shown(path)), "kwab index DIR --index FILE"),
        Err(error) => lacking(name, purpose, error.to_string(), "kwab index DIR"),
    }
}

/// The first of these programs that PATH has.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    names.iter().flat_map(|name| std::env::split_paths(&path).map(move |folder| folder.join(name))).find(is_program)
}

/// Whether a file can be made in a directory.
fn writable(folder: &Path) -> bool {
    folder.is_dir() && kwab::output::Unnamed::in_folder(folder).is_ok()
}
