//! Decides what is missing on this machine and installs it: the table of [`Tool`]s, and the way each is had.
//!
//! A command asks for the tools it needs by [`require`] and for nothing else, so a machine without QEMU can still run
//! the house rules. Packages come from apt; on a machine without apt the command says what to install. Root and `--yes`
//! are not asked for consent; otherwise the terminal is; without a terminal consent is refused.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::{env, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::process::Call;

/// A program that some command needs and that a fresh machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `qemu-system-x86_64`, the emulator.
    Qemu,
    /// The C compiler for static guest programs.
    MuslGcc,
    /// Unpacks Debian packages.
    Dpkg,
    /// Builds the third-party suites.
    Make,
    /// Unpacks the suites' sources.
    DpkgSource,
    /// The emulator of arm64 machines.
    QemuArm,
    /// The C compiler for arm64.
    Arm64Gcc,
    /// The browser that opens reports.
    Chromium,
    /// Runs the Python package.
    Python,
    /// The terminal in which screens are drawn.
    Tmux,
    /// Two shells that complete commands of `kwab`.
    Zsh,
    /// The other one.
    Fish,
}

/// One row: the tool, the program that shows it is there, the Debian packages that bring it, what it is for.
const TOOLS: &[(Tool, &str, &[&str], &str)] = &[
    (Tool::Qemu, "qemu-system-x86_64", &["qemu-system-x86"], "boots kernels"),
    (Tool::MuslGcc, "musl-gcc", &["gcc", "linux-libc-dev", "musl-tools"], "builds the guest programs"),
    (Tool::Dpkg, "dpkg-deb", &["dpkg"], "unpacks Debian's Linux and BusyBox"),
    (Tool::Make, "make", &["make"], "builds the third-party suites"),
    (Tool::DpkgSource, "dpkg-source", &["dpkg-dev", "xz-utils", "patch"], "unpacks the suites' sources"),
    (Tool::QemuArm, "qemu-system-aarch64", &["qemu-system-arm"], "boots arm64 kernels"),
    (Tool::Arm64Gcc, "aarch64-linux-gnu-gcc", &["gcc-aarch64-linux-gnu"], "builds a module for arm64"),
    (Tool::Python, "python3", &["python3", "python3-venv"], "runs the Python package"),
    (Tool::Tmux, "tmux", &["tmux"], "shows the screens of the book"),
    (Tool::Zsh, "zsh", &["zsh"], "tries completions"),
    (Tool::Fish, "fish", &["fish"], "tries completions"),
    (Tool::Chromium, "chromium", &["chromium"], "opens reports as a reader does"),
];

/// The compilation targets that the tests build for, beside the host's own.
pub const TARGETS: &[&str] = &["x86_64-unknown-none", "aarch64-unknown-none"];

/// How much the user allows.
#[derive(Clone, Copy, Debug)]
pub struct Consent {
    /// `--yes` was given.
    pub yes: bool,
}

/// The tools that any command on this machine's own architecture needs.
pub fn all() -> Vec<Tool> {
    TOOLS.iter().map(|row| row.0).filter(|tool| !matches!(tool, Tool::QemuArm | Tool::Arm64Gcc)).collect()
}

/// What is there of the tools that any command needs, for people: `7 of 7 tools`.
pub fn present() -> String {
    let wanted = all();
    let there = TOOLS.iter().filter(|row| wanted.contains(&row.0) && find(row.1).is_some()).count();
    format!("{there} of {} tools", wanted.len())
}

/// Makes sure that these tools are there; installs what is missing when allowed, or says what to install.
pub fn require(tools: &[Tool], consent: Consent) -> Result<()> {
    let missing: Vec<_> = TOOLS.iter().filter(|row| tools.contains(&row.0) && find(row.1).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().flat_map(|row| row.2.iter().copied()).collect();
    for (_, program, _, purpose) in &missing {
        eprintln!("missing: {program} ({purpose})");
    }
    let command = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if find("apt-get").is_none() {
        bail!("this is not a Debian-like system: install the equivalents of {} and run again", packages.join(", "));
    }
    if !is_root()? && find("sudo").is_none() {
        bail!("neither root nor sudo: run `{command}` as root, then run this again");
    }
    if !(is_root()? || consent.yes || asked(&format!("run `{command}`?"))?) {
        bail!("run `{command}` yourself, or give --yes, then run again");
    }
    install(&packages)
}

/// Makes sure that rustc can build for every one of [`TARGETS`]. Without rustup it says what is missing.
pub fn require_targets() -> Result<()> {
    let libraries = Call::new("rustc").args(["--print", "sysroot"]).capture()?.stdout;
    let libraries = Path::new(libraries.trim()).join("lib/rustlib");
    let missing: Vec<&str> = TARGETS.iter().copied().filter(|target| !libraries.join(target).is_dir()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if find("rustup").is_none() {
        bail!("the Rust targets {} are not installed and there is no rustup to add them", missing.join(", "));
    }
    eprintln!("adding the Rust targets {}", missing.join(", "));
    Call::new("rustup").args(["target", "add"]).args(missing).show().context("adding the Rust targets")
}

/// The full path of a program in `PATH` (or in the system folders that a user's `PATH` may leave out).
pub fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin"].map(Into::into);
    env::split_paths(&path).chain(extra).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn install(packages: &[&str]) -> Result<()> {
    let apt = |arguments: &[&str]| {
        let call = if is_root()? { Call::new("apt-get") } else { Call::new("sudo").arg("apt-get") };
        let call = call.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        // sudo may ask for a password.
        let ended = if is_root()? { call.stage(&format!("apt-get {}", arguments[1])).map(drop) } else { call.show() };
        ended.map_err(anyhow::Error::from)
    };
    eprintln!("installing {}", packages.join(" "));
    // One list of many that a mirror is about to replace fails the whole update; what is wanted can be there yet.
    if let Err(error) = apt(&["-qq", "update"]) {
        eprintln!("not all lists of packages could be renewed: {error:#}");
    }
    apt(&[&["-qq", "install", "--yes", "--no-install-recommends"], packages].concat())
        .with_context(|| format!("installing {}", packages.join(" ")))
}

/// Whether this process is root, by the owner of its own entry in `/proc`.
fn is_root() -> Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(std::fs::metadata("/proc/self").context("cannot read /proc/self")?.uid() == 0)
}

fn asked(question: &str) -> Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("{question} [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
