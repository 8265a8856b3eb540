//! Which files have had the name of a console's file, in order, and where each of them is now.
//!
//! A rotation renames the file and makes another; five of them may pass between two looks at the name. The kernel tells
//! every change of the directory's names in order (inotify(7)), and [`Rotation`] follows each file through them, so
//! that a file that has lost its name is found under the one it has now. Events carry names, no inodes: a file that was
//! opened by its name is the right one if no change of that name has come since ([`Watch::drain`] behind the `open`).

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Files that wait to be read; of more the oldest are given up.
const MOST_FILES: usize = 1024;

/// A change of the names in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A file was made under this name.
    Made(OsString),
    /// The file of this name was deleted.
    Deleted(OsString),
    /// The file of this name goes to another name, which comes with the same number, or leaves the directory.
    From(OsString, u32),
    /// A file gets this name; what had it before is gone.
    To(OsString, u32),
}

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Under this name of the directory.
    At(OsString),
    /// Between two names, or in another directory.
    Moving(u32),
    /// Deleted, or replaced by another file.
    Gone,
}

/// The files that have had one name: the one that is read, then those that came after it.
#[derive(Debug)]
pub(super) struct Rotation {
    name: OsString,
    files: VecDeque<Place>,
    given_up: u64,
}

impl Rotation {
    /// Begins with the file that has the name now.
    pub(super) fn new(name: &OsStr) -> Self {
        Self { name: name.to_os_string(), files: VecDeque::from([Place::At(name.to_os_string())]), given_up: 0 }
    }

    /// Takes a change, in order.
    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Made(name) => {
                self.displace(&name);
                self.born(name);
            }
            Change::Deleted(name) => self.displace(&name),
            Change::From(name, number) => {
                for place in self.files.iter_mut().filter(|place| **place == Place::At(name.clone())) {
                    *place = Place::Moving(number);
                }
            }
            Change::To(name, number) => {
                self.displace(&name);
                match self.files.iter_mut().find(|place| **place == Place::Moving(number)) {
                    Some(place) => *place = Place::At(name),
                    None => self.born(name),
                }
            }
        }
    }

    /// Where the file behind the one that is read is.
    pub(super) fn next(&self) -> Option<&Place> {
        self.files.get(1)
    }

    /// The file behind the one that is read becomes the one that is.
    pub(super) fn advance(&mut self) {
        self.files.pop_front();
    }

    /// The file behind the one that is read is none.
    pub(super) fn skip(&mut self) {
        self.files.remove(1);
    }

    /// Whether the file that is read has kept its name, and no other came behind it.
    pub(super) fn is_unchanged(&self) -> bool {
        self.files.len() == 1 && self.files.front() == Some(&Place::At(self.name.clone()))
    }

    /// The one that is read has the name now, and nothing is behind it.
    pub(super) fn restart(&mut self) {
        self.files = VecDeque::from([Place::At(self.name.clone())]);
    }

    /// Files that were given up since the last call because too many waited.
    pub(super) fn take_given_up(&mut self) -> u64 {
        std::mem::take(&mut self.given_up)
    }

    fn displace(&mut self, name: &OsStr) {
        for place in self.files.iter_mut().filter(|place| matches!(place, Place::At(at) if at == name)) {
            *place = Place::Gone;
        }
    }

    fn born(&mut self, name: OsString) {
        if name == self.name {
            self.files.push_back(Place::At(name));
            if self.files.len() > MOST_FILES {
                self.skip();
                self.given_up += 1;
            }
        }
    }
}

/// The changes of a directory's names.
#[derive(Debug)]
pub(super) struct Watch(OwnedFd);

impl Watch {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the directory cannot be watched; a user may have 128 watchers at a time.
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let wanted = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::MOVED_TO;
        inotify::add_watch(&fd, directory, wanted | WatchFlags::ONLYDIR)?;
        Ok(Self(fd))
    }

    /// Applies every change so far; `false` when the kernel has dropped some.
    pub(super) fn drain(&self, rotation: &mut Rotation) -> io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        let mut is_whole = true;
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(is_whole),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let flags = event.events();
            is_whole &= !flags.contains(ReadFlags::QUEUE_OVERFLOW);
            let Some(name) = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_os_string()) else {
                continue;
            };
            let number = event.cookie();
            let kinds = [
                (ReadFlags::CREATE, Change::Made(name.clone())),
                (ReadFlags::DELETE, Change::Deleted(name.clone())),
                (ReadFlags::MOVED_FROM, Change::From(name.clone(), number)),
                (ReadFlags::MOVED_TO, Change::To(name, number)),
            ];
            kinds.into_iter().filter(|(kind, _)| flags.contains(*kind)).for_each(|(_, change)| rotation.apply(change));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> OsString {
        OsString::from(text)
    }

    #[test]
    fn a_file_is_found_under_the_name_that_the_third_rotation_gave_it() {
        let mut rotation = Rotation::new(OsStr::new("log"));
        for number in 0..2 {
            for change in [
                Change::From(name("log.1"), 10 + number),
                Change::To(name("log.2"), 10 + number),
                Change::From(name("log"), number),
                Change::To(name("log.1"), number),
                Change::Made(name("log")),
            ] {
                rotation.apply(change);
            }
        }
        assert_eq!(rotation.next(), Some(&Place::At(name("log.1"))));
        rotation.advance();
        assert_eq!(rotation.next(), Some(&Place::At(name("log"))));
        rotation.advance();
        assert_eq!(rotation.next(), None);
    }

    #[test]
    fn too_many_files_give_up_the_oldest_and_count_them() {
        let mut rotation = Rotation::new(OsStr::new("log"));
        for _ in 0..3000 {
            rotation.apply(Change::Made(name("log")));
        }
        assert_eq!((rotation.files.len(), rotation.take_given_up(), rotation.take_given_up()), (MOST_FILES, 1977, 0));
    }

    /// A directory as the kernel has it, which tells its changes.
    #[derive(Default)]
    struct Directory {
        /// Number of the file of each name.
        names: std::collections::BTreeMap<OsString, u32>,
        /// The files that have had the name `log`, in order.
        had: Vec<u32>,
        made: u32,
    }

    impl Directory {
        fn made(&mut self, at: &str) -> Change {
            self.made += 1;
            self.names.insert(name(at), self.made);
            if at == "log" {
                self.had.push(self.made);
            }
            Change::Made(name(at))
        }

        fn renamed(&mut self, from: &str, to: &str) -> Vec<Change> {
            let Some(file) = self.names.remove(OsStr::new(from)) else { return Vec::new() };
            self.names.insert(name(to), file);
            if to == "log" && !self.had.contains(&file) {
                self.had.push(file);
            }
            self.made += 1;
            vec![Change::From(name(from), self.made), Change::To(name(to), self.made)]
        }
    }

    #[test]
    fn random_renames_leave_every_file_where_the_directory_has_it() {
        let mut state = 22_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let all = ["log", "log.1", "log.2", "other"];
        for round in 0..500 {
            let mut directory = Directory::default();
            let mut rotation = Rotation::new(OsStr::new("log"));
            directory.made("log");
            for _ in 0..40 {
                let (a, b) = (all[random(4)], all[random(4)]);
                let changes = match random(4) {
                    0 if !directory.names.contains_key(OsStr::new(a)) => vec![directory.made(a)],
                    1 if directory.names.remove(OsStr::new(a)).is_some() => vec![Change::Deleted(name(a))],
                    2 | 3 if a != b => directory.renamed(a, b),
                    _ => Vec::new(),
                };
                changes.into_iter().for_each(|change| rotation.apply(change));
            }
            let place = |file: &u32| match directory.names.iter().find(|(_, other)| *other == file) {
                Some((at, _)) => Place::At(at.clone()),
                None => Place::Gone,
            };
            let wanted: Vec<Place> = directory.had.iter().map(place).collect();
            assert_eq!(Vec::from(rotation.files), wanted, "round {round}");
        }
    }
}
