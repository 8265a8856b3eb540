//! Follows a console that is still being written: one dump per crash, valid on disk while the crash comes in.
//!
//! A [`Follower`] takes bytes as they come and the time as an argument, and gives [`FollowEvent`]s; it neither waits
//! nor reads. Two things run side by side:
//!
//! - `watch` runs every line through the stages of an import that records nothing, and so knows as an import does
//!   when a crash begins and when its report has ended;
//! - `window` keeps the last lines before a crash, and all of the crash. From it a dump is imported and renamed over
//!   the one before, at the crash's first line, every half second while it grows, and at its end.
//!
//! A report ends by its own last line, or by silence. What comes soon after, such as the panic behind an oops, is added
//! to the same dump. Memory is bounded by 32 MiB of a crash (`window::MOST`). With [`Settings::live`] the window is on
//! disk between crashes too (`live`).

mod event;
mod live;
mod names;
mod watch;
mod window;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use event::{CrashFound, FollowEvent, FollowLine, SCHEMA};

use self::live::{Live, Pace};
use self::names::Names;
use self::watch::Watch;
use self::window::Window;
use crate::import::crashes::Progress;
use crate::import::{Dialects, ImportError, Options, PendingDump, PendingFile, import_part};
use crate::output::Replace;

/// A report that has ended is announced when this long nothing of it has come.
const GRACE: Duration = Duration::from_millis(40);
/// A crash that never ends is closed after this many times the silence that ends one.
const LONGEST: u32 = 60;
/// Crashes of one window behind which it begins again as soon as the last of them has ended. Each new crash imports
/// the whole window: of a machine that boots and dies on and on that would be a square.
const AT_ONCE: usize = 8;

/// What a follower needs to know.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Name of the console, for the dumps.
    pub source: String,
    /// Directory of the dumps.
    pub folder: PathBuf,
    /// What their names begin with.
    pub stem: String,
    /// Lines before a crash that its dump has at least.
    pub before: usize,
    /// Silence that ends a report which has no end of its own.
    pub quiet_after: Duration,
    /// Silence of the console that is worth an event.
    pub silence: Option<Duration>,
    /// The user's dialects of reports, as TOML.
    pub dialects: Option<String>,
    /// Whether the last lines are on disk while nothing has crashed too, as `STEM-live.kwab`.
    pub live: bool,
}

impl Settings {
    /// The dialects, made ready.
    fn dialects(&self) -> io::Result<Dialects> {
        match &self.dialects {
            Some(text) => Dialects::from_toml(text).map_err(io::Error::other),
            None => Ok(Dialects::builtin()),
        }
    }
}

/// Follows one console.
#[derive(Debug)]
pub struct Follower {
    settings: Settings,
    names: Names,
    watch: Watch,
    window: Window,
    /// The crash that is coming in.
    crash: Option<Incoming>,
    live: Option<Live>,
    last_byte: Instant,
    /// Whether the silence that lasts has been told.
    told_silence: bool,
}

/// A crash that is coming in, or several at once.
#[derive(Debug)]
struct Incoming {
    began: Instant,
    /// When a line came that belongs to it.
    grew: Instant,
    progress: Progress,
    /// Its dumps on disk.
    written: Vec<PathBuf>,
    pace: Pace,
    /// Whether lines came after the last write.
    dirty: bool,
    /// Dumps that have been announced.
    announced: usize,
    /// Dumps that were written when a later one had begun: nothing is added to them.
    settled: usize,
    /// Bytes of the window at the last write.
    imported: usize,
    /// Whether it grew after it was announced.
    grew_since: bool,
}

/// Which dumps are announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announce {
    /// All that have been written.
    All,
    /// All but the last, whose crash is still coming in.
    Ended,
}

impl Follower {
    /// Starts with an empty console at `now`.
    ///
    /// # Errors
    /// When the directory of the dumps cannot be read.
    pub fn new(settings: Settings, now: Instant) -> io::Result<Self> {
        let names = Names::in_folder(&settings.folder, &settings.stem)?;
        let mut watch = Watch::new(&settings.source, settings.dialects()?)?;
        let window = Window::new(settings.before, watch.bookmark());
        let live = settings.live.then(|| Live { path: names.live(), dirty: false, pace: Pace::new(now) });
        Ok(Self { settings, names, watch, window, crash: None, live, last_byte: now, told_silence: false })
    }

    /// Takes bytes of the console that came at `now`.
    ///
    /// # Errors
    /// Those of writing a dump.
    pub fn take(&mut self, bytes: &[u8], now: Instant) -> Result<Vec<FollowEvent>, ImportError> {
        let mut events = Vec::new();
        if bytes.is_empty() {
            return Ok(events);
        }
        // A crash that has been announced and is over gets none of them, however late they are taken.
        if self.crash.as_ref().is_some_and(|crash| crash.is_told() && now >= self.forget_at(crash)) {
            self.act(now, &mut events)?;
        }
        self.last_byte = now;
        if std::mem::take(&mut self.told_silence) {
            events.push(FollowEvent::Resumed);
        }
        let mut rest = bytes;
        while let Some(line) = self.window.add(&mut rest) {
            self.line(&line, now, &mut events)?;
        }
        if let Some(live) = &mut self.live {
            live.dirty = true;
        }
        if let Some(crash) = &mut self.crash {
            // The piece of a line that has come is written too.
            crash.dirty |= !bytes.ends_with(b"\n");
        }
        self.act(now, &mut events)?;
        Ok(events)
    }

    /// Does what is due at `now`.
    ///
    /// # Errors
    /// Those of writing a dump.
    pub fn tick(&mut self, now: Instant) -> Result<Vec<FollowEvent>, ImportError> {
        let mut events = Vec::new();
        self.act(now, &mut events)?;
        let silent = self.settings.silence.filter(|silence| now.duration_since(self.last_byte) >= *silence);
        if silent.is_some() && !std::mem::replace(&mut self.told_silence, true) {
            events.push(self.fell_silent(now)?);
        }
        Ok(events)
    }

    /// When [`Follower::tick`] has something to do, if no byte comes before.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let silence = self.settings.silence.filter(|_| !self.told_silence).map(|silence| self.last_byte + silence);
        let crash = self.crash.as_ref().map(|crash| {
            let write = crash.dirty.then(|| crash.pace.next());
            let over = if crash.is_told() { self.forget_at(crash) } else { self.over_at(crash) };
            write.map_or(over, |write| write.min(over))
        });
        let live = self.live.as_ref().filter(|live| live.dirty && self.crash.is_none()).map(|live| live.pace.next());
        [silence, crash, live].into_iter().flatten().min()
    }

    /// Whether no crash is coming in, or may still get something.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.crash.is_none()
    }

    /// The console has ended: what is open is written and announced.
    ///
    /// # Errors
    /// Those of writing a dump.
    pub fn end(&mut self) -> Result<Vec<FollowEvent>, ImportError> {
        let mut events = Vec::new();
        // A last line without an end can begin a crash too; the stages wait for its end.
        if let Some(line) = self.window.end_line() {
            self.line(&[&line, &b"\n"[..]].concat(), self.last_byte, &mut events)?;
        }
        if self.crash.is_some() {
            self.announce(Announce::All, &mut events)?;
            self.forget()?;
        }
        self.keep_live(self.last_byte)?;
        events.push(FollowEvent::Ended { lines: self.window.lines(), bytes: self.window.bytes() });
        Ok(events)
    }

    /// One line has come.
    fn line(&mut self, line: &[u8], now: Instant, events: &mut Vec<FollowEvent>) -> Result<(), ImportError> {
        let before = self.watch.progress();
        let closed = self.watch.line(line)?;
        let progress = self.watch.progress();
        let Some(crash) = &mut self.crash else {
            if progress.open + closed > 0 {
                self.begins(progress, now, events)?;
            } else if self.window.wants_bookmark() {
                if !progress.reading {
                    self.watch.begin_again()?;
                }
                self.window.bookmark(self.watch.bookmark());
            }
            return Ok(());
        };
        crash.dirty = true;
        if progress.reading || before != progress || closed > 0 {
            (crash.grew, crash.progress) = (now, progress);
            crash.grew_since |= crash.is_told();
        }
        let is_next = (progress.open > before.open || closed > 0) && crash.may_announce(self.window.held());
        let has_many = crash.settled >= AT_ONCE && progress.complete && !progress.reading;
        let is_full = self.window.is_full() || has_many;
        if is_next || is_full {
            self.announce(if is_full { Announce::All } else { Announce::Ended }, events)?;
        }
        if is_full { self.forget() } else { Ok(()) }
    }

    fn begins(&mut self, progress: Progress, now: Instant, events: &mut Vec<FollowEvent>) -> Result<(), ImportError> {
        self.crash = Some(Incoming {
            began: now,
            grew: now,
            progress,
            written: Vec::new(),
            pace: Pace::new(now),
            dirty: true,
            announced: 0,
            settled: 0,
            imported: 0,
            grew_since: false,
        });
        self.write(now)?;
        let path = self.crash.as_ref().and_then(|crash| crash.written.last()).cloned();
        events.push(FollowEvent::Begins { line: self.window.lines(), path });
        Ok(())
    }

    /// Writes, announces and forgets what is due.
    fn act(&mut self, now: Instant, events: &mut Vec<FollowEvent>) -> Result<(), ImportError> {
        let Some(crash) = &self.crash else {
            let is_due = self.live.as_ref().is_some_and(|live| live.dirty && now >= live.pace.next());
            return if is_due { self.keep_live(now) } else { Ok(()) };
        };
        let is_over = now >= self.over_at(crash);
        let is_told = crash.is_told();
        if is_over && !is_told {
            return self.announce(Announce::All, events);
        }
        if now >= self.forget_at(crash) && is_told {
            if crash.dirty {
                self.write(now)?;
            }
            return self.forget();
        }
        if crash.dirty && now >= crash.pace.next() { self.write(now).map(drop) } else { Ok(()) }
    }

    /// When the crash is over, if nothing more comes: soon after its last line, or after silence.
    fn over_at(&self, crash: &Incoming) -> Instant {
        let has_end = crash.progress.complete && !crash.progress.reading;
        let quiet = self.last_byte + self.settings.quiet_after;
        let longest = crash.began + self.settings.quiet_after * LONGEST;
        if has_end { (crash.grew + GRACE).min(longest) } else { quiet.min(longest) }
    }

    /// When nothing more is added to a crash that has been announced.
    fn forget_at(&self, crash: &Incoming) -> Instant {
        crash.grew.max(crash.began) + self.settings.quiet_after.max(GRACE * 2)
    }

    /// Imports the window and puts the dumps in their places.
    fn write(&mut self, now: Instant) -> Result<Vec<CrashFound>, ImportError> {
        let started = Instant::now();
        let dumps = self.import()?;
        let held = self.window.held();
        let Some(crash) = &mut self.crash else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let dumps: Vec<PendingDump> = dumps.into_iter().filter(|dump| dump.summary.number > 0).collect();
        // The last one grows, also when what came behind it turned out to be no crash.
        let settled = crash.settled.min(dumps.len().saturating_sub(1));
        for (index, dump) in dumps.into_iter().enumerate() {
            let path = match crash.written.get(index) {
                Some(path) => path.clone(),
                None => self.names.next("").map_err(ImportError::Write)?,
            };
            if index >= settled {
                put(dump.file, &path)?;
            }
            if index == crash.written.len() {
                crash.written.push(path.clone());
            }
            found.push(CrashFound::of(dump.summary, path, self.window.lines()));
        }
        // A program's traceback can look like a kernel's until its last lines: nothing has crashed then.
        for path in crash.written.split_off(found.len().max(crash.announced).min(crash.written.len())) {
            std::fs::remove_file(path).map_err(ImportError::Write)?;
        }
        crash.pace.wrote(now, started.elapsed());
        crash.dirty = false;
        crash.settled = found.len().saturating_sub(1);
        crash.imported = held;
        Ok(found)
    }

    /// Writes the last lines of a console on which nothing has crashed.
    fn keep_live(&mut self, now: Instant) -> Result<(), ImportError> {
        let Some(live) = self.live.as_mut().filter(|live| live.dirty) else { return Ok(()) };
        live.dirty = false;
        // What came may be the piece of a line, or all of it in the dump of a crash.
        if self.window.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        let dump = self.import()?.into_iter().next();
        if let (Some(live), Some(dump)) = (&mut self.live, dump) {
            put(dump.file, &live.path)?;
            live.pace.wrote(now, started.elapsed());
        }
        Ok(())
    }

    fn import(&self) -> Result<Vec<PendingDump>, ImportError> {
        let Settings { source, folder, .. } = &self.settings;
        let dialects = self.settings.dialects().map_err(ImportError::Write)?;
        let options = Options { source: source.clone(), folder: Some(folder.clone()) };
        import_part(self.window.read(), self.window.start(), &options, dialects)
    }

    /// Writes the dumps and announces those that have not been announced, and the last one if it grew since.
    fn announce(&mut self, which: Announce, events: &mut Vec<FollowEvent>) -> Result<(), ImportError> {
        let mut found = self.write(self.last_byte)?;
        let Some(crash) = &mut self.crash else { return Ok(()) };
        if which == Announce::Ended {
            found.pop();
        } else if found.is_empty() {
            events.push(FollowEvent::Withdrawn);
            return self.forget();
        }
        let count = found.len();
        for (index, one) in found.into_iter().enumerate() {
            match (index < crash.announced, crash.grew_since) {
                (false, _) => events.push(FollowEvent::Crash(one)),
                (true, true) if index + 1 == count => events.push(FollowEvent::Grew(one)),
                (true, _) => {}
            }
        }
        crash.announced = crash.announced.max(count);
        crash.grew_since = false;
        Ok(())
    }

    /// What comes from now on belongs to another crash.
    fn forget(&mut self) -> Result<(), ImportError> {
        self.crash = None;
        self.watch.begin_again()?;
        self.window.begin_again(self.watch.bookmark());
        Ok(())
    }

    /// The console is silent: the last lines are worth a recording.
    fn fell_silent(&mut self, now: Instant) -> Result<FollowEvent, ImportError> {
        let seconds = now.duration_since(self.last_byte).as_secs();
        let line = self.window.lines();
        let mut path = None;
        if self.crash.is_none() && !self.window.is_empty() {
            for dump in self.import()? {
                let name = self.names.next("silent-").map_err(ImportError::Write)?;
                put(dump.file, &name)?;
                path = Some(name);
            }
        }
        Ok(FollowEvent::Silent { seconds, line, path })
    }
}

impl Incoming {
    /// Whether the crashes before the one that begins are announced now. Of many whose ends nothing tells they are
    /// whenever the window has doubled.
    const fn may_announce(&self, held: usize) -> bool {
        self.settled < 2 * AT_ONCE || held / 2 >= self.imported
    }

    /// Whether all of it is announced.
    fn is_told(&self) -> bool {
        self.announced > 0 && self.announced == self.written.len() && !self.grew_since
    }
}

/// Puts a dump in its place: the file there is the one before or this one, never half of either.
fn put(file: Option<PendingFile>, path: &Path) -> Result<(), ImportError> {
    let missing = || ImportError::Write(io::Error::other("the dump was not kept"));
    file.ok_or_else(missing)?.name(path, Replace::Force).map_err(ImportError::Write)
}

#[cfg(test)]
mod tests;
