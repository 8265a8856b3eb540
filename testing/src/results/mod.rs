//! What the judges leave for machines and for the page of results: one JSON file per judge, with the circumstances.
//!
//! A [`Kept`] is a judge's rows with their [`Circumstances`]. Only a complete run is kept under the judge's own name; a
//! filtered one lies beside it as `<name>-partial`, so that a look at one row never replaces a table. [`junit`] writes
//! the same for CI, [`page`](crate::page) turns what is kept into `testing/RESULTS.md`.

pub mod junit;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::paths;
use crate::process::Call;

/// When, with what and on what a judge ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstances {
    /// The day, `YYYY-MM-DD`, UTC.
    pub date: String,
    /// The commit of our kernel, with `+` behind it when files differed from it; empty without git.
    pub commit: String,
    /// Debian's package of the Linux that was compared with.
    pub linux: String,
    /// The version `qemu-system-x86_64 --version` prints.
    pub qemu: String,
}

impl Circumstances {
    /// Those of this moment; what cannot be found out is empty.
    pub fn now() -> Self {
        let said = |call: Call| {
            let output = call.folder(paths::root()).capture().ok()?;
            output.stdout.lines().next().map(|line| line.trim().to_owned())
        };
        let commit = said(Call::new("git").args(["rev-parse", "--short=10", "HEAD"])).unwrap_or_default();
        let changed = said(Call::new("git").args(["status", "--porcelain", "--untracked-files=no"]));
        let mark = if changed.is_some_and(|line| !line.is_empty()) { "+" } else { "" };
        let linux =
            paths::cache("linux").ok().and_then(|folder| fs::read_to_string(folder.join("vmlinuz.package")).ok());
        let qemu = said(Call::new("qemu-system-x86_64").arg("--version")).unwrap_or_default();
        let version = qemu.split_whitespace().nth(3).unwrap_or_default();
        Self {
            date: today(),
            commit: commit + mark,
            linux: linux.unwrap_or_default().trim().to_owned(),
            qemu: version.to_owned(),
        }
    }

    /// The series of Linux's releases, `6.1` of `linux-image-6.1.0-56-cloud-amd64`; empty where there is no Linux.
    pub fn linux_series(&self) -> &str {
        let version = self.linux.strip_prefix("linux-image-").unwrap_or_default();
        let end = version.match_indices('.').nth(1).map_or(0, |(at, _)| at);
        &version[..end]
    }
}

/// A judge's results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept<T> {
    /// When and with what they came about.
    pub circumstances: Circumstances,
    /// The judge's own results.
    pub results: T,
}

/// Keeps results under a name in `build/results`, with the circumstances in which the run began. `complete` is false
/// for a filtered run.
pub fn keep<T: Serialize>(name: &str, complete: bool, began: Circumstances, results: T) -> Result<()> {
    let kept = Kept { circumstances: began, results };
    paths::write(&file(&named(name, complete), "json")?, &serde_json::to_vec_pretty(&kept)?)
}

/// A judge's end: success, or an error that says each failure, so that it can be repeated where a log ends.
pub fn verdict(failures: &[String]) -> Result<ExitCode> {
    match failures {
        [] => Ok(ExitCode::SUCCESS),
        [only] => bail!("{only}"),
        several => bail!("{} failures:\n  {}", several.len(), several.join("\n  ")),
    }
}

/// Keeps the same for CI, beside the JSON.
pub fn keep_junit(name: &str, complete: bool, cases: &[junit::Case]) -> Result<()> {
    paths::write(&file(&named(name, complete), "xml")?, junit::text(name, cases)?.as_bytes())
}

/// The last complete results of this name; `None` when there are none.
pub fn kept<T: DeserializeOwned>(name: &str) -> Result<Option<Kept<T>>> {
    let file = file(name, "json")?;
    if !file.is_file() {
        return Ok(None);
    }
    serde_json::from_str(&paths::read(&file)?).map(Some).with_context(|| paths::shown(&file))
}

fn named(name: &str, complete: bool) -> String {
    if complete { name.to_owned() } else { format!("{name}-partial") }
}

fn file(name: &str, extension: &str) -> Result<PathBuf> {
    Ok(paths::build("results")?.join(format!("{name}.{extension}")))
}

/// Today's date in UTC, `YYYY-MM-DD`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day number since 1970-01-01, by counting eras of 400 years from 0000-03-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
    }

    #[test]
    fn the_series_of_linux_is_two_numbers_of_the_packages_name() {
        let of = |linux: &str| {
            let all =
                Circumstances { date: String::new(), commit: String::new(), linux: linux.into(), qemu: String::new() };
            all.linux_series().to_owned()
        };
        assert_eq!(of("linux-image-6.1.0-56-cloud-amd64"), "6.1");
        assert_eq!(of(""), "");
    }
}
