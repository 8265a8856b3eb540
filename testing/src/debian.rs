//! Fetches what the tests run beside our own work: Debian's Linux, BusyBox and packages, unpacked into the cache.
//!
//! Nothing is installed: `apt-get download` fetches the package file and `dpkg-deb -x` unpacks it. What is once in the
//! cache stays, so two runs compare the same Linux. Without apt, `KWAB_LINUX` names a bzImage and `KWAB_BUSYBOX` a static
//! BusyBox.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result, bail};

use crate::paths;
use crate::process::Call;
use crate::setup::{self, Consent, Tool};

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
    let tree = unpacked("busybox-static", consent)?;
    ["bin/busybox", "usr/bin/busybox"]
        .iter()
        .map(|path| tree.join(path))
        .find(|path| path.is_file())
        .context("the package busybox-static has no busybox")
}

/// A binary package's files, unpacked into the cache.
pub fn unpacked(package: &str, consent: Consent) -> Result<PathBuf> {
    let tree = paths::cache("packages")?.join(package);
    if tree.is_dir() {
        return Ok(tree);
    }
    need_apt(package)?;
    setup::require(&[Tool::Dpkg], consent)?;
    let folder = paths::cache("packages")?.join(format!("{package}.fetch-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let fetched = fetch(package, &folder);
    let result = fetched.and_then(|file| {
        let part = folder.join("tree");
        Call::new("dpkg-deb").arg("-x").arg(&file).arg(&part).capture()?;
        fs::rename(&part, &tree).with_context(|| format!("cannot keep {}", paths::shown(&tree)))
    });
    fs::remove_dir_all(&folder)?;
    result.map(|()| tree).with_context(|| format!("fetching Debian's package {package}"))
}

/// Downloads a package; when apt does not know where from, its lists are read again once.
fn fetch(package: &str, folder: &Path) -> Result<PathBuf> {
    eprintln!("fetching Debian's {package}");
    let download = Call::new("apt-get").args(["-qq", "download", package]).folder(folder);
    if download.capture().is_err() {
        update();
        download.capture()?;
    }
    fs::read_dir(folder)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .with_context(|| format!("apt-get download {package} left no .deb"))
}

/// Reads apt's lists again where that is allowed; a failure shows in the download that follows.
fn update() {
    let _ = Call::new("apt-get").args(["-qq", "update"]).capture_any();
}

/// The real package behind the meta package `linux-image-cloud-amd64`.
fn newest_linux_package(consent: Consent) -> Result<String> {
    const META: &str = "linux-image-cloud-amd64";
    need_apt(META)?;
    setup::require(&[Tool::Dpkg], consent)?;
    let depends = |()| Call::new("apt-cache").args(["depends", META]).capture_any();
    let name = |text: &str| {
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        names.map(str::trim).find(|name| name.starts_with("linux-image-")).map(str::to_owned)
    };
    if let Some(package) = name(&depends(())?.stdout) {
        return Ok(package);
    }
    update();
    name(&depends(())?.stdout).with_context(|| format!("apt does not know {META}"))
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
