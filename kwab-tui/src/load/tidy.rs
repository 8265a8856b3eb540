//! Deletes dumps of the list, or moves them away: only regular files below a directory that was opened, and only as
//! they were when they were listed.
//!
//! An archived dump lies in the folder `archive` of its directory under its name and `.archived`: no list shows it and
//! every command that is given its name reads it. Marks go with their dump.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Found, Message};
use crate::marks::Marks;
use crate::text::{bytes, count};

/// What is done to dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tidy {
    /// They are removed.
    Delete,
    /// They are moved into the archive.
    Archive,
}

/// The folder of archived dumps, in the directory that was opened.
pub(super) const FOLDER: &str = "archive";
/// The end of an archived dump's name.
const END: &str = "archived";

/// Deletes or archives files that were listed below `roots`; none of `inputs`.
pub(super) fn tidy(how: Tidy, files: &[Found], roots: &[PathBuf], inputs: &[PathBuf], send: &mut dyn FnMut(Message)) {
    let inputs: Vec<PathBuf> = inputs.iter().filter_map(|input| input.canonicalize().ok()).collect();
    let (mut done, mut size, mut failed) = (0, 0, Vec::new());
    for file in files {
        let kept = root_of(file, roots, &inputs).and_then(|(path, root)| match how {
            Tidy::Delete => delete(&path).map_err(|error| error.to_string()),
            Tidy::Archive => archive(&path, &root).map_err(|error| error.to_string()),
        });
        match kept {
            Ok(()) => (done, size) = (done + 1, size + file.len),
            Err(why) => failed.push(format!("{}: {why}", file.path.display())),
        }
    }
    let word = if how == Tidy::Delete { "deleted" } else { "archived" };
    let mut text = format!("{word} {}, {}", count(done, "dump", "dumps"), bytes(size));
    if let Some(first) = failed.first() {
        text = format!("{text}; {} kept: {first}", failed.len());
    }
    send(Message::Tidied { text, all: failed.is_empty() });
}

/// The path of a file without links, and the directory that it lies below.
fn root_of(file: &Found, roots: &[PathBuf], inputs: &[PathBuf]) -> Result<(PathBuf, PathBuf), String> {
    let meta = fs::symlink_metadata(&file.path).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("not a regular file".to_string());
    }
    if meta.len() != file.len || meta.modified().ok() != file.modified {
        return Err("it has changed since it was listed".to_string());
    }
    let path = file.path.canonicalize().map_err(|error| error.to_string())?;
    if inputs.contains(&path) {
        return Err("it was named as an input".to_string());
    }
    if path.extension().is_none_or(|end| end != "kwab") {
        return Err("its name does not end in .kwab".to_string());
    }
    let mut roots = roots.iter().filter(|root| root.is_dir()).filter_map(|root| root.canonicalize().ok());
    let root = roots.find(|root| path.starts_with(root));
    let root = root.ok_or_else(|| "it does not lie in an opened directory".to_string())?;
    Ok((path, root))
}

fn delete(path: &Path) -> std::io::Result<()> {
    fs::remove_file(path)?;
    // Marks that are not there, or cannot be removed, are of no dump then.
    drop(own_marks(path).map(fs::remove_file));
    Ok(())
}

/// The marks beside a dump, if they are a regular file.
fn own_marks(path: &Path) -> Option<PathBuf> {
    let marks = Marks::path(path);
    fs::symlink_metadata(&marks).ok().filter(fs::Metadata::is_file).map(|_| marks)
}

fn archive(path: &Path, root: &Path) -> std::io::Result<()> {
    let folder = root.join(FOLDER);
    match fs::create_dir(&folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // A link in its place would lead elsewhere.
    if !fs::symlink_metadata(&folder)?.is_dir() {
        return Err(Error::new(ErrorKind::NotADirectory, format!("{FOLDER} is not a directory")));
    }
    let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1..1000 {
        let name = if number == 1 { format!("{stem}.{END}") } else { format!("{stem}.{number}.{END}") };
        let to = folder.join(name);
        match move_to(path, &to) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            moved => moved?,
        }
        // The dump has been archived whatever becomes of its marks.
        drop(own_marks(path).map(|marks| move_to(&marks, &Marks::path(&to))));
        return Ok(());
    }
    Err(Error::new(ErrorKind::AlreadyExists, "the archive has too many dumps of this name"))
}

/// Gives a file another name that nothing has.
fn move_to(from: &Path, to: &Path) -> std::io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // A file system without links cannot promise that the name is free.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(Error::from(ErrorKind::AlreadyExists)),
        Err(_) => fs::rename(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &Path) -> Found {
        let meta = fs::metadata(path).unwrap();
        Found { path: path.to_path_buf(), len: meta.len(), modified: meta.modified().ok() }
    }

    fn said(how: Tidy, file: &Found, root: &Path, inputs: &[PathBuf]) -> String {
        let mut said = String::new();
        tidy(how, std::slice::from_ref(file), &[root.to_path_buf()], inputs, &mut |message| {
            if let Message::Tidied { text, .. } = message {
                said = text;
            }
        });
        said
    }

    #[test]
    fn only_a_listed_regular_dump_in_the_opened_directory_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("crashes"), folder.path().join("out"));
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        let (own, other) = (root.join("sub/a.kwab"), outside.join("b.kwab"));
        fs::write(&own, "dump").unwrap();
        fs::write(&other, "other").unwrap();
        let kept = |file: &Found, inputs: &[PathBuf], why: &str| {
            let text = said(Tidy::Delete, file, &root, inputs);
            assert!(text.starts_with("deleted 0 dumps") && text.contains(why), "{text}");
        };
        kept(&found(&other), &[], "not lie in an opened directory");
        std::os::unix::fs::symlink(&other, root.join("link.kwab")).unwrap();
        kept(&found(&root.join("link.kwab")), &[], "not a regular file");
        std::os::unix::fs::symlink(&outside, root.join("way")).unwrap();
        kept(&found(&root.join("way/b.kwab")), &[], "not lie in an opened directory");
        kept(&found(&root.join("sub/../../out/b.kwab")), &[], "not lie in an opened directory");
        fs::write(root.join("serial.log"), "log").unwrap();
        kept(&found(&root.join("serial.log")), &[], "does not end in .kwab");
        kept(&found(&own), std::slice::from_ref(&own), "named as an input");
        kept(&Found { len: 3, ..found(&own) }, &[], "has changed");
        assert!(own.exists() && other.exists());
        fs::write(Marks::path(&own), "x").unwrap();
        assert_eq!(said(Tidy::Delete, &found(&own), &root, &[]), "deleted 1 dump, 4 B");
        assert!(!own.exists() && !Marks::path(&own).exists() && other.exists());
    }

    #[test]
    fn archived_dumps_keep_their_marks_and_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("crashes");
        fs::create_dir_all(root.join("sub")).unwrap();
        for name in ["a.kwab", "sub/a.kwab"] {
            fs::write(root.join(name), name).unwrap();
            fs::write(Marks::path(&root.join(name)), "marks").unwrap();
            assert!(said(Tidy::Archive, &found(&root.join(name)), &root, &[]).starts_with("archived 1 dump"));
        }
        let at = |name: &str| fs::read_to_string(root.join(FOLDER).join(name)).unwrap();
        assert_eq!(at("a.kwab.archived"), "a.kwab");
        assert_eq!(at("a.kwab.2.archived"), "sub/a.kwab");
        assert_eq!(at("a.kwab.2.archived.marks"), "marks");
        assert!(!root.join("a.kwab").exists() && !root.join("a.kwab.marks").exists());
        fs::remove_dir_all(root.join(FOLDER)).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join(FOLDER)).unwrap();
        fs::write(root.join("b.kwab"), "b").unwrap();
        let text = said(Tidy::Archive, &found(&root.join("b.kwab")), &root, &[]);
        assert!(text.contains("archive is not a directory") && root.join("b.kwab").exists(), "{text}");
    }
}
