//! Says for each system call whether our kernel answers it and which contracts use it, from the sources of both.
//!
//! The calls are those of `kernel/abi`'s table; the kernel answers what its areas list as `(nr::name, …)`. A contract uses
//! a call when it names the C function or the number `SYS_name`; `ALIASES` has the functions whose call is called
//! otherwise. Words are compared, not programs traced: a call that only the C library makes by itself is not counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;

use super::program::Contract;
use crate::paths;

/// C functions and the call behind each.
const ALIASES: &[(&str, &str)] = &[
    ("_exit", "exit_group"),
    ("fork", "clone"),
    ("getdents", "getdents64"),
    ("readdir", "getdents64"),
    ("open", "openat"),
    ("posix_fallocate", "fallocate"),
    ("posix_fadvise", "fadvise64"),
    ("pread", "pread64"),
    ("pwrite", "pwrite64"),
    ("pthread_create", "clone"),
    ("pthread_mutex_lock", "futex"),
    ("raise", "tkill"),
    ("sem_wait", "futex"),
    ("sigaction", "rt_sigaction"),
    ("sigpending", "rt_sigpending"),
    ("sigprocmask", "rt_sigprocmask"),
    ("sigqueue", "rt_sigqueueinfo"),
    ("sigsuspend", "rt_sigsuspend"),
    ("sigtimedwait", "rt_sigtimedwait"),
    ("sigwaitinfo", "rt_sigtimedwait"),
    ("wait", "wait4"),
    ("waitpid", "wait4"),
    ("getrlimit", "prlimit64"),
    ("setrlimit", "prlimit64"),
    ("send", "sendto"),
    ("recv", "recvfrom"),
    ("inotify_init", "inotify_init1"),
    ("eventfd", "eventfd2"),
    ("signalfd", "signalfd4"),
];

/// The table as text: number, name, whether it is answered, the contracts that use it.
pub fn table(contracts: &[Contract]) -> Result<String> {
    let calls = calls()?;
    let answered = answered()?;
    let users = users(contracts, &calls)?;
    let mut text = String::new();
    let none = BTreeSet::new();
    for (number, name) in &calls {
        let used = users.get(name).unwrap_or(&none);
        let word = if answered.contains(name) { "yes" } else { "-" };
        let shown: Vec<&str> = used.iter().take(3).map(String::as_str).collect();
        let more = used.len().saturating_sub(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "{number:>4} {name:<26} {word:<4} {}{more}", shown.join(" "));
    }
    let covered = calls.iter().filter(|(_, name)| users.contains_key(name)).count();
    let both = calls.iter().filter(|(_, name)| users.contains_key(name) && answered.contains(name)).count();
    let answers = calls.iter().filter(|(_, name)| answered.contains(name)).count();
    let _ = writeln!(
        text,
        "{} calls: {answers} answered by our kernel, {covered} used by a contract, {both} both",
        calls.len()
    );
    Ok(text)
}

/// Number and name of every call of Linux.
fn calls() -> Result<Vec<(u64, String)>> {
    let text = paths::read(&paths::root().join("kernel/abi/src/syscalls/table.rs"))?;
    let row = |line: &str| {
        let (number, rest) = line.trim().split_once(' ')?;
        Some((number.parse().ok()?, rest.split_once('(')?.0.to_owned()))
    };
    Ok(text.lines().filter_map(row).collect())
}

/// The names that the kernel's areas list.
fn answered() -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in walkdir::WalkDir::new(paths::root().join("kernel/src")) {
        let file = entry?.into_path();
        if file.extension().is_some_and(|extension| extension == "rs") {
            let text = paths::read(&file)?;
            names.extend(text.split("(nr::").skip(1).map(|rest| words(rest).next().unwrap_or_default().to_owned()));
        }
    }
    Ok(names)
}

/// The contracts that use each call.
fn users(contracts: &[Contract], calls: &[(u64, String)]) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let names: BTreeSet<&str> = calls.iter().map(|(_, name)| name.as_str()).collect();
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for contract in contracts {
        let text = paths::read(&contract.source)?;
        for word in words(&text) {
            let alias = ALIASES.iter().find(|row| row.0 == word).map(|row| row.1);
            let call = alias.unwrap_or(word.strip_prefix("SYS_").unwrap_or(word));
            if names.contains(call) {
                users.entry(call.to_owned()).or_default().insert(contract.name.clone());
            }
        }
    }
    Ok(users)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contracts::program;

    #[test]
    fn the_calls_that_every_program_needs_have_a_contract() {
        let calls = calls().unwrap();
        let users = users(&program::find(None).unwrap(), &calls).unwrap();
        for name in ["read", "write", "openat", "clone", "execve", "wait4", "mmap", "rt_sigaction", "futex"] {
            assert!(users.contains_key(name), "{name}");
        }
        assert!(calls.len() > 350);
    }
}
