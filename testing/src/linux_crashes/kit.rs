//! Gets what a boot is made of: Debian's kernel with its headers, the module built against them, and the initramfs.
//!
//! The packages of one kernel are unpacked into one tree of the cache and used where they lie: kbuild's own programs
//! come with `linux-kbuild`, and the one absolute path in the headers' makefile is made relative. Nothing is installed
//! but a compiler and an emulator. The kernel stays the one that was fetched first, so that two runs compare the same
//! Linux.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::debian::{self, Apt, NoSource};
use crate::image::{Image, Node};
use crate::paths;
use crate::process::Call;
use crate::setup::{self, Consent, Tool};

/// A machine that Debian has a kernel for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Architecture {
    /// The 64-bit PC (x86-64).
    #[default]
    Amd64,
    /// 64-bit Arm (AArch64).
    Arm64,
}

impl Architecture {
    /// The name of Debian's port, as in package names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// What the names of its compiler and binutils begin with.
    fn cross(self) -> &'static str {
        match self {
            Self::Amd64 => "",
            Self::Arm64 => "aarch64-linux-gnu-",
        }
    }

    fn tools(self) -> &'static [Tool] {
        match self {
            Self::Amd64 => &[Tool::Qemu, Tool::MuslGcc, Tool::Make, Tool::Dpkg],
            Self::Arm64 => &[Tool::QemuArm, Tool::Arm64Gcc, Tool::Make, Tool::Dpkg],
        }
    }

    /// The packages that bring the newest kernel, the better first. KFENCE is built in from 6.12 on.
    fn kernels(self) -> [String; 2] {
        ["linux-image-6.12-cloud", "linux-image-cloud"].map(|name| format!("{name}-{}", self.name()))
    }
}

/// All that a boot needs.
#[derive(Debug)]
pub struct Kit {
    /// The machine it is for.
    pub architecture: Architecture,
    /// The kernel's release.
    pub release: String,
    /// The kernel image that QEMU loads.
    pub kernel: PathBuf,
    /// The initramfs with the module in it.
    pub initramfs: PathBuf,
    /// The module with its debugging information.
    pub module: PathBuf,
    /// The kernel's configuration.
    configuration: String,
}

impl Kit {
    /// Fetches what is missing and builds the rest.
    pub fn prepare(architecture: Architecture, consent: Consent) -> Result<Self> {
        setup::require(architecture.tools(), consent)?;
        let (release, tree) = packages(architecture)?;
        let headers = tree.join("usr/src").join(format!("linux-headers-{release}"));
        let work = paths::build("linux-crashes")?.join(architecture.name());
        let module = module(architecture, &tree, &headers, &work.join("module"))?;
        let initramfs = initramfs(architecture, &module, &work)?;
        let kernel = tree.join("boot").join(format!("vmlinuz-{release}"));
        let configuration = paths::read(&headers.join(".config"))?;
        Ok(Self { architecture, release, kernel, initramfs, module, configuration })
    }

    /// Whether the kernel is built with an option.
    pub fn has(&self, option: &str) -> bool {
        self.configuration.lines().any(|line| line == format!("{option}=y"))
    }
}

/// The kernel's release and the tree with its packages.
fn packages(architecture: Architecture) -> Result<(String, PathBuf)> {
    let cache = paths::cache("linux-crashes")?;
    let kept = cache.join(architecture.name()).with_extension("release");
    if let Ok(release) = fs::read_to_string(&kept) {
        let tree = cache.join(&release);
        return Ok((release, tree));
    }
    let (apt, native) = (Apt::of(architecture.name())?, Apt::native());
    let image = apt.newest(&architecture.kernels(), "linux-image-")?;
    let release = image.trim_start_matches("linux-image-").to_owned();
    let headers = format!("linux-headers-{release}");
    let needed = apt.depends(&headers)?;
    let of_kind = |names: &[String], kind: &str| names.iter().find(|name| name.starts_with(kind)).cloned();
    let common =
        of_kind(&needed, "linux-headers-").with_context(|| format!("{headers} depends on no other headers"))?;
    // kbuild's programs run here, whatever machine the kernel is for.
    let kbuild = of_kind(&needed, "linux-kbuild-").with_context(|| format!("{headers} depends on no kbuild"))?;
    let libelf = of_kind(&native.depends(&kbuild)?, "libelf").context("kbuild depends on no libelf")?;
    let list = [(&apt, image), (&apt, headers), (&apt, common), (&native, kbuild), (&native, libelf)];
    let tree = cache.join(&release);
    debian::unpacked_together(&list, &tree, |tree| trimmed(tree, &release))
        .context(NoSource::of(&format!("linux-headers-{release}")))?;
    paths::write(&kept, release.as_bytes())?;
    Ok((release, tree))
}

/// Makes the headers usable where they lie, and drops the modules, which nothing here loads.
fn trimmed(tree: &Path, release: &str) -> Result<()> {
    let makefile = tree.join("usr/src").join(format!("linux-headers-{release}/Makefile"));
    let text = paths::read(&makefile)?.replace("include /usr/src/", "include ../");
    paths::write(&makefile, text.as_bytes())?;
    for modules in ["lib/modules", "usr/lib/modules"].map(|path| tree.join(path)).iter().filter(|path| path.is_dir()) {
        fs::remove_dir_all(modules).with_context(|| format!("cannot remove {}", paths::shown(modules)))?;
    }
    Ok(())
}

/// The guest's sources that make the module.
const SOURCES: &[&str] = &["Kbuild", "crashme.h", "main.c", "memory.c", "checks.c", "stalls.c"];

/// Where the guest's side lies.
fn source(name: &str) -> PathBuf {
    paths::root().join("testing/linux-crashes").join(name)
}

/// Builds the module out of tree.
fn module(architecture: Architecture, tree: &Path, headers: &Path, work: &Path) -> Result<PathBuf> {
    fs::create_dir_all(work).with_context(|| format!("cannot create {}", paths::shown(work)))?;
    for name in SOURCES {
        let (text, copy) = (paths::read(&source(name))?, work.join(name));
        // kbuild goes by the time of a file.
        if fs::read_to_string(&copy).ok().as_deref() != Some(text.as_str()) {
            paths::write(&copy, text.as_bytes())?;
        }
    }
    let libraries = tree.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let variable = |name: &str, value: &str| format!("{name}={value}");
    Call::new("make")
        .args(["--silent", "-C"])
        .arg(headers)
        .arg(variable("M", &work.display().to_string()))
        .arg(variable("CC", &format!("{}gcc", architecture.cross())))
        // Type information for BPF needs pahole and vmlinux.
        .arg("CONFIG_DEBUG_INFO_BTF_MODULES=")
        .arg("modules")
        .env("LD_LIBRARY_PATH", libraries)
        .capture()
        .context("building the module (kbuild needs a compiler like the kernel's)")?;
    Ok(work.join("crashme.ko"))
}

/// BusyBox, the init, the module without its debugging information, and the program that faults.
fn initramfs(architecture: Architecture, module: &Path, work: &Path) -> Result<PathBuf> {
    let stripped = work.join("crashme.ko");
    let objcopy = format!("{}objcopy", architecture.cross());
    Call::new(objcopy).arg("--strip-debug").arg(module).arg(&stripped).capture().context("stripping the module")?;
    let fault = work.join("fault");
    Call::new(format!("{}gcc", architecture.cross()))
        .args([
            "-O1",
            "-static",
            "-nostdlib",
            "-no-pie",
            "-fno-stack-protector",
            "-fno-asynchronous-unwind-tables",
            "-o",
        ])
        .arg(&fault)
        .arg(source("fault.c"))
        .capture()
        .context("building the program that faults")?;
    let mut image = Image::default();
    image.put("/dev/console", 0o600, Node::Device(5, 1));
    image.program("/bin/busybox", &debian::busybox_for(architecture.name())?)?;
    image.program("/init", &source("init"))?;
    image.program("/bin/crash-me", &source("crash-me"))?;
    image.program("/bin/fault", &fault)?;
    image.program("/lib/crashme.ko", &stripped)?;
    let file = work.join("initramfs.cpio");
    paths::write(&file, &image.archive())?;
    Ok(file)
}
