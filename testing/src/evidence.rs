//! Keeps what a lost machine said in the form that kwab reads: a dump per crash, or a recording of a machine that hung.
//!
//! A row that says `… lost: the kernel stopped` names the `.kwab`: `kwab inspect` explains it, and the console need not
//! be read.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kwab::import::{Options, import};
use kwab::output::Replace;

use crate::paths;

/// Imports a console into dumps beside the log: `<log>.kwab`, or `<log>-1.kwab` and so on when it holds several
/// crashes. A console without a byte gives none.
pub fn record(log: &Path, serial: &[u8]) -> Result<Vec<PathBuf>> {
    if serial.is_empty() {
        return Ok(Vec::new());
    }
    let folder = log.parent().map(Path::to_owned);
    let options = Options { source: paths::shown(log), folder };
    let (_, dumps) = import(io::Cursor::new(serial), &options, &mut |_| {})
        .with_context(|| format!("importing {}", paths::shown(log)))?;
    let several = dumps.len() > 1;
    let mut files = Vec::new();
    for dump in dumps {
        let Some(file) = dump.file else { continue };
        let stem = log.file_stem().unwrap_or_default().to_string_lossy();
        let number = if several { format!("-{}", dump.summary.number) } else { String::new() };
        let path = log.with_file_name(format!("{stem}{number}.kwab"));
        file.name(&path, Replace::Force).with_context(|| format!("cannot write {}", paths::shown(&path)))?;
        files.push(path);
    }
    Ok(files)
}

/// Where to look: the dumps, or the console when it gave none.
pub fn shown(log: &Path, dumps: &[PathBuf]) -> String {
    if dumps.is_empty() {
        return format!("console in {}", paths::shown(log));
    }
    let names: Vec<String> = dumps.iter().map(|dump| paths::shown(dump)).collect();
    format!("recorded in {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kwab::model::{Depth, Dump};

    #[test]
    fn a_console_that_ends_in_a_panic_becomes_a_dump_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("contracts-ours-1.log");
        let serial = b"CONTRACT-BEGIN a/b\n[    1.0] Kernel panic - not syncing: sysrq triggered crash\nCall Trace:\n";
        let dumps = record(&log, serial).unwrap();
        assert_eq!(dumps, [folder.path().join("contracts-ours-1.kwab")]);
        let dump = Dump::open(&dumps[0], Depth::Catalogue).unwrap();
        let cause = dump.records::<kwab_format::record::Cause<'_>>().next().unwrap();
        assert!(String::from_utf8_lossy(cause.message.unwrap()).contains("sysrq triggered crash"), "{cause:?}");
    }

    #[test]
    fn a_machine_that_hung_without_a_crash_leaves_a_recording() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("x.log");
        assert_eq!(record(&log, b"CONTRACT-BEGIN a/b\nhello\n").unwrap().len(), 1);
        assert!(record(&log, b"").unwrap().is_empty());
    }
}
