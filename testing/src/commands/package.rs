//! `cargo xtask package [--verify]`: packs the crates that can be published, as `cargo publish` does, and looks into
//! the packages.
//!
//! Cargo resolves each crate against the others as if they had been uploaded, and refuses one that needs an unpublished
//! crate. That the sources of an archive are whole is seen by the files that they include; with `--verify` cargo
//! compiles each crate from its archive, against the archives of the others.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{MetadataCommand, Package};
use walkdir::WalkDir;

use crate::debian::NoSource;
use crate::paths;
use crate::process::Call;

/// Crates that must be among them.
const PUBLISHED: &[&str] = &["kernel-logic", "kwab", "kwab-cli", "kwab-format", "kwab-tui", "linux-abi"];
/// Asking the registry takes a few seconds, compiling all crates and what they need some minutes.
const LIMIT: Duration = Duration::from_secs(300);
const VERIFY_LIMIT: Duration = Duration::from_secs(1800);

/// Packs the crates, compiles the packages if asked to, and says how long each is.
pub fn run(verify: bool) -> Result<ExitCode> {
    let metadata = MetadataCommand::new().current_dir(paths::root()).no_deps().exec()?;
    let mut crates: Vec<&Package> =
        metadata.packages.iter().filter(|one| one.publish.as_ref().is_none_or(|to| !to.is_empty())).collect();
    crates.sort_by_key(|one| one.name.to_string());
    let names: Vec<String> = crates.iter().map(|one| one.name.to_string()).collect();
    ensure!(names == PUBLISHED, "crates that can be published: {names:?}, expected {PUBLISHED:?}");
    for one in &crates {
        let described = one.description.is_some() && one.license.is_some() && one.readme.is_some();
        ensure!(described, "{}: description, license or README is missing", one.name);
        ensure!((1..=5).contains(&one.keywords.len()) && !one.categories.is_empty(), "{}: keywords", one.name);
    }
    let select = names.iter().flat_map(|name| ["-p", name]);
    let pack = Call::cargo().args(["package", "--allow-dirty"]).args(select).folder(paths::root());
    if verify {
        // What fails here is a package, not the registry.
        pack.limit(VERIFY_LIMIT).stage("packing and compiling")?;
    } else {
        let pack = pack.arg("--no-verify").limit(LIMIT);
        pack.stage("packing").context(NoSource::of("the registry's index"))?;
    }
    let folder = paths::build("package")?;
    for one in &crates {
        let name = format!("{}-{}", one.name, one.version);
        let archive = paths::target().join("package").join(format!("{name}.crate"));
        let _ = fs::remove_dir_all(folder.join(&name));
        Call::new("tar").arg("-xzf").arg(&archive).folder(&folder).capture()?;
        let included = whole(&folder.join(&name)).with_context(|| name.clone())?;
        println!("{name}: {} bytes, {included} included files are there", fs::metadata(&archive)?.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks for every file that the sources of a package include; those of tests may lie outside. Gives their number.
fn whole(package: &Path) -> Result<usize> {
    for file in ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        ensure!(package.join(file).is_file(), "{file} is missing");
    }
    let mut count = 0;
    for entry in WalkDir::new(package.join("src")).into_iter().flatten() {
        let is_test = entry.path().components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
        if is_test || entry.path().extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = paths::read(entry.path())?;
        // Examples in comments and the tests at a file's end are not compiled into the library.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for start in ["include_str!(\"", "include_bytes!(\""] {
                let Some(file) = line.split(start).nth(1).and_then(|rest| rest.split('"').next()) else { continue };
                let place = entry.path().parent().unwrap_or(package).join(file);
                ensure!(place.is_file(), "{} includes {file}, which is not in the package", entry.path().display());
                count += 1;
            }
        }
    }
    Ok(count)
}
