//! The open crash and the generations of its jobs, so that the answer to an old job is not taken for a new one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::comparison::Comparison;
use super::crash::Crash;
use crate::load::{Job, Message, Sources};
use crate::remembered::Remembered;
use crate::view::{Slot, View};

/// The open crash, if there is one, and the generations given to jobs.
pub struct Session {
    crash: Option<Crash>,
    sources: Sources,
    generation: u64,
    last: u64,
    /// Where the user was in each dump.
    remembered: Remembered,
}

/// What taking a message has come to.
pub(super) enum Taken {
    /// More work: the lists of two crashes are to be paired.
    Job(Option<Job>),
    /// A list can be shown.
    List(Slot),
    /// The marks beside the dump cannot be read.
    NoMarks(String),
}

impl Session {
    /// A session without a crash, whose dumps are opened with `sources`.
    pub(super) fn new(sources: Sources) -> Self {
        Self { crash: None, sources, generation: 1, last: 1, remembered: Remembered::default() }
    }

    /// Takes where the user was in earlier runs; a crash that is being loaded is shown there.
    pub(super) fn remember(&mut self, remembered: Remembered) {
        self.remembered = remembered;
        self.return_to_place();
    }

    /// Where the user was in each dump, and is in the open one.
    pub(super) fn remembered(&self) -> Remembered {
        let mut all = self.remembered.clone();
        if let Some(crash) = &self.crash {
            crash.place().into_iter().for_each(|place| all.put(crash.path(), place));
        }
        all
    }

    fn return_to_place(&mut self) {
        if let Some(crash) = &mut self.crash
            && let Some(place) = self.remembered.place(crash.path())
        {
            crash.return_to(place);
        }
    }

    /// Reads the open dump again with the images of one path more.
    pub(super) fn add_symbols(&mut self, path: PathBuf) -> Vec<Job> {
        self.sources.symbols.retain(|known| *known != path);
        // What was named last is looked at first.
        self.sources.symbols.insert(0, path);
        self.sources.is_asked = true;
        self.reopen()
    }

    /// Reads the open dump again without the images of the path that was added last; `None` if none was.
    pub(super) fn drop_symbols(&mut self) -> Option<(PathBuf, Vec<Job>)> {
        if !std::mem::take(&mut self.sources.is_asked) {
            return None;
        }
        let path = self.sources.symbols.remove(0);
        Some((path, self.reopen()))
    }

    /// Where images and files come from.
    pub(super) const fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The open crash.
    #[must_use]
    pub const fn crash(&self) -> Option<&Crash> {
        self.crash.as_ref()
    }

    /// The same, to be changed.
    pub(super) const fn crash_mut(&mut self) -> Option<&mut Crash> {
        self.crash.as_mut()
    }

    /// The generation of the open crash; another number when another is opened.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The generation of the crash beside the open one; 0 without one.
    #[must_use]
    pub fn second_generation(&self) -> u64 {
        let second = self.crash.as_ref().and_then(Crash::comparison);
        second.map_or(0, Comparison::generation)
    }

    /// Whether the result of a job is still wanted: that of the open crash, of the one beside it, or of none (0).
    pub(super) fn is_current(&self, generation: u64) -> bool {
        [0, self.generation, self.second_generation()].contains(&generation)
    }

    /// Whether a dump is the open one.
    pub(super) fn is_open(&self, path: &Path) -> bool {
        self.crash.as_ref().is_some_and(|crash| crash.path() == path)
    }

    /// Opens a dump instead of the one before.
    pub(super) fn open(&mut self, path: PathBuf) -> Job {
        self.generation = self.next_generation();
        self.remembered = self.remembered();
        self.crash = Some(Crash::new(path.clone()));
        self.return_to_place();
        Job::Open { generation: self.generation, path, sources: self.sources.clone() }
    }

    /// Reads the open dump again, and the one beside it; what was looked at stays.
    pub(super) fn reopen(&mut self) -> Vec<Job> {
        let Some(before) = self.crash.take() else { return Vec::new() };
        let second = before.comparison().map(|second| second.path().to_path_buf());
        let tabs = *before.tabs();
        let mut jobs = vec![self.open(before.path().to_path_buf())];
        if let Some(crash) = &mut self.crash {
            crash.resume(before);
        }
        jobs.extend(second.and_then(|path| self.open_second(path)));
        if let Some(crash) = &mut self.crash {
            *crash.tabs_mut() = tabs;
        }
        jobs
    }

    /// Reads the open dump again after it has grown: what is shown stays until it has been read, and a list that is at
    /// its end then stays there.
    pub(super) fn go_on(&mut self) -> Vec<Job> {
        let ends = self.crash.as_ref().map_or_else(Vec::new, Crash::at_ends);
        let kept = self.crash.as_ref().and_then(Crash::kept);
        let jobs = self.reopen();
        if let Some(crash) = &mut self.crash {
            crash.stay_at(ends);
            kept.into_iter().for_each(|kept| crash.keep(kept));
        }
        jobs
    }

    /// Opens a dump beside the open crash.
    fn open_second(&mut self, path: PathBuf) -> Option<Job> {
        let generation = self.next_generation();
        self.crash.as_mut()?.compare_with(path.clone(), generation);
        Some(Job::Open { generation, path, sources: self.sources.clone() })
    }

    /// Shows a dump, alone or beside another; what is open already stays open.
    pub(super) fn show(&mut self, first: PathBuf, second: Option<PathBuf>) -> Vec<Job> {
        let mut jobs = Vec::new();
        if !self.is_open(&first) {
            jobs.push(self.open(first));
        }
        let Some(crash) = self.crash.as_mut() else { return jobs };
        if crash.comparison().map(Comparison::path) != second.as_deref() {
            crash.end_comparison();
            if let Some(path) = second {
                crash.reset_lists();
                jobs.extend(self.open_second(path));
            }
        }
        jobs
    }

    /// Concludes again, from every section of a long recording; `None` if conclusions rest on all of it already.
    pub(super) fn conclude_whole(&self) -> Option<Job> {
        let crash = self.crash.as_ref().filter(|crash| !crash.skipped().is_empty())?;
        let (path, sources) = (crash.path().to_path_buf(), self.sources.clone());
        Some(Job::Conclude { generation: self.generation, path, sources, whole: true })
    }

    /// Takes why a job has failed.
    pub(super) fn fail(&mut self, generation: u64, text: &str) {
        if let Some(crash) = self.crash.as_mut().filter(|_| generation == self.generation) {
            crash.fail(text);
        }
    }

    /// Takes what a job of the open crash, or of the one beside it, has found out; drops the rest.
    pub(super) fn take(&mut self, message: Message) -> Taken {
        let (first, second) = (self.generation, self.second_generation());
        let Some(crash) = self.crash.as_mut() else { return Taken::Job(None) };
        let facts = match message {
            Message::Head { generation, report } if generation == first => crash.take_report(report),
            Message::Head { generation, report } if generation == second => crash.take_second_report(report),
            Message::List { generation, slot, view } if generation == first => return self.take_list(slot, view),
            Message::List { generation, slot, view } if generation == second => {
                return Taken::Job(crash.take_half(slot, view, true, first));
            }
            Message::Skipped { generation, skipped } if generation == first => {
                crash.take_skipped(skipped);
                None
            }
            Message::Marks { generation, marks } if generation == first => match marks {
                Ok(marks) => {
                    crash.take_marks(marks);
                    None
                }
                Err(why) => return Taken::NoMarks(why),
            },
            _ => None,
        };
        match facts {
            Some(facts) => self.take_list(Slot::Compare, facts),
            None => Taken::Job(None),
        }
    }

    fn take_list(&mut self, slot: Slot, view: Arc<dyn View>) -> Taken {
        let Some(crash) = self.crash.as_mut() else { return Taken::Job(None) };
        if crash.is_half(slot, view.as_ref()) {
            return Taken::Job(crash.take_half(slot, view, false, self.generation));
        }
        crash.install(slot, view);
        Taken::List(slot)
    }

    /// Every file that is read for the open crash: dumps, images and the files behind pages.
    pub(super) fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let sources = self.sources.symbols.iter().chain(&self.sources.backing).cloned();
        let dumps = self.crash.iter().flat_map(|crash| {
            let second = crash.comparison().map(Comparison::path);
            std::iter::once(crash.path()).chain(second).map(|name| crate::dump_name::split(name).0)
        });
        sources.chain(dumps)
    }

    const fn next_generation(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::Marks;

    fn list(generation: u64, slot: Slot) -> Message {
        Message::List { generation, slot, view: Arc::new(crate::view::marks::marks(&Marks::default())) }
    }

    #[test]
    fn a_list_of_the_crash_before_is_dropped() {
        let mut session = Session::new(Sources::default());
        session.open(PathBuf::from("a.kwab"));
        let old = session.generation();
        session.open(PathBuf::from("b.kwab"));
        assert!(!session.is_current(old) && session.is_current(session.generation()));
        assert!(matches!(session.take(list(old, Slot::Log)), Taken::Job(None)));
        assert!(session.crash().unwrap().view(Slot::Log).is_none());
        assert!(matches!(session.take(list(session.generation(), Slot::Log)), Taken::List(Slot::Log)));
        session.fail(old, "gone");
        assert_eq!(session.crash().unwrap().failed(), None);
    }

    #[test]
    fn a_search_for_images_is_given_up_once_and_only_what_the_user_added_is_dropped() {
        let mut session = Session::new(Sources { symbols: vec![PathBuf::from("named")], ..Sources::default() });
        session.open(PathBuf::from("a.kwab"));
        assert!(session.drop_symbols().is_none());
        session.add_symbols(PathBuf::from("/"));
        let searching = session.generation();
        let (path, jobs) = session.drop_symbols().unwrap();
        assert_eq!((path.as_path(), jobs.len()), (Path::new("/"), 1));
        assert!(!session.is_current(searching));
        assert_eq!(session.sources().symbols, [PathBuf::from("named")]);
        assert!(session.drop_symbols().is_none());
    }

    #[test]
    fn lists_of_a_comparison_wait_for_each_other_and_the_first_come_back_at_its_end() {
        let mut session = Session::new(Sources::default());
        let (a, b) = (PathBuf::from("a.kwab"), PathBuf::from("b.kwab"));
        assert_eq!(session.show(a.clone(), Some(b)).len(), 2, "both are opened");
        let (first, second) = (session.generation(), session.second_generation());
        assert!(matches!(session.take(list(first, Slot::Log)), Taken::Job(None)));
        assert!(matches!(session.take(list(second, Slot::Log)), Taken::Job(Some(Job::Beside { .. }))));
        assert!(session.show(a, None).is_empty(), "nothing is opened again");
        assert_eq!((session.generation(), session.second_generation()), (first, 0));
        assert!(session.crash().unwrap().view(Slot::Log).is_some());
    }

    #[test]
    fn reading_again_opens_both_crashes_and_keeps_the_tab() {
        let mut session = Session::new(Sources::default());
        session.show(PathBuf::from("a.kwab"), Some(PathBuf::from("b.kwab")));
        session.crash_mut().unwrap().tabs_mut().show(Slot::Pages);
        assert_eq!(session.reopen().len(), 2);
        let crash = session.crash().unwrap();
        assert_eq!(
            (crash.tabs().slot(), crash.comparison().map(Comparison::path)),
            (Slot::Pages, Some(Path::new("b.kwab")))
        );
    }
}
