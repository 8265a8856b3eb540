//! What pack and open print.

use std::fmt::Write as _;
use std::path::Path;

use kwab::pack::{DUMP, Manifest, PackRole, PackedFile};
use kwab::plain;
use kwab::report::command;

use super::{bytes, count};

/// Where the command of QEMU is in a pack.
pub(crate) const QEMU_COMMAND: &str = "notes/qemu-command.txt";

/// What was packed.
pub(crate) fn packed(manifest: &Manifest, name: &str) -> String {
    let policy = manifest.redacted.as_deref().map(|policy| format!(", redacted: {policy}")).unwrap_or_default();
    let files = count(manifest.files.len() as u64, "file", "files");
    let kernel = match manifest.kernel.as_str() {
        "" => String::new(),
        kernel => format!(", {}", plain::line(kernel)),
    };
    let mut out = format!("{}: {files}{kernel}{policy}\n", plain::line(name));
    list(&mut out, manifest);
    // A reader of `redacted` above would take it for all of the archive.
    let as_given =
        |file: &&PackedFile| matches!(file.role, PackRole::Input | PackRole::Image) || file.path == QEMU_COMMAND;
    let given: Vec<&str> = manifest.files.iter().filter(as_given).map(|file| file.path.as_str()).collect();
    if manifest.redacted.is_some() && !given.is_empty() {
        let _ = writeln!(out, "  not redacted, as given: {}", plain::line(&given.join(", ")));
    }
    for id in &manifest.missing {
        let _ = writeln!(out, "  not found: the image with build-id {} (--symbols PATH)", plain::line(id));
    }
    out
}

/// What was restored, and where to begin.
pub(crate) fn restored(manifest: &Manifest, to: &Path) -> String {
    let folder = to.display().to_string();
    let files = count(manifest.files.len() as u64, "file", "files");
    let mut out = format!("{}: {files}, all digests are right\n", plain::line(&folder));
    list(&mut out, manifest);
    let named = command::arguments(&to.join(DUMP), 1);
    let _ = writeln!(out, "next: kwab {}", plain::line(&named));
    out
}

fn list(out: &mut String, manifest: &Manifest) {
    for file in &manifest.files {
        let _ = writeln!(out, "  {:<10} {}", bytes(file.bytes), plain::line(&file.path));
    }
}
