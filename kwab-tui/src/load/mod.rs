//! Work that takes time, beside the screen: a few threads, jobs in, messages out.
//!
//! Every job carries the generation of what it is for. When that is no longer looked at, its number is raised in
//! [`Generations`]: jobs not begun are dropped, running ones stop at their next look, and messages that still arrive
//! are ignored by their number. [`perform`] does a job wherever it is called, so that tests need no threads.

mod catalogue;
mod crash;
mod import;
mod paths;
mod tidy;
mod watch;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::SystemTime;

use kwab::report::catalogue::CatalogueEntry;
use kwab::report::command;
use kwab::report::inspect::Report;

use crate::list::{self, ListState, Question};
use crate::marks::Marks;
pub use crash::IMAGES;
pub use tidy::Tidy;
use watch::Watch;

use crate::view::pair::PairView;
use crate::view::{Slot, View};

/// Where things come from, for everything that is loaded.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Files, directories and initramfs with images.
    pub symbols: Vec<PathBuf>,
    /// Use images with another build-id too.
    pub force: bool,
    /// Look for images where the user keeps them too: in the store, in the system's debug directory, on servers.
    pub kept: bool,
    /// Whether the user has named images since the start, and is told what has come of it.
    pub is_asked: bool,
    /// Initramfs or directory with the files behind pages.
    pub backing: Option<PathBuf>,
    /// An earlier build that worked: a file, or a build-id in the store.
    pub good: Option<PathBuf>,
}

impl Sources {
    /// The options that a command of `kwab` needs to answer from the same images and files.
    #[must_use]
    pub fn options(&self, command: &str) -> String {
        let name = command.split_whitespace().nth(1).unwrap_or_default();
        let takes = |commands: &[&str]| commands.contains(&name);
        let mut out = String::new();
        let mut option = |name: &str, path: &Path| {
            out.push_str(&format!(" {name} {}", command::word(&path.display().to_string())));
        };
        if takes(&["triage", "inspect", "export"]) {
            self.symbols.iter().for_each(|path| option("--symbols", path));
        }
        if takes(&["triage", "inspect"]) {
            self.good.iter().for_each(|path| option("--good", path));
        }
        // Of other commands it means that a file may be replaced.
        let forces = self.force && takes(&["triage", "inspect"]);
        if takes(&["triage", "verify-pages"]) {
            self.backing.iter().for_each(|path| option("--backing", path));
        }
        out + if forces { " --force" } else { "" }
    }
}

/// Something to do.
pub enum Job {
    /// Look which dumps and logs there are.
    Scan {
        /// For which catalogue.
        generation: u64,
        /// Files and directories.
        paths: Vec<PathBuf>,
    },
    /// Read what dumps say about themselves.
    Read {
        /// For which catalogue.
        generation: u64,
        /// The dumps to read the heads of.
        files: Vec<PathBuf>,
    },
    /// Conclude from each dump what the list says of it.
    Judge {
        /// For which catalogue.
        generation: u64,
        /// The dumps to judge.
        files: Vec<PathBuf>,
    },
    /// Open a crash and conclude.
    Open {
        /// For which crash.
        generation: u64,
        /// Path of the dump, or of one of the dumps in a file.
        path: PathBuf,
        /// Where images and files come from.
        sources: Sources,
    },
    /// Index what is long: events, console, captured memory; then check every checksum.
    Index {
        /// For which crash.
        generation: u64,
        /// Path of the dump, or of one of the dumps in a file.
        path: PathBuf,
        /// What is already known of it.
        report: Arc<Report>,
        /// Bytes of its budget that its other lists hold.
        held: u64,
    },
    /// Conclude from a dump that is too long to be held whole without being asked.
    Conclude {
        /// For which crash.
        generation: u64,
        /// Path of the dump, or of one of the dumps in a file.
        path: PathBuf,
        /// Where images and files come from.
        sources: Sources,
        /// Whether the middle of long recordings is read too.
        whole: bool,
    },
    /// Put two lists beside each other.
    Beside {
        /// For which crash.
        generation: u64,
        /// The list of which both crashes have a view.
        slot: Slot,
        /// The view of this crash.
        left: Arc<dyn View>,
        /// The view of the other crash.
        right: Arc<dyn View>,
        /// What the two are called.
        names: (String, String),
    },
    /// Which rows of a list are to be shown.
    Answer {
        /// The list that the rows are for.
        list: ListId,
        /// The question's number.
        number: u64,
        /// The rows that are filtered and sorted.
        view: Arc<dyn View>,
        /// Filter and order to apply.
        question: Question,
    },
    /// The next row that a filter holds for.
    Seek {
        /// The list that the row is for.
        list: ListId,
        /// The question's number.
        number: u64,
        /// The rows that are searched.
        view: Arc<dyn View>,
        /// Filter expression that the row has to match.
        filter: String,
        /// Row at which the search begins; it is not a result itself.
        from: usize,
        /// Whether later rows are searched, rather than earlier ones.
        forward: bool,
    },
    /// Write the rows of a list to a file.
    Export {
        /// File to write.
        path: PathBuf,
        /// The rows to write.
        view: Arc<dyn View>,
        /// Which of its rows are shown.
        list: Box<ListState>,
        /// Files that are never overwritten.
        inputs: Vec<PathBuf>,
    },
    /// Make dumps of a serial log.
    Import {
        /// Path of the serial log.
        log: PathBuf,
    },
    /// Complete a path that is typed.
    Complete {
        /// What is typed.
        input: String,
    },
    /// Look whether images can be at a path that was typed.
    Locate {
        /// What was typed.
        input: String,
    },
    /// Delete dumps, or archive them.
    Tidy {
        /// What is done.
        how: Tidy,
        /// The files, as they were listed.
        files: Vec<Found>,
        /// What was opened: only what lies below a directory of these is touched, and none of these.
        roots: Vec<PathBuf>,
        /// Files that are never touched.
        inputs: Vec<PathBuf>,
    },
}

/// A list that rows are asked of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListId {
    /// The list of dumps and logs.
    Catalogue,
    /// A list of the crash of a generation.
    Crash(u64, Slot),
}

/// A file, and what tells whether it has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Path of the file.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub len: u64,
    /// When it was last written to.
    pub modified: Option<SystemTime>,
}

/// What became of a job.
pub enum Message {
    /// Files that there are; the last message of a scan says so.
    Found {
        /// For which catalogue.
        generation: u64,
        /// Dumps found since the last message.
        dumps: Vec<Found>,
        /// Serial logs found since the last message.
        logs: Vec<PathBuf>,
        /// Whether these are all.
        done: bool,
    },
    /// The directories that a scan went through, as far as they can be watched.
    Folders {
        /// For which catalogue.
        generation: u64,
        /// Their paths; one more than can be watched when there are more.
        folders: Vec<PathBuf>,
    },
    /// What dumps say about themselves.
    Entries {
        /// For which catalogue.
        generation: u64,
        /// Each file, and what its dumps say.
        entries: Vec<(PathBuf, Vec<CatalogueEntry>)>,
        /// Whether they say what triage concludes too.
        judged: bool,
    },
    /// What a crash is about, before anything is concluded.
    Head {
        /// For which crash.
        generation: u64,
        /// What `kwab inspect` says of the dump.
        report: Arc<Report>,
    },
    /// The marks that were kept of a dump.
    Marks {
        /// For which crash.
        generation: u64,
        /// They, or why they cannot be read.
        marks: Result<Marks, String>,
    },
    /// A list is ready.
    List {
        /// For which crash.
        generation: u64,
        /// The list that is ready.
        slot: Slot,
        /// The rows of the list.
        view: Arc<dyn View>,
    },
    /// What of a long recording conclusions do not rest on.
    Skipped {
        /// For which crash.
        generation: u64,
        /// In words; empty when they rest on everything.
        skipped: Vec<String>,
    },
    /// Something could not be done.
    Failed {
        /// For which crash; 0 for none.
        generation: u64,
        /// What, in a line.
        text: String,
    },
    /// Something has been done.
    Told {
        /// What, in a line.
        text: String,
    },
    /// How far a job is; equal numbers mean that it is done.
    Progress {
        /// For which crash or catalogue.
        generation: u64,
        /// What is being done.
        what: &'static str,
        /// Units of work done, of `total`.
        done: usize,
        /// Of how much.
        total: usize,
    },
    /// Rows that answer a question.
    Answer {
        /// The list that was filtered or sorted.
        list: ListId,
        /// The question's number.
        number: u64,
        /// The rows, or what the question has wrong.
        rows: Result<Option<Vec<u32>>, String>,
    },
    /// The row that was looked for.
    Sought {
        /// The list that was searched.
        list: ListId,
        /// The question's number.
        number: u64,
        /// The row, when there is one.
        row: Option<usize>,
    },
    /// A path was completed.
    Completed {
        /// What was typed.
        input: String,
        /// What all that fits begins with.
        to: String,
        /// What fits, when it is more than one.
        others: String,
    },
    /// Images may be at this path.
    Located {
        /// Where they may be.
        path: PathBuf,
    },
    /// Dumps have been deleted or archived.
    Tidied {
        /// In a line.
        text: String,
        /// Whether none was kept.
        all: bool,
    },
    /// A log has been imported.
    Imported {
        /// The dumps that were made.
        dumps: Vec<PathBuf>,
        /// In a line.
        text: String,
    },
}

/// What is looked at now: jobs for anything older are of no use.
#[derive(Debug, Default)]
pub struct Generations {
    /// Generation of the list of dumps.
    pub catalogue: AtomicU64,
    /// Generation of the open crash.
    pub crash: AtomicU64,
    /// The crash beside it.
    pub second: AtomicU64,
    /// Number of the last question.
    pub question: AtomicU64,
}

impl Generations {
    fn wanted(&self, job: &Job) -> bool {
        match job {
            Job::Scan { generation, .. } | Job::Read { generation, .. } | Job::Judge { generation, .. } => {
                self.is_catalogue(*generation)
            }
            Job::Open { generation, .. }
            | Job::Index { generation, .. }
            | Job::Conclude { generation, .. }
            | Job::Beside { generation, .. } => self.is_crash(*generation),
            Job::Answer { number, .. } | Job::Seek { number, .. } => self.is_question(*number),
            Job::Import { .. } | Job::Export { .. } | Job::Complete { .. } | Job::Locate { .. } | Job::Tidy { .. } => {
                true
            }
        }
    }

    pub(crate) fn is_catalogue(&self, number: u64) -> bool {
        self.catalogue.load(Ordering::Relaxed) == number
    }

    pub(crate) fn is_crash(&self, number: u64) -> bool {
        self.crash.load(Ordering::Relaxed) == number || self.second.load(Ordering::Relaxed) == number
    }

    pub(crate) fn is_question(&self, number: u64) -> bool {
        self.question.load(Ordering::Relaxed) == number
    }
}

/// Does a job; gives those that follow from it.
pub fn perform(job: Job, current: &Generations, send: &mut dyn FnMut(Message)) -> Vec<Job> {
    if !current.wanted(&job) {
        return Vec::new();
    }
    match job {
        Job::Scan { generation, paths } => catalogue::scan(generation, &paths, current, send),
        Job::Read { generation, files } => return vec![catalogue::read(generation, files, current, send)],
        Job::Judge { generation, files } => catalogue::judged(generation, &files, current, send),
        Job::Open { generation, path, sources } => return crash::open(generation, path, &sources, current, send),
        Job::Index { generation, path, report, held } => crash::index(generation, &path, &report, held, current, send),
        Job::Conclude { generation, path, sources, whole } => {
            crash::conclude_long(generation, &path, &sources, whole, current, send);
        }
        Job::Beside { generation, slot, left, right, names } => {
            let mut watch = Watch { generation, what: "comparing", current, send };
            let pair = PairView::new(left, right, names, &mut |done, total| watch.told(done, total).is_continue());
            watch.finished();
            if let Some(pair) = pair {
                send(Message::List { generation, slot, view: Arc::new(pair) });
            }
        }
        Job::Answer { list, number, view, question } => {
            let total = view.len();
            let rows = list::answer(view.as_ref(), &question, &mut |done| {
                if done % (1 << 17) == 0 {
                    send(Message::Progress { generation: 0, what: "filter", done, total: total + 1 });
                }
                current.is_question(number)
            });
            send(Message::Progress { generation: 0, what: "filter", done: 1, total: 1 });
            send(Message::Answer { list, number, rows: rows.map_err(|error| error.to_string()) });
        }
        Job::Seek { list, number, view, filter, from, forward } => {
            let row = list::search(view.as_ref(), &filter, from, forward, &mut |_| current.is_question(number));
            send(Message::Sought { list, number, row: row.ok().flatten() });
        }
        Job::Export { path, view, list, inputs } => {
            let written = crate::export::write(&path, &crate::export::text(view.as_ref(), &list), &inputs);
            let name = path.display();
            send(match written {
                Ok(()) => Message::Told { text: format!("written to {name}") },
                Err(error) => Message::Failed { generation: 0, text: format!("{name}: {error}") },
            });
        }
        Job::Import { log } => import::import(&log, send),
        Job::Complete { input } => {
            let (to, others) = paths::complete(&input);
            send(Message::Completed { input, to, others });
        }
        Job::Locate { input } => send(match paths::locate(&input) {
            Ok(path) => Message::Located { path },
            Err(text) => Message::Failed { generation: 0, text },
        }),
        Job::Tidy { how, files, roots, inputs } => tidy::tidy(how, &files, &roots, &inputs, send),
    }
    Vec::new()
}

/// The threads and what they have to do. The first one opens dumps and does nothing else while there are others: what
/// it frees of a dump is where it reads the next one, since an allocator keeps what a thread frees for that thread.
pub struct Pool {
    queue: Arc<(Mutex<VecDeque<Job>>, Condvar)>,
}

impl Pool {
    /// Starts `threads` threads that send what they find out. They end with the process.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn start<M: Send + 'static>(
        threads: usize,
        current: Arc<Generations>,
        out: &Sender<M>,
        wrap: fn(Message) -> M,
    ) -> std::io::Result<Self> {
        let queue: Arc<(Mutex<VecDeque<Job>>, Condvar)> = Arc::default();
        for number in 0..threads.max(1) {
            let opens = (threads > 1).then_some(number == 0);
            let (queue, current, out) = (Arc::clone(&queue), Arc::clone(&current), out.clone());
            let work = move || {
                loop {
                    let job = next(&queue, opens);
                    // A job that panics costs its result, never the interface.
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        perform(job, &current, &mut |message| drop(out.send(wrap(message))))
                    }));
                    match done {
                        Ok(more) => more.into_iter().for_each(|job| push(&queue, job)),
                        Err(_) => {
                            let text = "a section of this dump could not be read: this is a bug of kwab".to_string();
                            drop(out.send(wrap(Message::Failed { generation: 0, text })));
                        }
                    }
                }
            };
            std::thread::Builder::new().name(format!("load {number}")).spawn(work)?;
        }
        Ok(Self { queue })
    }

    /// Queues a job; what a person waits for goes first.
    pub fn give(&self, job: Job) {
        push(&self.queue, job);
    }
}

fn push(queue: &(Mutex<VecDeque<Job>>, Condvar), job: Job) {
    let mut jobs = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(job, Job::Read { .. } | Job::Judge { .. }) {
        jobs.push_back(job);
    } else {
        jobs.push_front(job);
    }
    // Not every thread does every job.
    queue.1.notify_all();
}

/// The next job of a thread that opens dumps, or of one that does not; `None` does all.
fn next(queue: &(Mutex<VecDeque<Job>>, Condvar), opens: Option<bool>) -> Job {
    let mut jobs = queue.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let is_for = |job: &Job| opens.is_none_or(|opens| opens == matches!(job, Job::Open { .. } | Job::Index { .. }));
        if let Some(job) = jobs.iter().position(is_for).and_then(|at| jobs.remove(at)) {
            return job;
        }
        jobs = queue.1.wait(jobs).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_opens_dumps_and_the_others_do_the_rest() {
        let queue: (Mutex<VecDeque<Job>>, Condvar) = Default::default();
        let (generation, report) = (1, Arc::default());
        push(&queue, Job::Index { generation, path: PathBuf::new(), report, held: 0 });
        push(&queue, Job::Read { generation, files: Vec::new() });
        assert!(matches!(next(&queue, Some(false)), Job::Read { .. }));
        push(&queue, Job::Read { generation, files: Vec::new() });
        assert!(matches!(next(&queue, Some(true)), Job::Index { .. }));
        assert!(matches!(next(&queue, None), Job::Read { .. }));
    }
}
