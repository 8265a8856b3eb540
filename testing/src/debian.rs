//! Fetches what the tests run beside our own work: Debian's Linux, BusyBox and packages, unpacked into the cache.
//!
//! Nothing is installed: `apt-get download` fetches the package file and `dpkg-deb -x` unpacks it. What is once in the
//! cache stays, so two runs compare the same Linux. Without apt, `KWAB_LINUX` names a bzImage and `KWAB_BUSYBOX` a
//! static BusyBox.

mod apt;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::paths;
use crate::process::Call;
use crate::setup::{self, Consent, Tool};

pub use apt::Apt;

/// A package that could not be had. Whether that is a failure is the caller's to say: many machines reach no mirror, or
/// one of binary packages only.
#[derive(Debug, thiserror::Error)]
#[error("Debian's package {0} cannot be fetched here")]
pub struct NoSource(String);

impl NoSource {
    /// The error for one package.
    pub fn of(package: &str) -> Self {
        Self(package.to_owned())
    }
}

/// Debian's Linux (the cloud build: few drivers, quick to boot) as a bzImage.
pub fn linux(consent: Consent) -> Result<PathBuf> {
    if let Some(image) = env::var_os("KWAB_LINUX") {
        return existing(PathBuf::from(image), "KWAB_LINUX");
    }
    let kept = paths::cache("linux")?.join("vmlinuz");
    if kept.is_file() {
        return Ok(kept);
    }
    let package = newest_linux_package(consent)?;
    let tree = unpacked(&package, consent)?;
    let image = fs::read_dir(tree.join("boot"))
        .with_context(|| format!("{package} has no /boot"))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
        .with_context(|| format!("{package} has no vmlinuz"))?;
    paths::write(&kept, &fs::read(&image)?)?;
    paths::write(&kept.with_extension("package"), package.as_bytes())?;
    // The modules are 40 MB that nothing here loads.
    fs::remove_dir_all(&tree)?;
    Ok(kept)
}

/// Debian's static BusyBox.
pub fn busybox(consent: Consent) -> Result<PathBuf> {
    if let Some(program) = env::var_os("KWAB_BUSYBOX") {
        return existing(PathBuf::from(program), "KWAB_BUSYBOX");
    }
    busybox_in(&unpacked("busybox-static", consent)?)
}

/// Debian's static BusyBox for another architecture.
pub fn busybox_for(architecture: &str) -> Result<PathBuf> {
    let tree = paths::cache("packages")?.join(format!("busybox-static-{architecture}"));
    if !tree.is_dir() {
        unpacked_together(&[(&Apt::of(architecture)?, "busybox-static".to_owned())], &tree, |_| Ok(()))?;
    }
    busybox_in(&tree)
}

fn busybox_in(tree: &Path) -> Result<PathBuf> {
    ["bin/busybox", "usr/bin/busybox"]
        .iter()
        .map(|path| tree.join(path))
        .find(|path| path.is_file())
        .context("the package busybox-static has no busybox")
}

/// A binary package's files, unpacked into the cache.
pub fn unpacked(package: &str, consent: Consent) -> Result<PathBuf> {
    unpacked_set(package, &[package], consent, |_| Ok(()))
}

/// The files of several binary packages, unpacked into one tree of the cache on which `finish` has worked.
pub fn unpacked_set(
    name: &str,
    packages: &[&str],
    consent: Consent,
    finish: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let tree = paths::cache("packages")?.join(name);
    if tree.is_dir() {
        return Ok(tree);
    }
    need_apt(name)?;
    setup::require(&[Tool::Dpkg], consent)?;
    let apt = Apt::native();
    let packages: Vec<_> = packages.iter().map(|package| (&apt, (*package).to_owned())).collect();
    unpacked_together(&packages, &tree, finish)?;
    Ok(tree)
}

/// Unpacks several packages into one new tree, which appears whole, after `finish` has worked on it, or not at all.
pub fn unpacked_together(
    packages: &[(&Apt, String)],
    tree: &Path,
    finish: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let folder = paths::part(tree);
    let part = folder.join("tree");
    fs::create_dir_all(&part).with_context(|| format!("cannot create {}", paths::shown(&part)))?;
    let one = |(apt, package): &(&Apt, String)| {
        let fetched = folder.join(package);
        fs::create_dir_all(&fetched)?;
        let file = apt.download(package, &fetched)?;
        Call::new("dpkg-deb").arg("-x").arg(&file).arg(&part).capture()?;
        fs::remove_dir_all(&fetched).with_context(|| format!("cannot remove {}", paths::shown(&fetched)))
    };
    let each = |entry: &(&Apt, String)| one(entry).with_context(|| format!("fetching Debian's package {}", entry.1));
    let result = packages
        .iter()
        .try_for_each(each)
        .and_then(|()| finish(&part))
        .and_then(|()| fs::rename(&part, tree).with_context(|| format!("cannot keep {}", paths::shown(tree))));
    fs::remove_dir_all(&folder)?;
    result
}

/// A source package, unpacked into the cache with Debian's patches applied.
pub fn source(package: &str, consent: Consent) -> Result<PathBuf> {
    let tree = paths::cache("sources")?.join(package);
    if tree.is_dir() {
        return Ok(tree);
    }
    need_apt(package)?;
    setup::require(&[Tool::DpkgSource], consent)?;
    let folder = paths::cache("sources")?.join(format!("{package}.fetch-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = fetch_source(package, &folder, &tree);
    fs::remove_dir_all(&folder)?;
    result.map(|()| tree).context(NoSource::of(package))
}

fn fetch_source(package: &str, folder: &Path, tree: &Path) -> Result<()> {
    let settings = source_settings(folder)?;
    let apt = |arguments: &[&str]| Call::new("apt-get").arg("-qq").args(&settings).args(arguments).folder(folder);
    apt(&["update"]).stage("reading apt's lists of sources")?;
    apt(&["source", "--download-only", package]).stage(&format!("fetching the source of {package}"))?;
    let files = fs::read_dir(folder)?.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let description = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "dsc"));
    let description = description.with_context(|| format!("apt-get source {package} left no .dsc"))?;
    let part = folder.join("tree");
    Call::new("dpkg-source").args(["--no-check", "-x"]).arg(description).arg(&part).capture()?;
    fs::rename(&part, tree).with_context(|| format!("cannot keep {}", paths::shown(tree)))
}

/// Options for an apt that knows this machine's Debian archives as sources of source packages, with lists of its own:
/// most machines have no `deb-src`, and the machine's own lists are not to be changed.
fn source_settings(folder: &Path) -> Result<Vec<String>> {
    let parts = folder.join("parts");
    fs::create_dir_all(&parts)?;
    fs::create_dir_all(folder.join("lists/partial"))?;
    let files = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    for (number, file) in files.chain([PathBuf::from("/etc/apt/sources.list")]).enumerate() {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        if !text.contains("/debian") {
            continue;
        }
        let is_stanza = file.extension().is_some_and(|extension| extension == "sources");
        let kind = if is_stanza { "sources" } else { "list" };
        fs::write(parts.join(format!("{number}.{kind}")), with_sources(&text))?;
    }
    let option = |name: &str, value: String| ["-o".to_owned(), format!("{name}={value}")];
    let list = option("Dir::Etc::sourcelist", "/dev/null".into());
    let parts = option("Dir::Etc::sourceparts", parts.display().to_string());
    let state = option("Dir::State::lists", folder.join("lists").display().to_string());
    let user = option("APT::Sandbox::User", "root".into());
    Ok([list, parts, state, user].concat())
}

/// A list of archives turned from binary to source packages, in either of apt's two forms.
fn with_sources(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("Types:") {
        Some(_) => "Types: deb-src\n".to_owned(),
        None => match line.strip_prefix("deb ") {
            Some(rest) => format!("deb-src {rest}\n"),
            None => format!("{line}\n"),
        },
    };
    text.lines().map(line).collect()
}

/// The real package behind the meta package `linux-image-cloud-amd64`.
fn newest_linux_package(consent: Consent) -> Result<String> {
    const META: &str = "linux-image-cloud-amd64";
    need_apt(META)?;
    setup::require(&[Tool::Dpkg], consent)?;
    Apt::native().newest(&[META.to_owned()], "linux-image-")
}

fn need_apt(what: &str) -> Result<()> {
    if setup::find("apt-get").is_none() {
        bail!("no apt here to fetch {what} with: set KWAB_LINUX to a bzImage and KWAB_BUSYBOX to a static BusyBox");
    }
    Ok(())
}

fn existing(path: PathBuf, variable: &str) -> Result<PathBuf> {
    if path.is_file() {
        return Ok(path);
    }
    bail!("{variable} names {}, which is not a file", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_apts_lists_become_source_lists() {
        assert_eq!(with_sources("Types: deb\nURIs: x\n"), "Types: deb-src\nURIs: x\n");
        assert_eq!(with_sources("# c\ndeb [a=b] x y main\n"), "# c\ndeb-src [a=b] x y main\n");
    }
}
