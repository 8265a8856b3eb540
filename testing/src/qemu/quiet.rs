//! Measures how long a guest has been silent, not counting time in which the host did not run it.
//!
//! On a host with more work than processors a guest that makes progress may say nothing for a minute. Linux counts for
//! every thread how long it was runnable and waited for a processor (proc(5), `/proc/PID/task/TID/schedstat`, the
//! second number, in ns); the longest of these waits is not the guest's silence. A host that does not tell counts as
//! idle.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

/// Silence shorter than this is not looked at: the first look costs a read per thread.
const SHORT: Duration = Duration::from_secs(1);

/// The silence of one process.
#[derive(Debug)]
pub(super) struct Quiet {
    process: u32,
    since: Instant,
    waits: Option<HashMap<u32, u64>>,
}

impl Quiet {
    /// Nothing was heard from `process` from now on.
    pub(super) fn of(process: u32) -> Self {
        Self { process, since: Instant::now(), waits: None }
    }

    /// Something was heard.
    pub(super) fn broken(&mut self) {
        (self.since, self.waits) = (Instant::now(), None);
    }

    /// How long the process could have said something and did not.
    pub(super) fn lasted(&mut self) -> Duration {
        let lasted = self.since.elapsed();
        if lasted < SHORT {
            return lasted;
        }
        let process = self.process;
        let before = self.waits.get_or_insert_with(|| waits(process));
        lasted.saturating_sub(longest(before, &waits(process)))
    }
}

/// The longest time that one thread has waited between two readings.
fn longest(before: &HashMap<u32, u64>, now: &HashMap<u32, u64>) -> Duration {
    let waited = now.iter().map(|(thread, ns)| ns.saturating_sub(before.get(thread).copied().unwrap_or(0)));
    Duration::from_nanos(waited.max().unwrap_or(0))
}

/// The longest time that one thread of a process has waited for a processor since it began.
pub(super) fn waited(process: u32) -> Duration {
    longest(&HashMap::new(), &waits(process))
}

/// How long each thread of a process has waited for a processor, in ns.
fn waits(process: u32) -> HashMap<u32, u64> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads
        .filter_map(|thread| {
            let number = thread.file_name().to_str()?.parse().ok()?;
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((number, text.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_waited_longest_counts() {
        let before = HashMap::from([(1, 5_000), (2, 0)]);
        let now = HashMap::from([(1, 6_000), (2, 3_000), (3, 2_000)]);
        assert_eq!(longest(&before, &now), Duration::from_nanos(3_000));
        assert_eq!(longest(&now, &before), Duration::ZERO);
        assert_eq!(longest(&before, &HashMap::new()), Duration::ZERO);
    }

    #[test]
    fn threads_that_outnumber_the_processors_wait() {
        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            // A kernel without CONFIG_SCHED_INFO does not tell.
            return;
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let seen = std::sync::atomic::AtomicBool::new(false);
        let end = Instant::now() + Duration::from_secs(20);
        let busy = || {
            while !seen.load(std::sync::atomic::Ordering::Relaxed) && Instant::now() < end {
                std::hint::spin_loop();
            }
        };
        std::thread::scope(|scope| {
            let before = waits(std::process::id());
            (0..3 * processors).for_each(|_| drop(scope.spawn(busy)));
            while Instant::now() < end {
                std::thread::sleep(Duration::from_millis(20));
                if longest(&before, &waits(std::process::id())) > Duration::from_millis(50) {
                    seen.store(true, std::sync::atomic::Ordering::Relaxed);
                    break;
                }
            }
        });
        assert!(seen.into_inner(), "three busy threads per processor, and none of them waits");
    }
}
