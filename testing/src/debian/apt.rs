//! Runs apt for the packages of one architecture, without changing what the machine's own apt knows.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::paths;
use crate::process::Call;

/// Where packages of one architecture come from.
#[derive(Clone, Debug, Default)]
pub struct Apt {
    /// What apt is told before everything else.
    options: Vec<String>,
}

impl Apt {
    /// The machine's own apt.
    pub fn native() -> Self {
        Self::default()
    }

    /// Packages of `architecture`. For another than the machine's own, apt gets lists of its own in the cache: most
    /// machines know of no second architecture.
    pub fn of(architecture: &str) -> Result<Self> {
        let own = Call::new("dpkg").arg("--print-architecture").capture()?.stdout;
        if own.trim() == architecture {
            return Ok(Self::native());
        }
        let folder = paths::cache("apt")?.join(architecture);
        for part in ["lists/partial", "cache/archives/partial"] {
            let part = folder.join(part);
            fs::create_dir_all(&part).with_context(|| format!("cannot create {}", paths::shown(&part)))?;
        }
        let option = |name: &str, value: String| ["-o".to_owned(), format!("{name}={value}")];
        let options = [
            option("APT::Architecture", architecture.to_owned()),
            option("APT::Architectures::", architecture.to_owned()),
            option("Dir::State::lists", folder.join("lists").display().to_string()),
            option("Dir::State::status", "/dev/null".to_owned()),
            option("Dir::Cache", folder.join("cache").display().to_string()),
            option("Acquire::Languages", "none".to_owned()),
            option("APT::Sandbox::User", "root".to_owned()),
        ];
        Ok(Self { options: options.concat() })
    }

    fn call(&self, program: &str) -> Call {
        Call::new(program).args(&self.options)
    }

    /// Reads the lists again where that is allowed; a failure shows in what follows.
    pub(super) fn update(&self) {
        let _ = self.call("apt-get").args(["-qq", "update"]).stage("reading apt's lists");
    }

    /// Downloads a package into an empty folder; when apt does not know where from, its lists are read again once.
    pub(super) fn download(&self, package: &str, folder: &Path) -> Result<PathBuf> {
        let stage = format!("fetching Debian's {package}");
        let download = self.call("apt-get").args(["-qq", "download", package]).folder(folder);
        if download.stage(&stage).is_err() {
            self.update();
            download.stage(&stage)?;
        }
        fs::read_dir(folder)?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
            .with_context(|| format!("apt-get download {package} left no .deb"))
    }

    /// The packages that a package depends on, in its order; none when apt does not know the package.
    pub fn depends(&self, package: &str) -> Result<Vec<String>> {
        let text = self.call("apt-cache").args(["depends", package]).capture_any()?.stdout;
        let names = text.lines().filter_map(|line| line.trim_start_matches([' ', '|']).strip_prefix("Depends: "));
        Ok(names.map(|name| name.trim().to_owned()).collect())
    }

    /// The real package, whose name begins with `kind`, behind the first of these meta packages that apt knows.
    pub fn newest(&self, metas: &[String], kind: &str) -> Result<String> {
        for is_last in [false, true] {
            for meta in metas {
                if let Some(package) = self.depends(meta)?.into_iter().find(|name| name.starts_with(kind)) {
                    return Ok(package);
                }
            }
            if !is_last {
                self.update();
            }
        }
        anyhow::bail!("apt has no package {}", metas.join(", "))
    }
}
