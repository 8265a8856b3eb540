//! `cargo xtask dist [--quick]`: makes the release archive of `kwab`, unpacks it, and tries what is in it.
//!
//! The archive `build/dist/kwab-VERSION-TARGET.tar.gz` holds the program without its debug information (profile
//! `dist`), a manual page per command, completions for three shells, and the licences. The same sources give the same
//! bytes: paths of the machine are not in the program, names are sorted, times and owners are zero. With `--quick` the
//! development build is packed instead, which is how the step of `cargo xtask test` tries all but the profile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use sha2::{Digest as _, Sha256};

use crate::process::Call;
use crate::setup::{self, Consent, Tool};
use crate::{binary, paths};

/// DistArguments of `dist`.
#[derive(Debug, Default, Args)]
pub struct DistArguments {
    /// Pack the development build.
    #[arg(long)]
    pub(super) quick: bool,
}

/// The longest archive of a release.
const MOST_BYTES: u64 = 12 << 20;
/// What the archive must have beside the pages of the commands.
const FILES: &[&str] = &[
    "bin/kwab",
    "share/man/man1/kwab.1",
    "share/man/man1/kwab-triage.1",
    "share/bash-completion/completions/kwab",
    "share/zsh/site-functions/_kwab",
    "share/fish/vendor_completions.d/kwab.fish",
    "share/doc/kwab/LICENSE-MIT",
    "share/doc/kwab/LICENSE-APACHE",
    "share/doc/kwab/CHANGELOG.md",
];

/// Runs the command.
pub fn run(arguments: &DistArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Zsh, Tool::Fish], consent)?;
    let program = if arguments.quick { binary::kwab()? } else { released()? };
    let name = format!("kwab-{}-{}", env!("CARGO_PKG_VERSION"), host()?);
    let folder = paths::build("dist")?;
    let tree = folder.join(&name);
    lay_out(&program, &tree)?;
    let archive = folder.join(format!("{name}.tar.gz"));
    let level = if arguments.quick { "-1" } else { "-9" };
    let bytes = packed(&folder, &name, &archive, level)?;
    ensure!(bytes == packed(&folder, &name, &archive, level)?, "two archives of the same files differ");
    try_out(&folder, &name, &archive)?;
    let (size, length) = (bytes.len() as u64, fs::metadata(tree.join("bin/kwab"))?.len());
    ensure!(arguments.quick || size < MOST_BYTES, "the archive has {size} bytes, {MOST_BYTES} are allowed");
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{}  {:.1} MB, the program {:.1} MB", paths::shown(&archive), mega(size), mega(length));
    println!("SHA-256 {digest}");
    Ok(ExitCode::SUCCESS)
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Builds the program as it is released; no path of this machine is in it.
fn released() -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home =
        home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"))).context("no CARGO_HOME")?;
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    // Of two that match the last one counts: the checkout may lie in cargo's home, or the other way round.
    let flags = [remap(&home, "cargo"), remap(paths::root(), "kwab")].join("\x1f");
    let build = Call::cargo().args(["build", "--locked", "--profile", "dist", "--package", "kwab-cli"]);
    build
        .args(["--bin", "kwab"])
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .folder(paths::root())
        .build("building kwab for a release")?;
    let program = paths::target().join("dist/kwab");
    let root = paths::root().display().to_string();
    let found = memchr::memmem::find(&fs::read(&program)?, root.as_bytes());
    ensure!(found.is_none(), "{} contains the path {root}", paths::shown(&program));
    Ok(program)
}

/// The target that cargo builds for here.
fn host() -> Result<String> {
    let said = Call::new("rustc").arg("-vV").capture()?.stdout;
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    Ok(host.to_owned())
}

/// Puts everything where an installation has it.
fn lay_out(program: &Path, tree: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(tree);
    for folder in FILES.iter().filter_map(|file| Path::new(file).parent()) {
        fs::create_dir_all(tree.join(folder)).with_context(|| paths::shown(tree))?;
    }
    let kwab = tree.join("bin/kwab");
    fs::copy(program, &kwab).with_context(|| paths::shown(program))?;
    Call::new("strip").arg(&kwab).capture().context("strip (Debian: binutils)")?;
    Call::new(&kwab).args(["man", "-o"]).arg(tree.join("share/man/man1")).capture()?;
    for file in FILES.iter().filter(|file| file.contains("completions") || file.contains("site-functions")) {
        let shell = ["bash", "zsh", "fish"].into_iter().find(|shell| file.contains(shell)).context("a shell")?;
        let script = Call::new(&kwab).args(["completions", shell]).capture()?.stdout;
        paths::write(&tree.join(file), script.as_bytes())?;
    }
    for file in FILES.iter().filter_map(|file| file.strip_prefix("share/doc/kwab/")) {
        fs::copy(paths::root().join(file), tree.join("share/doc/kwab").join(file)).with_context(|| file.to_string())?;
    }
    Ok(())
}

/// Packs the folder `name`; gives the archive's bytes.
fn packed(folder: &Path, name: &str, archive: &Path, level: &str) -> Result<Vec<u8>> {
    let call = Call::new("tar").args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    let call = call.args(["--mode=u+rwX,go+rX,go-w", "--format=ustar", "-I"]).arg(format!("gzip -n {level}"));
    call.arg("-cf").arg(archive).arg(name).folder(folder).capture()?;
    fs::read(archive).with_context(|| paths::shown(archive))
}

/// Unpacks the archive elsewhere and uses what is in it.
fn try_out(folder: &Path, name: &str, archive: &Path) -> Result<()> {
    let tried = folder.join("tried");
    let _ = fs::remove_dir_all(&tried);
    fs::create_dir_all(&tried)?;
    Call::new("tar").arg("-xzf").arg(archive).folder(&tried).capture()?;
    let tree = tried.join(name);
    for file in FILES {
        let length = fs::metadata(tree.join(file)).with_context(|| (*file).to_owned())?.len();
        ensure!(length > 0, "{file} is empty");
    }
    let kwab = Call::new(tree.join("bin/kwab")).folder(&tried);
    let version = kwab.clone().arg("--version").capture()?.stdout;
    ensure!(version.starts_with(&format!("kwab {}", env!("CARGO_PKG_VERSION"))), "it says that it is {version}");
    let dump = paths::root().join("testing/dumps/null-dereference.kwab");
    let judged = kwab.arg("triage").arg(dump).capture_any()?;
    // Status 1 says that there is a finding.
    let found = judged.status.code() == Some(1) && judged.stdout.contains("[NULL]");
    ensure!(found, "the packed program says of a known dump: {}{}", judged.stdout, judged.stderr);
    complete(&tree)?;
    fs::remove_dir_all(&tried).context("removing what was tried")
}

/// Lines that are typed, and what each becomes when Tab is pressed behind it. bash is asked by a test of `kwab-cli`.
const TYPED: &[(&str, &str)] = &[
    ("kwab tri", "kwab triage"),
    ("kwab clean.k", "kwab clean.kwab"),
    ("kwab cat clean.k", "kwab cat clean.kwab"),
    ("kwab cat clean.kwab page-t", "kwab cat clean.kwab page-table"),
    ("kwab export clean.kwab --to minid", "kwab export clean.kwab --to minidump"),
    ("kwab audit-vm clean.kwab --rule VM-COUNT-", "kwab audit-vm clean.kwab --rule VM-COUNT-LOW"),
    ("kwab schema verify", "kwab schema verify-pages"),
    ("kwab help audi", "kwab help audit-vm"),
];

/// Asks the shells what they complete with the scripts of the archive.
fn complete(tree: &Path) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(60);
    Call::new("bash").arg("-n").arg(tree.join("share/bash-completion/completions/kwab")).capture()?;
    let (typed, dumps) = (TYPED.iter().map(|row| row.0), paths::root().join("testing/dumps"));
    let zsh = Call::new("zsh").arg("-f").arg(paths::root().join("testing/shells/complete.zsh"));
    let zsh = zsh.arg(tree.join("share/zsh/site-functions")).args(typed.clone()).folder(&dumps);
    let script = tree.join("share/fish/vendor_completions.d/kwab.fish");
    let asked =
        "source $argv[1]; for line in $argv[2..]; complete -C $line | string match -r '^[^\\t]+' | head -1; end";
    let fish = Call::new("fish").args(["--no-config", "-c", asked]).arg(script).args(typed).folder(&dumps);
    let (zsh, fish) = (zsh.limit(LIMIT).capture()?.stdout, fish.limit(LIMIT).capture()?.stdout);
    for (number, (typed, wanted)) in TYPED.iter().enumerate() {
        let line = |said: &str| said.lines().nth(number).unwrap_or_default().trim_end().to_owned();
        ensure!(line(&zsh) == *wanted, "zsh makes {:?} of {typed:?}", line(&zsh));
        // fish names the word alone.
        let word = wanted.rsplit(' ').next().unwrap_or_default();
        ensure!(line(&fish) == word, "fish offers {:?} for {typed:?}", line(&fish));
    }
    println!("zsh and fish complete {} lines each", TYPED.len());
    Ok(())
}
