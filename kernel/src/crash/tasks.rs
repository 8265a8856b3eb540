//! Lists the threads of a machine that hangs on the console, for a log without a dump: who sleeps, for how long, in
//! which call, for what, and the way there. The lines are those of Linux's list of tasks, with more words behind.

use core::fmt::{self, Display, Formatter};

use linux_abi::syscalls;
use machine::crash;

use crate::log;
use crate::sched::ThreadState;
use crate::sync::WaitReason;
use crate::task::{Thread, tree};

/// Threads that are listed, and frames of each.
const MOST: usize = 32;
const MAX_FRAMES: usize = 12;

/// Says a line for each thread of a program, and one for each frame of its stack. Nothing when the tree is locked.
pub(super) fn tell(say: fn(fmt::Arguments<'_>)) {
    let told = tree::try_threads(|threads| {
        let programs = || threads.iter().filter(|thread| thread.user_frame().is_some());
        for thread in programs().take(MOST) {
            say(format_args!("{}", Line(thread)));
            let resume = if thread.is_parked() { thread.resume_point() } else { Default::default() };
            if resume.ip != 0 {
                for (index, addr) in crash::backtrace(resume.ip, resume.fp).take(MAX_FRAMES).enumerate() {
                    say(format_args!("{index}: {addr:016x}"));
                }
            }
        }
        programs().count()
    });
    match told {
        Some(count) if count > MOST => say(format_args!("kwab: {} more threads", count - MOST)),
        Some(_) => {}
        None => say(format_args!("kwab: no list of threads: it is locked")),
    }
}

/// The line of a thread.
struct Line<'a>(&'a Thread);

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let thread = self.0;
        let state = match thread.sched.state() {
            ThreadState::Running | ThreadState::Queued => 'R',
            ThreadState::Interruptible => 'S',
            ThreadState::Stopped => 'T',
            ThreadState::Dead => 'X',
            _ => 'D',
        };
        let comm = thread.name.try_lock().map_or([0; 16], |name| *name);
        let len = comm.iter().position(|byte| *byte == 0).unwrap_or(16);
        let (pid, tid, ppid) = (thread.pid(), thread.tid(), thread.process.ppid());
        write!(f, "task:{} state:{state} stack:0 pid:{pid} tid:{tid} ppid:{ppid}", log::Escaped(&comm[..len]))?;
        if !matches!(state, 'S' | 'D') {
            return Ok(());
        }
        let wait = thread.sched.waits();
        let asleep = machine::time::now().saturating_sub(wait.since);
        write!(f, " asleep:{}.{:03}", asleep / 1_000_000_000, asleep / 1_000_000 % 1000)?;
        let call = thread.user_frame().and_then(|frame| frame.syscall());
        if let Some(call) = call.and_then(syscalls::by_number) {
            write!(f, " call:{}", call.name)?;
        }
        match WaitReason::text(wait.reason) {
            Some(reason) => write!(f, " waits:{reason}"),
            None => Ok(()),
        }
    }
}
