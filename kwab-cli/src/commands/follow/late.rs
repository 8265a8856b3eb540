//! Files that have lost the name of a console's file, to which their writer may still write.
//!
//! A rotation that renames the file and makes another tells the writer afterwards; until it opens the new file it goes
//! on with the old one. Such a file stays open until it has not grown for [`PATIENCE`], and its lines are handed over
//! as whole ones, since those of the new file may come in between.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use super::chunk::READ;

/// How long a file that does not grow is looked at: logrotate and newsyslog tell the writer within a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// Files that are kept open; of more the oldest is given up.
const MOST: usize = 16;

/// The files, oldest first.
#[derive(Debug, Default)]
pub(super) struct Late(VecDeque<LateFile>);

#[derive(Debug)]
struct LateFile {
    file: File,
    /// When it was left, or grew.
    grew: Instant,
    /// The beginning of a line that has no end yet.
    piece: Vec<u8>,
}

impl Late {
    /// Keeps a file that was read to its end.
    pub(super) fn keep(&mut self, file: File, now: Instant) {
        self.0.push_back(LateFile { file, grew: now, piece: Vec::new() });
    }

    /// Gives a file back that has got the name again, at the position up to which it was read.
    pub(super) fn take_back(&mut self, wanted: &Metadata) -> Option<File> {
        let is_it = |one: &LateFile| {
            one.file.metadata().is_ok_and(|meta| (meta.dev(), meta.ino()) == (wanted.dev(), wanted.ino()))
        };
        let at = self.0.iter().position(is_it)?;
        let LateFile { mut file, piece, .. } = self.0.remove(at)?;
        let back = i64::try_from(piece.len()).ok()?;
        file.seek_relative(-back).ok().map(|()| file)
    }

    /// The whole lines that have come since the last call, and the piece of a line of each file that is given up.
    pub(super) fn lines(&mut self, now: Instant) -> Vec<u8> {
        let mut lines = Vec::new();
        let too_many = self.0.len().saturating_sub(MOST);
        let mut number = 0;
        self.0.retain_mut(|one| {
            number += 1;
            let is_sound = one.read(now, &mut lines).is_ok();
            let stays = is_sound && number > too_many && now.duration_since(one.grew) < PATIENCE;
            if !stays && !one.piece.is_empty() {
                lines.append(&mut one.piece);
                lines.push(b'\n');
            }
            stays
        });
        lines
    }
}

impl LateFile {
    /// Adds the lines that have come; a line longer than a read is handed over as it comes.
    fn read(&mut self, now: Instant, lines: &mut Vec<u8>) -> io::Result<()> {
        let before = self.piece.len();
        let count = (&self.file).take(READ as u64).read_to_end(&mut self.piece)?;
        if count == 0 {
            return Ok(());
        }
        self.grew = now;
        let end = self.piece[before..].iter().rposition(|byte| *byte == b'\n').map(|at| before + at + 1);
        match end {
            Some(end) => lines.extend(self.piece.drain(..end)),
            None if self.piece.len() > READ => {
                lines.append(&mut self.piece);
                lines.push(b'\n');
            }
            None => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn whole_lines_are_handed_over_and_a_piece_when_its_file_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.1");
        let mut writer = File::create(&path).unwrap();
        let (mut late, now) = (Late::default(), Instant::now());
        late.keep(File::open(&path).unwrap(), now);
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(late.lines(now), b"one\n");
        writer.write_all(b"o\nthree").unwrap();
        assert_eq!((late.lines(now), late.lines(now)), (b"two\n".to_vec(), Vec::new()));
        assert_eq!((late.lines(now + PATIENCE), late.0.len()), (b"three\n".to_vec(), 0));
    }

    #[test]
    fn a_file_that_gets_its_name_back_goes_on_where_it_was_read_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\ntw").unwrap();
        let (mut late, now) = (Late::default(), Instant::now());
        late.keep(File::open(&path).unwrap(), now);
        assert_eq!(late.lines(now), b"one\n");
        let mut file = late.take_back(&std::fs::metadata(&path).unwrap()).unwrap();
        let mut rest = String::new();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.as_str(), late.0.len()), ("tw", 0));
        assert!(late.take_back(&folder.path().metadata().unwrap()).is_none());
    }
}
