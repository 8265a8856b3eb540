//! Pairs threads, aligns their rows, and looks at each pair of rows.

use std::collections::{BTreeSet, HashSet, VecDeque};

use linux_abi::flags::process;
use linux_abi::syscalls::{ArgKind, ResultKind, Traits};

use super::beside::{Around, Beside, besides};
use super::killed::{killed_from_outside, last_before_a_signal};
use super::names::Names;
use super::operand::{Answer, Same};
use super::report::{Aligned, Divergence, DivergenceKind, Ends, OracleReport, SCHEMA, Side, Verdict};
use super::trace::{Called, Ended, Origin, Thread, Trace, TraceRow, What};
use crate::report::align::fingerprint;

/// Rows of the same calls that the report shows before a difference.
const BEFORE: usize = 5;
/// Calls that the report suspects.
const SUSPECTS: usize = 5;
/// Differences behind the first that the report shows.
const LATER: usize = 20;
/// Errors of futex(2) that tell of the request, not of the moment.
const REFUSED: &[&str] = &["EINVAL", "EFAULT", "ENOSYS", "EDEADLK", "EPERM", "ESRCH"];
/// Bytes of a thread's name in the report.
const LONGEST_LABEL: usize = 64;
/// Bytes of a path that decide which row is beside which; rings keep no more of some.
const PATH_BYTES: usize = 16;

/// What is compared.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// The program; without it the first that the good run executes.
    pub program: Option<String>,
    /// Compare from init on, which all programs of a recorded machine come from, though both runs execute the program.
    pub from_init: bool,
}

/// Compares two runs, which are called `good` and `bad` in the report after these paths.
#[must_use]
pub fn compare(good: (&str, &Trace), bad: (&str, &Trace), options: &CompareOptions) -> OracleReport {
    let mut report = OracleReport {
        schema: SCHEMA,
        good: side(good.0, good.1),
        bad: side(bad.0, bad.1),
        program: options.program.clone(),
        verdict: Verdict::CannotTell,
        first: None,
        before: Vec::new(),
        suspects: Vec::new(),
        behind: Vec::new(),
        later_count: 0,
        later: Vec::new(),
        ends: Ends { good: None, bad: None },
        calls_alike: 0,
        alike: BTreeSet::new(),
        partings: Vec::new(),
        aligned: Aligned::default(),
    };
    let Some(root) = good.1.root(options.program.as_deref()) else { return report };
    let executed = root.0.rows.get(root.1).and_then(|row| row.call()).and_then(Called::executed);
    report.program = executed.or(report.program);
    let base = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let other =
        bad.1.root(report.program.as_deref()).or_else(|| bad.1.root(base(report.program.as_deref()?).as_deref()));
    // A kernel that goes wrong before the program begins goes wrong in what led to it.
    let (root, other) = match (other.filter(|_| !options.from_init), good.1.first(), bad.1.first()) {
        (Some(other), ..) => (root, other),
        (None, Some(first), Some(from)) => {
            let program = report.program.take().unwrap_or_default();
            let why = if other.is_some() { "does the same in both runs" } else { "is not executed in this run" };
            report.bad.gaps.push(format!("{program} {why}: compared from the first thread on"));
            (first, from)
        }
        _ => return report,
    };
    let mut runs = Runs::new(good.1, bad.1);
    runs.queue.push_back(Pair::new("1".into(), root, other));
    while let Some(pair) = runs.queue.pop_front() {
        runs.threads(pair);
    }
    report.ends = Ends { good: ended(&root.0.rows[root.1..]), bad: ended(&other.0.rows[other.1..]) };
    runs.conclude(&mut report);
    report
}

fn side(path: &str, trace: &Trace) -> Side {
    Side {
        path: path.to_owned(),
        origin: trace.origin.into(),
        threads: trace.threads.len(),
        calls: trace.calls(),
        gaps: trace.gaps.clone(),
    }
}

/// The name of a thread's child; of a long line of children the end.
fn labelled(parent: &str, number: u32) -> String {
    match parent.rsplit_once('.').filter(|_| parent.len() > LONGEST_LABEL) {
        Some((_, last)) => format!("….{last}.{number}"),
        None => format!("{parent}.{number}"),
    }
}

/// How the thread of these rows ended, in words.
fn ended(rows: &[TraceRow]) -> Option<String> {
    rows.iter().rev().find_map(|row| match &row.what {
        What::End(end) => Some(end.shown()),
        _ => None,
    })
}

/// Two threads that are compared.
struct Pair<'t> {
    label: String,
    good: &'t [TraceRow],
    bad: &'t [TraceRow],
    fds: Names,
    /// Where the last calls of both began or ended, if a signal ended both threads: whether such a call is seen to
    /// return depends on the tracer.
    dying: Option<(usize, usize)>,
    /// Whether another process ended both threads with the same signal: how far they came before depends on time.
    killed: bool,
}

impl<'t> Pair<'t> {
    /// Two threads, each from one of its rows on.
    fn new(label: String, good: (&'t Thread, usize), bad: (&'t Thread, usize)) -> Self {
        let killer = |(thread, _): (&'t Thread, usize)| killed_from_outside(thread.tid, &thread.rows);
        let killed = killer(good).is_some_and(|name| killer(bad) == Some(name));
        let (good, bad) = (&good.0.rows[good.1..], &bad.0.rows[bad.1..]);
        let dying = last_before_a_signal(good).zip(last_before_a_signal(bad));
        // What a child inherits is bound again where it is used first: a copy for each would be too much.
        Self { label, good, bad, fds: Names::default(), dying, killed }
    }
}

/// A difference before it is put into words.
struct Found<'t> {
    /// When it happened in the bad run.
    at: usize,
    kind: DivergenceKind,
    label: String,
    argument: Option<&'static str>,
    rows: Beside<'t>,
    /// Which list of [`Runs::alike`], and how many of it were before.
    before: (usize, usize),
}

struct Runs<'t> {
    good: &'t Trace,
    bad: &'t Trace,
    queue: VecDeque<Pair<'t>>,
    pids: Names,
    /// Whether threads share descriptors, so that their numbers depend on who was first.
    shares: bool,
    /// Whether both runs began with the same descriptors open, so that numbers are compared as they are.
    same_fds: Option<bool>,
    /// Arguments of which both runs show the string.
    shown: HashSet<(&'t str, usize)>,
    /// The number of the last call of the good run's machine: the recording may end in it.
    last_of_good: Option<u32>,
    /// The signals that the good run has anywhere, and the bad one.
    signals: [HashSet<&'t str>; 2],
    found: Vec<Found<'t>>,
    /// The calls of each pair of threads that were the same.
    alike: Vec<Vec<&'t Called>>,
    /// The signals that both runs handled, each with what was [alike](Self::alike) before it.
    handled: Vec<((usize, usize), &'t str)>,
    /// The numbers of the calls that stand beside each other, each with its row of the bad run.
    pairs: Vec<(u32, u32, &'t Called)>,
}

impl<'t> Runs<'t> {
    fn new(good: &'t Trace, bad: &'t Trace) -> Self {
        let of_good = shown(good);
        let shown = shown(bad).intersection(&of_good).copied().collect();
        let shares = calls(good).chain(calls(bad)).any(makes_threads);
        Self {
            good,
            bad,
            queue: VecDeque::new(),
            pids: Names::default(),
            shares,
            same_fds: None,
            shown,
            last_of_good: calls(good).filter_map(|call| call.number).max(),
            signals: [signals(good), signals(bad)],
            found: Vec::new(),
            alike: Vec::new(),
            handled: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// Compares two threads and queues their children.
    fn threads(&mut self, mut pair: Pair<'t>) {
        let (good, bad) = (telling(pair.good), telling(pair.bad));
        let besides = besides(&good, &bad, &|row| self.print(row));
        let around = Around::of(&besides);
        self.alike.push(Vec::new());
        let has_calls = |row: &Beside<'_>| matches!(row, (Some(row), Some(_)) if row.call().is_some());
        let both_came = besides.iter().rposition(has_calls).map_or(0, |last| last + 1);
        let mut children = 0;
        for (at, beside) in besides.iter().enumerate() {
            match *beside {
                (Some(left), Some(right)) => {
                    let child = self.rows(left, right, &mut pair);
                    if let Some((here, there)) = child {
                        children += 1;
                        let label = labelled(&pair.label, children);
                        self.queue.push_back(Pair::new(label, (here, 0), (there, 0)));
                    }
                }
                (left, right)
                    if pair.killed && at >= both_came && left.or(right).is_some_and(|row| row.call().is_some()) => {}
                beside => self.alone(beside, at, &around, &pair.label),
            }
        }
    }

    /// What decides beside which row this one stands: the call, and the path that it is about.
    fn print(&self, row: &TraceRow) -> u64 {
        fingerprint(&match &row.what {
            What::Signal { .. } | What::End(_) => "end".to_owned(),
            What::Call(call) => {
                let mut print = call.name.clone().into_owned();
                for (at, operand) in call.args.iter().enumerate() {
                    let is_path = matches!(call.kind(at), Some(ArgKind::Path));
                    if let Some(text) =
                        operand.text.as_ref().filter(|_| is_path && self.shown.contains(&(&call.name, at)))
                    {
                        print.push(' ');
                        print.push_str(&String::from_utf8_lossy(&text.bytes[..text.bytes.len().min(PATH_BYTES)]));
                    }
                }
                print
            }
        })
    }

    /// Compares two rows; gives the threads that they made.
    fn rows(
        &mut self,
        left: &'t TraceRow,
        right: &'t TraceRow,
        pair: &mut Pair<'t>,
    ) -> Option<(&'t Thread, &'t Thread)> {
        match (&left.what, &right.what) {
            (What::Call(good), What::Call(bad)) => {
                self.pairs.extend(good.number.zip(bad.number).map(|(here, there)| (here, there, &**bad)));
                let dying = pair.dying == Some((left.at, right.at));
                let differs = self.calls(good, bad, pair).filter(|(kind, _)| !(dying && kind.is_of_answer()));
                if let Some((kind, argument)) = differs {
                    self.differs(kind, argument, (Some(left), Some(right)), right.at, &pair.label);
                } else if let Some(alike) = self.alike.last_mut() {
                    alike.push(bad);
                }
                let (here, there) = (good.made()?, bad.made()?);
                self.pids.set(here, there);
                self.good.thread(u32::try_from(here).ok()?).zip(self.bad.thread(u32::try_from(there).ok()?))
            }
            (What::End(good), What::End(bad)) if good != bad => {
                self.differs(DivergenceKind::End, None, (Some(left), Some(right)), right.at, &pair.label);
                None
            }
            (What::Signal { name, .. }, What::Signal { acts: Some(true), .. }) => {
                self.handled.push((self.before(), name));
                None
            }
            _ => None,
        }
    }

    fn differs(
        &mut self,
        kind: DivergenceKind,
        argument: Option<&'static str>,
        rows: Beside<'t>,
        at: usize,
        label: &str,
    ) {
        let before = self.before();
        self.found.push(Found { at, kind, label: label.to_owned(), argument, rows, before });
    }

    /// Which list of calls that were alike is being filled, and how many it has.
    fn before(&self) -> (usize, usize) {
        (self.alike.len() - 1, self.alike.last().map_or(0, Vec::len))
    }

    /// What differs in two calls of one name, if anything does.
    fn calls(
        &mut self,
        good: &Called,
        bad: &Called,
        pair: &mut Pair<'t>,
    ) -> Option<(DivergenceKind, Option<&'static str>)> {
        let args = good.known.map_or(&[][..], |known| known.args);
        for (at, ((arg, here), there)) in args.iter().zip(&good.args).zip(&bad.args).enumerate() {
            let same = match (arg.kind, here.word, there.word) {
                (ArgKind::Fd | ArgKind::DirFd, Some(here), Some(there)) => self.fds(here, there, pair),
                (ArgKind::Pid, Some(here), Some(there)) => self.pids(here as i32, there as i32),
                // Random bytes are meant to differ.
                (ArgKind::Ptr, ..) if good.name == "getrandom" => Same::CannotTell,
                _ => here.same(there, arg.kind),
            };
            if same == Same::No {
                let is_answer = matches!(arg.kind, ArgKind::Ptr) && good.has(Traits::FILLS_MEMORY) && !good.reads(at);
                let kind = if is_answer { DivergenceKind::Memory } else { DivergenceKind::Argument };
                return Some((kind, Some(arg.name)));
            }
        }
        let same = match (&good.answer, &bad.answer) {
            (Answer::Value(here), Answer::Value(there)) => self.values((good, *here), (bad, *there), pair),
            (Answer::Error(here), Answer::Error(there)) => (here == there).into(),
            (Answer::Value(_) | Answer::Error(_), Answer::None) if good.returns() => {
                return Some((DivergenceKind::NotReturned, None));
            }
            (Answer::None, Answer::Value(_) | Answer::Error(_)) => {
                let is_cut = good.number.is_some() && good.number == self.last_of_good;
                (self.shares || !good.returns() || is_cut).into()
            }
            (Answer::Value(_), Answer::Error(_)) | (Answer::Error(_), Answer::Value(_)) => Same::No,
            _ => Same::CannotTell,
        };
        (same == Same::No).then_some((DivergenceKind::Answer, None))
    }

    fn fds(&self, here: u64, there: u64, pair: &mut Pair<'t>) -> Same {
        let (here, there) = (here as i32, there as i32);
        match self.same_fds {
            _ if here < 0 || there < 0 => (here == there).into(),
            Some(true) if !self.shares => (here == there).into(),
            Some(false) if !self.shares => pair.fds.same(here.into(), there.into()),
            _ => Same::CannotTell,
        }
    }

    /// Ids as arguments: 0 and -1 mean the same in every run, negative ones are groups.
    fn pids(&mut self, here: i32, there: i32) -> Same {
        if here.min(there) <= 0 && (here.max(there) > 0 || here.max(there) >= -1) {
            return (here == there).into();
        }
        self.pids.same(i64::from(here).abs(), i64::from(there).abs())
    }

    fn values(&mut self, good: (&Called, i64), bad: (&Called, i64), pair: &mut Pair<'t>) -> Same {
        let ((good, here), (bad, there)) = (good, bad);
        match good.known.map(|known| known.result) {
            Some(ResultKind::Fd) => {
                let same = *self.same_fds.get_or_insert(here == there);
                if same && !self.shares {
                    return (here == there).into();
                }
                pair.fds.set(here, there);
                Same::Yes
            }
            Some(ResultKind::Pid) if good.makes_a_process() => ((here > 0) == (there > 0)).into(),
            Some(ResultKind::Pid) if here > 0 && there > 0 => self.pids.same(here, there),
            Some(ResultKind::Address) => good
                .is_as_asked(here)
                .zip(bad.is_as_asked(there))
                .map_or(Same::CannotTell, |(here, there)| (here == there).into()),
            Some(ResultKind::Never) => Same::Yes,
            _ => (here == there).into(),
        }
    }

    /// A row that the other run has not.
    fn alone(&mut self, (left, right): Beside<'t>, at: usize, around: &Around<'t>, label: &str) {
        let Some(row) = left.or(right) else { return };
        let kind = match &row.what {
            What::End(_) => return,
            What::Signal { name, acts } => {
                // Where a signal stands between two calls depends on time, and events name the process only; strace
                // shows ignored ones too.
                let others = &self.signals[usize::from(left.is_some())];
                let acts = acts == &Some(true);
                if others.contains(name.as_str()) || !acts {
                    if left.is_none() && acts {
                        self.handled.push((self.before(), name));
                    }
                    return;
                }
                DivergenceKind::Signal
            }
            What::Call(call) => {
                // How often a program sleeps depends on the machine.
                if matches!(&*call.name, "nanosleep" | "clock_nanosleep") && call.answer == Answer::Value(0) {
                    return;
                }
                // A lock whose word is free is taken without a call.
                if call.locks_a_futex() && !call.is_refused() {
                    return;
                }
                // Rings leave these out.
                let is_brief = call.known.is_some_and(|known| known.args.is_empty());
                if is_brief && [self.good, self.bad].iter().any(|trace| trace.origin == Origin::Rings) {
                    return;
                }
                // A wait that was refused for what was asked does not depend on time, if the good run never was.
                if call.name == "futex"
                    && calls(self.good).any(|other| other.answer == call.answer && other.name == call.name)
                {
                    return;
                }
                let mut neighbours = around.beside[at].iter().flatten().filter_map(|row| row.call());
                // A program that polls asks as often as it has time for.
                if neighbours.any(|other| other.text == call.text && other.answer == call.answer) {
                    return;
                }
                match (left, &*call.name) {
                    (None, "futex") => DivergenceKind::Answer,
                    (None, _) => DivergenceKind::Extra,
                    (Some(_), _) => DivergenceKind::Missing,
                }
            }
        };
        self.differs(kind, None, (left, right), around.next[at], label);
    }

    /// What may have misled the program before a place: calls that wrote to its memory, signals that it handled.
    fn suspects(&self, (list, before): (usize, usize)) -> Vec<(Option<u32>, String)> {
        let calls = self.alike[list][..before].iter().enumerate();
        let calls = calls.filter(|(_, call)| call.has(Traits::FILLS_MEMORY));
        let calls = calls.map(|(at, call)| (at, (call.number, call.line())));
        let handled = self.handled.iter().filter(|((of, at), _)| *of == list && *at <= before);
        let during = |at: usize| at.checked_sub(1).and_then(|at| self.alike[list].get(at)?.number);
        let handled = handled.map(|((_, at), name)| (*at, (during(*at), format!("{name} was handled"))));
        let mut rows: Vec<(usize, (Option<u32>, String))> = calls.chain(handled).collect();
        rows.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        rows.into_iter().take(SUSPECTS).map(|(_, row)| row).collect()
    }

    /// Sorts what was found by time and puts it into words.
    fn conclude(mut self, report: &mut OracleReport) {
        self.found.sort_by_key(|found| found.at);
        report.calls_alike = self.alike.iter().map(Vec::len).sum();
        report.verdict = match (self.found.is_empty(), report.calls_alike) {
            (false, _) => Verdict::Differs,
            (true, 0) => Verdict::CannotTell,
            (true, _) => Verdict::Same,
        };
        self.pairs.sort_by_key(|(_, bad, _)| *bad);
        report.aligned.pairs = self.pairs.iter().map(|(good, bad, _)| (*good, *bad)).collect();
        report.aligned.rows = self.pairs.iter().map(|(_, bad, call)| (*bad, call.line())).collect();
        let Some((first, later)) = self.found.split_first() else { return };
        let divergence = first.divergence();
        let alike = &self.alike[first.before.0][..first.before.1];
        report.before = alike[alike.len().saturating_sub(BEFORE)..].iter().map(|call| call.line()).collect();
        let number = |row: Option<&TraceRow>| row.and_then(TraceRow::call).and_then(|call| call.number);
        report.aligned.first = (number(first.rows.0), number(first.rows.1));
        report.aligned.last = alike.last().and_then(|call| call.number);
        if !divergence.is_of_kernel() {
            let suspects = self.suspects(first.before);
            report.aligned.suspects = suspects.iter().filter_map(|(number, _)| *number).collect();
            report.suspects = suspects.into_iter().map(|(_, row)| row).collect();
        }
        report.alike = self.alike.iter().flatten().map(|call| call.name.clone().into_owned()).collect();
        report.first = Some(divergence);
        report.later_count = later.len();
        report.later = later.iter().take(LATER).map(Found::divergence).collect();
    }
}

/// The rows without those that differ from run to run. A call that was to be restarted is made again; one that was the
/// thread's last never returned.
fn telling(rows: &[TraceRow]) -> Vec<&TraceRow> {
    let last = rows.iter().rposition(|row| row.call().is_some());
    let telling = |(at, row): &(usize, &TraceRow)| !(row.is_noise() || row.is_restarted() && Some(*at) != last);
    rows.iter().enumerate().filter(telling).map(|(_, row)| row).collect()
}

fn calls(trace: &Trace) -> impl Iterator<Item = &Called> {
    trace.threads.iter().flat_map(|thread| &thread.rows).filter_map(TraceRow::call)
}

fn signals(trace: &Trace) -> HashSet<&str> {
    let rows = trace.threads.iter().flat_map(|thread| &thread.rows);
    let names =
        rows.filter_map(|row| if let What::Signal { name, .. } = &row.what { Some(name.as_str()) } else { None });
    names.collect()
}

/// The arguments of which a trace shows strings.
fn shown(trace: &Trace) -> HashSet<(&str, usize)> {
    let texts = |call: &Called| {
        let shown = call.args.iter().enumerate().filter(|(_, arg)| arg.text.is_some());
        shown.map(|(at, _)| at).collect::<Vec<_>>()
    };
    calls(trace).flat_map(|call| texts(call).into_iter().map(|at| (&*call.name, at))).collect()
}

/// Whether a call makes a thread, which shares the descriptors.
fn makes_threads(call: &Called) -> bool {
    match &*call.name {
        "clone" => call.args.first().is_some_and(|flags| {
            flags.word.is_some_and(|word| word & process::CLONE_FILES != 0)
                || flags.written.as_ref().is_some_and(|words| words.contains("CLONE_FILES"))
        }),
        "clone3" => true,
        _ => false,
    }
}

impl TraceRow {
    /// The call of the row.
    pub(super) fn call(&self) -> Option<&Called> {
        if let What::Call(call) = &self.what { Some(call) } else { None }
    }

    fn is_noise(&self) -> bool {
        self.call().is_some_and(|call| {
            let waits = call.name == "futex" && !call.is_refused();
            let varies = call.has(Traits::VARIES) && !matches!(call.answer, Answer::Error(_));
            (varies || waits) && !call.locks_a_futex()
        })
    }

    fn is_restarted(&self) -> bool {
        self.call().is_some_and(|call| call.answer == Answer::Restart)
    }
}

impl Called {
    fn kind(&self, at: usize) -> Option<ArgKind> {
        Some(self.known?.args.get(at)?.kind)
    }

    /// Whether it is futex(2) and was refused for what was asked, not for the moment.
    fn is_refused(&self) -> bool {
        self.name == "futex" && matches!(&self.answer, Answer::Error(why) if REFUSED.contains(&why.as_str()))
    }

    /// Whether it is an operation of futex(2) on a lock that the kernel keeps in the word: it says whose the lock is,
    /// where a wait for a word only says that time passes.
    fn locks_a_futex(&self) -> bool {
        /// Bits of the operation that are flags (FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME).
        const FLAGS: u64 = 0x180;
        let operation = self.args.get(1).filter(|_| self.name == "futex");
        operation.is_some_and(|operation| {
            operation.word.is_some_and(|word| matches!(word & !FLAGS, 6..=8 | 13))
                || operation.written.as_ref().is_some_and(|words| words.contains("LOCK_PI"))
        })
    }

    /// Whether the call comes back to the program at all.
    fn returns(&self) -> bool {
        !matches!(&*self.name, "exit" | "exit_group" | "rt_sigreturn")
    }

    fn makes_a_process(&self) -> bool {
        matches!(&*self.name, "clone" | "clone3" | "fork" | "vfork")
    }

    /// The process or thread that the call made.
    fn made(&self) -> Option<i64> {
        self.answer.value().filter(|pid| *pid > 0 && self.makes_a_process())
    }

    /// Whether an address is the one that was asked for; `None` when none was asked for.
    fn is_as_asked(&self, address: i64) -> Option<bool> {
        let asked = self.args.first()?.word.filter(|word| *word != 0)?;
        Some(asked == address as u64)
    }
}

impl Ended {
    fn shown(&self) -> String {
        match self {
            Self::Exit(status) => format!("exit status {status}"),
            Self::Signal(name) => format!("killed by {name}"),
        }
    }
}

impl Found<'_> {
    fn divergence(&self) -> Divergence {
        let line = |row: Option<&TraceRow>| {
            row.map(|row| match &row.what {
                What::Call(call) => call.line(),
                What::Signal { name, .. } => name.clone(),
                What::End(end) => end.shown(),
            })
        };
        let row = self.rows.0.or(self.rows.1);
        let name = row.map_or_else(String::new, |row| match &row.what {
            What::Call(call) => call.name.clone().into_owned(),
            What::Signal { name, .. } => name.clone(),
            What::End(_) => "end".to_owned(),
        });
        Divergence {
            kind: self.kind,
            thread: self.label.clone(),
            name,
            argument: self.argument.map(str::to_owned),
            good: line(self.rows.0),
            bad: line(self.rows.1),
        }
    }
}
