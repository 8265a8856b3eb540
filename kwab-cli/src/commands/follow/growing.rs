//! Reads a console's file while it grows, through truncation and rotation.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::{Duration, Instant};

use super::chunk::{Chunk, READ};
use super::late::Late;
use super::rotation::{Place, Rotation, Watch};

/// How often a file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a file is opened again because it has moved meanwhile.
const TRIES: usize = 64;

/// A file that grows.
#[derive(Debug)]
pub(super) struct Growing {
    path: PathBuf,
    folder: PathBuf,
    file: File,
    watch: Option<Watch>,
    rotation: Rotation,
    /// Files that were left.
    late: Late,
    /// Whether the last byte was no line end.
    in_line: bool,
}

/// What a look at the end of the file has found.
enum Look {
    /// Nothing has come yet.
    Nothing,
    /// Another file, or the beginning of this one.
    Begins,
    /// Files that are gone, unread.
    Skipped(u64),
}

impl Growing {
    /// Opens a regular file, at its end if only what is new counts. Also gives why its directory cannot be watched.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn open(path: &Path, only_new: bool) -> io::Result<(Self, Option<io::Error>)> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut rotation = Rotation::new(name);
        let (watch, unwatched) = match Watch::of(folder) {
            Ok(watch) => (Some(watch), None),
            Err(error) => (None, Some(error)),
        };
        let mut file = regular(path)?;
        for _ in 0..TRIES {
            let Some(watch) = &watch else { break };
            rotation.restart();
            let is_whole = watch.drain(&mut rotation)?;
            if is_whole && rotation.is_unchanged() {
                break;
            }
            file = regular(path)?;
        }
        rotation.restart();
        if only_new {
            file.seek(SeekFrom::End(0))?;
        }
        let (path, folder) = (path.to_path_buf(), folder.to_path_buf());
        Ok((Self { path, folder, file, watch, rotation, late: Late::default(), in_line: false }, unwatched))
    }

    /// Reads what comes, until an error or until the receiver has gone.
    pub(super) fn read(mut self, sender: &SyncSender<Chunk>) {
        let mut buffer = vec![0; READ];
        loop {
            let late = if self.in_line { Vec::new() } else { self.late.lines(Instant::now()) };
            if !late.is_empty() && sender.send(Chunk::read(late)).is_err() {
                return;
            }
            let chunk = match self.file.read(&mut buffer) {
                Ok(0) => match self.look() {
                    Ok(Look::Begins) if std::mem::take(&mut self.in_line) => Chunk::read(b"\n".to_vec()),
                    Ok(Look::Begins) => continue,
                    Ok(Look::Skipped(files)) => Chunk::Skipped(files),
                    Ok(Look::Nothing) => {
                        thread::sleep(LOOK_EVERY);
                        continue;
                    }
                    Err(error) => Chunk::Failed(error),
                },
                Ok(count) => {
                    self.in_line = buffer.get(count - 1) != Some(&b'\n');
                    Chunk::read(buffer[..count].to_vec())
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Chunk::Failed(error),
            };
            let is_last = matches!(chunk, Chunk::Failed(_));
            if sender.send(chunk).is_err() || is_last {
                return;
            }
        }
    }

    /// Looks whether there is another file, or less of this one.
    fn look(&mut self) -> io::Result<Look> {
        let is_whole = self.drain()?;
        let own = self.file.metadata()?;
        let position = self.file.stream_position()?;
        if own.len() < position {
            self.file.seek(SeekFrom::Start(0))?;
            return Ok(Look::Begins);
        }
        if own.len() > position {
            return Ok(Look::Nothing);
        }
        if !is_whole {
            // Changes are missing: what has the name now is all that can be found.
            self.rotation.restart();
        }
        let look = self.next_file(&own)?;
        let given_up = self.rotation.take_given_up();
        Ok(match (look, given_up, is_whole) {
            (Look::Nothing, 0, true) => self.by_name(&own)?,
            (Look::Nothing, 0, false) => Look::Skipped(1),
            (Look::Nothing, files, _) => Look::Skipped(files),
            (Look::Skipped(files), more, _) => Look::Skipped(files + more),
            (look, _, _) => look,
        })
    }

    /// Goes to the file that got the name after this one, wherever it is now.
    fn next_file(&mut self, own: &Metadata) -> io::Result<Look> {
        let mut skipped = 0;
        for _ in 0..TRIES {
            let Some(place) = self.rotation.next().cloned() else { break };
            let Place::At(name) = &place else {
                self.rotation.skip();
                skipped += 1;
                continue;
            };
            let opened = regular(&self.folder.join(name));
            if !self.drain()? || self.rotation.next() != Some(&place) {
                continue;
            }
            match opened {
                Ok(file) if is_same(&file.metadata()?, own) => self.rotation.skip(),
                Ok(_) if skipped > 0 => break,
                Ok(file) => {
                    self.go_to(file)?;
                    self.rotation.advance();
                    return Ok(Look::Begins);
                }
                Err(_) => {
                    self.rotation.skip();
                    skipped += 1;
                }
            }
        }
        Ok(if skipped > 0 { Look::Skipped(skipped) } else { Look::Nothing })
    }

    /// Goes to the file that has the name now: a link that was changed, or a directory that is not watched.
    fn by_name(&mut self, own: &Metadata) -> io::Result<Look> {
        // A name that is free for a moment gets its new file soon.
        let Ok(file) = regular(&self.path) else { return Ok(Look::Nothing) };
        if is_same(&file.metadata()?, own) {
            return Ok(Look::Nothing);
        }
        // What has come under this name since the changes were read stands in the right order there.
        self.drain()?;
        if self.rotation.next().is_some() {
            return Ok(Look::Nothing);
        }
        self.go_to(file)?;
        self.rotation.restart();
        Ok(Look::Begins)
    }

    /// Reads another file from now on, and what still comes to this one.
    fn go_to(&mut self, file: File) -> io::Result<()> {
        let back = self.late.take_back(&file.metadata()?);
        let left = std::mem::replace(&mut self.file, back.unwrap_or(file));
        self.late.keep(left, Instant::now());
        Ok(())
    }

    fn drain(&mut self) -> io::Result<bool> {
        self.watch.as_ref().map_or(Ok(true), |watch| watch.drain(&mut self.rotation))
    }
}

/// Opens a regular file; anything else under its name is refused without waiting for it.
fn regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("is not a regular file")) }
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
