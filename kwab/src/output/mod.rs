//! Decides what an output path names and writes there: a file that is whole or absent, a stream, or a refusal.
//!
//! Every command that writes goes through here: [`Target::of`] looks at the path before any input is read, [`Unnamed`]
//! holds the bytes in a file that has no name yet, and gives it one when it is complete. A process that dies in
//! between, by whatever signal, leaves no temporary file. [`signals`] closes the one moment in which a temporary name
//! exists.
//!
//! What `--force` may do: replace a regular file, also behind a symbolic link, whose link stays. What it may not do:
//! replace a directory, a device, a FIFO or a socket, or overwrite an input of the same command.

pub mod signals;
mod target;
mod unnamed;

pub use target::{Inputs, OutputError, Replace, Target};
pub use unnamed::Unnamed;

use std::io::{self, Write as _};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::TempDir;

/// Writes `bytes` to `path` so that the file is whole or as it was; replaces a regular file that is not among `inputs`,
/// and keeps a symbolic link. A FIFO needs a program that reads it: this does not wait for one.
///
/// # Errors
/// [`OutputError`]; nothing is left behind then.
pub fn replace(path: &Path, bytes: &[u8], inputs: &Inputs) -> Result<(), OutputError> {
    match Target::of(path, Replace::Force, inputs)? {
        Target::File(path) => {
            let mut file = Unnamed::in_folder(folder_of(&path))?;
            file.write_all(bytes)?;
            Ok(file.name(&path, Replace::Force)?)
        }
        target => Ok(target.open_read_stream()?.write_all(bytes)?),
    }
}

/// Writes a file that belongs to the program, beside a file of the user: the name is free or a regular file. A symbolic
/// link is refused: the supplier of the folder would decide which file is overwritten.
///
/// # Errors
/// [`OutputError`]; nothing is left behind then.
pub fn replace_own(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => Err(OutputError::NotOwn),
        _ => replace(path, bytes, &Inputs::default()),
    }
}

/// The directory that a path lies in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Gives a directory that was made for it its name, which nothing has.
///
/// # Errors
/// Those of the system: [`io::ErrorKind::AlreadyExists`] when something has the name.
pub fn name_folder(folder: TempDir, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, folder.path(), CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot promise it: an empty directory made meanwhile would be replaced, one with files not.
        Err(Errno::INVAL | Errno::NOSYS) => std::fs::rename(folder.path(), to)?,
        done => done?,
    }
    // What had the temporary name is the result now.
    let _ = folder.keep();
    Ok(())
}

/// Whether an error says that the reader of a pipe has gone.
#[must_use]
pub fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}
