//! What every mutant has to do: a fixed list of jobs in one guest, and what of their output is compared.
//!
//! Contracts of every area, applets of BusyBox's testsuite, the exam's programs and a short stress with every kind of
//! worker. All end in seconds; few make a program die, so that a dump of a dead program tells of the mutation.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::contracts::program;
use crate::image::Image;
use crate::jobs::{self, Job, Report};
use crate::setup::Consent;
use crate::suites::{Chosen, Suite};
use crate::{guest, paths};

/// Contracts, by name.
const CONTRACTS: &[&str] = &[
    "descriptors/dup2_replaces_the_target_in_one_step",
    "descriptors/fcntl_dupfd_starts_at_its_minimum",
    "descriptors/flock_belongs_to_the_open_file",
    "descriptors/lseek_checks_its_whence_and_offset",
    "descriptors/pipe_capacity_fills_and_nonblocking_write_is_partial",
    "descriptors/pipe_reads_what_is_there_then_end_of_file",
    "descriptors/readv_and_writev_gather_in_order",
    "descriptors/record_locks_belong_to_the_process",
    "descriptors/splice_moves_bytes_between_pipe_and_file",
    "descriptors/truncate_cuts_and_extends_with_zeros",
    "events/epoll_level_repeats_and_edge_does_not",
    "events/epoll_nests_and_wakes_its_watcher",
    "events/eventfd_wakes_a_blocked_reader",
    "events/poll_reports_each_kind_of_readiness",
    "events/signalfd_reads_blocked_signals",
    "events/timerfd_counts_expirations",
    "files/append_writes_from_two_processes_never_overlap",
    "files/fifo_open_waits_for_its_other_end",
    "files/getcwd_follows_renames_and_removal",
    "files/getdents_lists_every_name_once",
    "files/hard_links_share_one_inode",
    "files/paths_resolve_dots_slashes_and_limits",
    "files/permissions_bind_an_ordinary_user",
    "files/rename_replaces_atomically_and_checks_kinds",
    "files/statx_fills_what_was_asked",
    "files/symlinks_are_followed_or_not_as_asked",
    "processes/clone3_takes_a_sized_structure",
    "processes/exec_ends_the_other_threads",
    "processes/exec_of_elf_follows_its_headers",
    "processes/exec_passes_long_arguments_and_none",
    "processes/fork_copies_memory_and_shares_open_files",
    "processes/many_children_are_all_reaped",
    "processes/orphans_go_to_the_subreaper",
    "processes/pidfd_signals_and_polls_a_process",
    "processes/process_groups_move_within_a_session",
    "processes/user_ids_follow_the_saved_set",
    "processes/vfork_suspends_the_parent_and_shares_memory",
    "processes/waitid_peeks_and_tells_the_reason",
    "programs/a_dynamic_program_is_loaded_by_its_interpreter",
    "programs/shell_pipelines_connect_applets",
    "scheduling/affinity_is_a_subset_and_inherited",
    "scheduling/moved_threads_sleep_wake_and_end",
    "security/file_owners_are_signalled_only_by_who_may",
    "security/processes_of_another_user_are_not_signalled",
    "signals/alternate_stack_carries_the_handler",
    "signals/avx_registers_survive_handlers_and_switches",
    "signals/interval_timers_fire_and_report",
    "signals/posix_timers_signal_and_count_overruns",
    "signals/realtime_signals_queue_in_order_with_values",
    "signals/sa_restart_resumes_only_some_calls",
    "signals/ucontext_shows_and_changes_registers",
    "sockets/scm_rights_passes_open_files",
    "sockets/unix_listen_connect_accept",
    "subsystems/bind_mounts_show_a_tree_twice",
    "subsystems/message_queues_deliver_by_priority",
    "subsystems/mounts_appear_and_go",
    "subsystems/procfs_status_describes_the_process",
    "subsystems/ptys_carry_lines_with_editing",
    "threading/futex_requeue_moves_waiters",
    "threading/futexes_in_shared_memory_join_processes",
    "threading/mutexes_keep_a_counter_exact",
    "threading/priority_inheritance_futexes_hand_over",
    "threading/thread_local_storage_is_per_thread",
    "time/sleeps_last_at_least_as_long_as_asked",
    "time/the_vdso_clock_matches_the_system_call",
    "vm/anonymous_memory_is_zero_and_private",
    "vm/brk_moves_the_end_of_the_heap",
    "vm/fork_copies_on_write_both_ways",
    "vm/maps_file_lists_what_is_mapped",
    "vm/mremap_grows_shrinks_and_moves",
    "vm/munmap_splits_and_tolerates_gaps",
    "vm/private_file_pages_follow_the_file_until_written",
    "vm/shared_file_maps_write_through",
    "vm/truncation_reaches_every_space_with_the_file",
];

/// Applets of BusyBox's testsuite.
const APPLETS: &[&str] = &["awk", "cpio", "cut", "diff", "find", "grep", "gunzip", "sed", "sort", "tar"];

/// Programs of the exam.
const EXAM: &[&str] =
    &["children", "constants", "jit", "names", "reload", "spawn", "statistics", "threads", "wild-argument"];

/// What the stress program is called with: seconds, seed, copies.
const STRESS: &[&str] = &["3", "1", "1"];

/// Seconds that a job may take; the slowest takes a tenth on an idle machine.
const SECONDS: u32 = 60;

/// The jobs and the file system that they need.
#[derive(Clone, Debug)]
pub struct Loads {
    /// In the order in which they run.
    pub jobs: Vec<Job>,
    image: Image,
}

impl Loads {
    /// Builds the programs.
    pub fn prepare(consent: Consent) -> Result<Self> {
        let (mut image, applets) = Suite::Busybox.prepare(&Chosen::Slice(APPLETS), consent)?;
        let all = program::find(None)?;
        let contracts: Vec<_> = all.into_iter().filter(|row| CONTRACTS.contains(&row.name.as_str())).collect();
        let gone: Vec<_> = CONTRACTS.iter().filter(|name| contracts.iter().all(|row| row.name != **name)).collect();
        ensure!(gone.is_empty(), "no such contracts: {gone:?}");
        for (contract, file) in contracts.iter().zip(program::build(&contracts, consent)?) {
            image.program(&format!("/contracts/{}", contract.name), &file)?;
        }
        image.program(guest::LOADER, Path::new(guest::LOADER))?;
        image.program("/bin/exam", &guest::program("exam", consent)?)?;
        image.program("/bin/stress", &guest::program("stress", consent)?)?;
        let mut jobs: Vec<Job> = contracts.iter().map(program::job).collect();
        jobs.extend(EXAM.iter().map(|name| job(&format!("exam/{name}"), &["/bin/exam", "--live", name])));
        jobs.extend(applets.into_iter().map(|applet| Job { name: format!("{BUSYBOX}{}", applet.name), ..applet }));
        jobs.push(job("stress", &[&["/bin/stress"], STRESS].concat()));
        jobs.iter_mut().for_each(|job| job.seconds = SECONDS);
        Ok(Self { jobs, image })
    }

    /// Writes the file system with some of the jobs to a file of this name.
    pub fn archive(&self, jobs: &[Job], name: &str) -> Result<PathBuf> {
        let mut image = self.image.clone();
        jobs::put(&mut image, jobs);
        let file = paths::build("mutants")?.join(name);
        paths::write(&file, &image.archive()).context("the guest's file system")?;
        Ok(file)
    }
}

const BUSYBOX: &str = "busybox/";

fn job(name: &str, words: &[&str]) -> Job {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Job { name: name.to_owned(), seconds: SECONDS, words }
}

/// What is compared of a report: the testsuite's verdicts, what the stress finds broken, else all but the kernel's log.
#[must_use]
pub fn compared(report: &Report) -> Vec<&str> {
    let lines = report.lines.iter().map(String::as_str).filter(|line| !is_of_the_log(line));
    let counts = |line: &&str| match report.name.as_str() {
        "stress" => line.starts_with("BROKEN"),
        name if name.starts_with(BUSYBOX) => {
            ["PASS: ", "FAIL: ", "SKIPPED: "].iter().any(|word| line.starts_with(word))
        }
        _ => true,
    };
    lines.filter(counts).collect()
}

/// Whether a line begins with the time that the kernel's log puts there.
fn is_of_the_log(line: &str) -> bool {
    let time = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(time, _)| time.trim());
    time.is_some_and(|time| !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::End;

    fn report(name: &str) -> Report {
        let lines = ["BROKEN files", "PASS: sort", "[    1.25] kwab: a line of the log", "[x] of a program"];
        Report { name: name.into(), lines: lines.map(str::to_owned).to_vec(), end: End::Exit(0) }
    }

    #[test]
    fn each_kind_of_job_is_compared_by_what_it_promises() {
        assert_eq!(compared(&report("stress")), ["BROKEN files"]);
        assert_eq!(compared(&report("busybox/sort")), ["PASS: sort"]);
        assert_eq!(compared(&report("vm/x")), ["BROKEN files", "PASS: sort", "[x] of a program"]);
    }
}
