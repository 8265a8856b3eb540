//! Builds guest programs: static C programs with musl, so that the same bytes run under every kernel.
//!
//! A program is either one file `testing/guest/<name>.c` or all C files of the folder `testing/guest/<name>/`. It is
//! built again when a source or a header is newer than the result.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};

use crate::process::Call;
use crate::setup::{self, Consent, Tool};
use crate::{kept, paths};

/// How a guest program is linked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// At a fixed address, with no loader.
    #[default]
    Static,
    /// The same, with segments that pages of 2 MiB can show.
    StaticHuge,
    /// Position-independent, with no loader.
    StaticPie,
    /// Position-independent, by musl's loader, which must be in the image.
    Dynamic,
}

/// Where musl's loader lies, on the host and in the guest.
pub const LOADER: &str = "/lib/ld-musl-x86_64.so.1";

/// The compiler's options for every guest program; kernel headers are found behind musl's own.
const OPTIONS: &[&str] = &[
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fno-asynchronous-unwind-tables",
    "-ffile-prefix-map=/=/",
    "-Wl,--build-id=sha1",
    "-idirafter",
    "/usr/include",
    "-idirafter",
    "/usr/include/x86_64-linux-gnu",
];

/// One of our own guest programs, built when needed.
pub fn program(name: &str, consent: Consent) -> Result<PathBuf> {
    linked(name, Link::Static, consent)
}

/// The same, linked as `link` says.
pub fn linked(name: &str, link: Link, consent: Consent) -> Result<PathBuf> {
    let guest = paths::root().join("testing/guest");
    let folder = guest.join(name);
    let mut sources = if folder.is_dir() { c_files(&folder)? } else { vec![guest.join(format!("{name}.c"))] };
    sources.sort();
    let result = paths::build("guest")?.join(name);
    compile(&sources, &[&guest, &folder], "-O2", link, &result, consent)?;
    Ok(result)
}

/// Compiles C files into one program, unless the result is newer than all of them and than the headers in `includes`.
pub fn compile(
    sources: &[PathBuf],
    includes: &[&Path],
    level: &str,
    link: Link,
    result: &Path,
    consent: Consent,
) -> Result<()> {
    if is_fresh(result, sources, includes) {
        return Ok(());
    }
    setup::require(&[Tool::MuslGcc], consent)?;
    let part = paths::part(result);
    let mut call = Call::new("musl-gcc").arg(level).args(OPTIONS);
    for folder in includes.iter().filter(|folder| folder.is_dir()) {
        call = call.arg("-I").arg(folder);
    }
    call = match link {
        Link::Static => call.arg("-static").args(sources),
        Link::StaticHuge => call.args(["-static", "-Wl,-z,max-page-size=0x200000"]).args(sources),
        Link::Dynamic => call.args(["-fPIE", "-pie"]).args(sources),
        // musl-gcc knows no -static-pie: its own start file is named, and the loader's name left out.
        Link::StaticPie => {
            let library = musl_library_folder()?;
            call.args(["-fPIE", "-static", "-nostartfiles", "-Wl,-pie,--no-dynamic-linker,-z,text"])
                .args([library.join("rcrt1.o"), library.join("crti.o")])
                .args(sources)
                .arg(library.join("crtn.o"))
        }
    };
    call.arg("-o").arg(&part).capture().context("building a guest program")?;
    fs::rename(&part, result).with_context(|| format!("cannot keep {}", paths::shown(result)))?;
    kept::keep(result);
    Ok(())
}

/// The folder with musl's start files, named by the loader's link.
fn musl_library_folder() -> Result<PathBuf> {
    let library = fs::canonicalize(LOADER).context("musl's loader is missing")?;
    let name = library.parent().and_then(Path::file_name).context("musl's loader has no folder")?;
    Ok(Path::new("/usr/lib").join(name))
}

fn is_fresh(result: &Path, sources: &[PathBuf], includes: &[&Path]) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let Some(built) = time(result) else { return false };
    let headers = includes.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let headers = headers.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "h"));
    let newest: Option<SystemTime> = sources.iter().cloned().chain(headers).filter_map(|path| time(&path)).max();
    newest.is_some_and(|newest| newest < built)
}

/// The C files directly in a folder.
pub fn c_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", paths::shown(folder)))?;
    let files = entries.flatten().map(|entry| entry.path());
    Ok(files.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect())
}
