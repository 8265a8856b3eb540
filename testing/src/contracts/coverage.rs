//! Says for each system call whether our kernel answers it, with which flags, and which contracts use it.
//!
//! Everything is read from the sources of both. The calls and their flags are those of `kernel/abi`; the kernel answers
//! what its areas list as `(nr::name, …)`, and knows a flag that its code names. A contract uses a call when it names
//! the C function or the number `SYS_name`; `ALIASES` has the functions whose call is called otherwise. Words are
//! compared, not programs traced: a call that only the C library makes by itself is not counted, and a flag that the
//! kernel accepts without naming it (because it changes nothing) counts as not known.
//!
//! `testing/SYSCALLS.md` is the [`page`] of it, and a test holds it against the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use linux_abi::flags::FlagSet;
use linux_abi::syscalls::{ArgKind, Syscall, TABLE};

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

/// What the sources say.
struct Coverage {
    answered: BTreeSet<String>,
    users: BTreeMap<String, BTreeSet<String>>,
    /// Words of the kernel's own code, without the crate that defines the flags.
    kernel_words: BTreeSet<String>,
    /// Words of each contract.
    contract_words: BTreeMap<String, BTreeSet<String>>,
}

/// The names of the calls that our kernel has a function for.
pub fn answered() -> Result<BTreeSet<String>> {
    Ok(Coverage::read(&[])?.answered)
}

/// The table as text: number, name, whether it is answered, the contracts that use it.
pub fn table(contracts: &[Contract]) -> Result<String> {
    let coverage = Coverage::read(contracts)?;
    let mut text = String::new();
    for call in TABLE {
        let word = if coverage.answered.contains(call.name) { "yes" } else { "-" };
        let _ = writeln!(text, "{:>4} {:<26} {word:<4} {}", call.nr, call.name, coverage.some_users(call.name, ""));
    }
    let _ = writeln!(text, "{}", coverage.summary());
    Ok(text)
}

/// Where [`page`] is kept.
pub fn page_file() -> PathBuf {
    paths::root().join("testing/SYSCALLS.md")
}

/// The page for the repository: the calls, then every set of flags.
pub fn page(contracts: &[Contract]) -> Result<String> {
    let coverage = Coverage::read(contracts)?;
    let mut text = String::from(PAGE_HEAD);
    let _ = writeln!(text, "{}.\n", coverage.summary());
    text.push_str("| nr | call | here | flags | contracts |\n|---:|---|---|---|---|\n");
    for call in TABLE {
        let here = if coverage.answered.contains(call.name) { "yes" } else { "" };
        let sets: Vec<String> = sets(call).map(|set| format!("[{0}](#{0})", set.name.to_lowercase())).collect();
        let users = coverage.some_users(call.name, "`");
        let _ = writeln!(text, "| {} | `{}` | {here} | {} | {users} |", call.nr, call.name, sets.join(" "));
    }
    text.push_str("\n## Flags\n");
    for set in linux_abi::flags::ALL.iter().flat_map(|area| area.iter()) {
        coverage.flags(set, &mut text);
    }
    Ok(text)
}

const PAGE_HEAD: &str = "# System calls: what our kernel answers, with which flags, and which contracts cover it

Generated from the sources by `cargo xtask contracts --syscalls --write`; a test fails when it is out of date. `here`
says whether the kernel has a function for the call. Of the flags, **bold** is named by the kernel's code and used by a
contract together with a call that takes it, plain is named and not covered, ~~struck out~~ is not named by the kernel.

";

/// The sets of flags that a call takes.
fn sets(call: &'static Syscall) -> impl Iterator<Item = &'static FlagSet> {
    call.args.iter().filter_map(|arg| match arg.kind {
        ArgKind::Flags(set) | ArgKind::Flags64(set) => Some(set),
        ArgKind::CloneFlags => Some(&linux_abi::flags::process::CLONE),
        _ => None,
    })
}

impl Coverage {
    fn read(contracts: &[Contract]) -> Result<Self> {
        let mut answered = BTreeSet::new();
        let mut kernel_words = BTreeSet::new();
        for folder in ["kernel/src", "kernel/logic/src"] {
            for entry in walkdir::WalkDir::new(paths::root().join(folder)) {
                let file = entry?.into_path();
                if file.extension().is_some_and(|extension| extension == "rs") {
                    let text = paths::read(&file)?;
                    let names =
                        text.split("(nr::").skip(1).map(|rest| words(rest).next().unwrap_or_default().to_owned());
                    answered.extend(names);
                    kernel_words.extend(words(&text).filter(|word| is_constant(word)).map(str::to_owned));
                }
            }
        }
        let mut contract_words = BTreeMap::new();
        for contract in contracts {
            let text = paths::read(&contract.source)?;
            contract_words.insert(contract.name.clone(), words(&code(&text)).map(str::to_owned).collect());
        }
        Ok(Self { answered, users: users(&contract_words), kernel_words, contract_words })
    }

    /// The first contracts that use a call and how many more there are, each name between `quotes`.
    fn some_users(&self, call: &str, quotes: &str) -> String {
        let Some(used) = self.users.get(call) else { return String::new() };
        let shown: Vec<String> = used.iter().take(3).map(|name| format!("{quotes}{name}{quotes}")).collect();
        let more = used.len().saturating_sub(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", shown.join(" "))
    }

    fn summary(&self) -> String {
        let count = |wanted: &dyn Fn(&str) -> bool| TABLE.iter().filter(|call| wanted(call.name)).count();
        let answered = |name: &str| self.answered.contains(name);
        let covered = |name: &str| self.users.contains_key(name);
        format!(
            "{} calls: {} answered by our kernel, {} used by a contract, {} both",
            TABLE.len(),
            count(&answered),
            count(&covered),
            count(&|name| answered(name) && covered(name))
        )
    }

    /// The lines of one set of flags.
    fn flags(&self, set: &'static FlagSet, text: &mut String) {
        let takers: Vec<&str> = TABLE
            .iter()
            .filter(|call| sets(call).any(|other| core::ptr::eq(other, set)))
            .map(|call| call.name)
            .collect();
        if takers.is_empty() {
            return;
        }
        let values = set.fields.iter().flat_map(|field| field.values.iter().map(|value| value.1));
        let names: BTreeSet<&str> = values.chain(set.bits.iter().map(|bit| bit.1)).collect();
        let _ = writeln!(text, "\n### {}\n\n{} · {}\n", set.name, takers.join(", "), set.source);
        let written: Vec<String> = names.iter().map(|name| self.flag(name, &takers)).collect();
        let _ = writeln!(text, "{}", written.join(" "));
    }

    fn flag(&self, name: &str, takers: &[&str]) -> String {
        if !self.kernel_words.contains(name) {
            return format!("~~{name}~~");
        }
        let users = takers.iter().filter_map(|call| self.users.get(*call)).flatten();
        let mut words = users.filter_map(|contract| self.contract_words.get(contract));
        if words.any(|words| words.contains(name)) { format!("**{name}**") } else { name.to_owned() }
    }
}

fn is_constant(word: &str) -> bool {
    word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The contracts that use each call.
fn users(contracts: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let names: BTreeSet<&str> = TABLE.iter().map(|call| call.name).collect();
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (contract, words) in contracts {
        for word in words {
            let alias = ALIASES.iter().find(|row| row.0 == word).map(|row| row.1);
            let call = alias.unwrap_or(word.strip_prefix("SYS_").unwrap_or(word));
            if names.contains(call) {
                users.entry(call.to_owned()).or_default().insert(contract.clone());
            }
        }
    }
    users
}

/// The text of a C program without its comments and the contents of its strings, which use no call.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        let length = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if from.starts_with("/*") {
            from.find("*/").map_or(from.len(), |end| end + 2)
        } else if from.starts_with('/') {
            code.push('/');
            1
        } else {
            literal(from)
        };
        if length > 1 {
            code.push(' ');
        }
        rest = &from[length..];
    }
    code + rest
}

/// Bytes of the string or character that a text begins with, its quotes included.
fn literal(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
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
        let coverage = Coverage::read(&program::find(None).unwrap()).unwrap();
        for name in ["read", "write", "openat", "clone", "execve", "wait4", "mmap", "rt_sigaction", "futex"] {
            assert!(coverage.users.contains_key(name), "{name}");
            assert!(coverage.answered.contains(name), "{name}");
        }
    }

    #[test]
    fn comments_and_strings_use_no_call() {
        let text = "kill(1, 2); // fork\n/* open\n pipe */ a / b; puts(\"say \\\"dup\\\" // x\"); c = '\"'; read(0);";
        let code = code(text);
        assert_eq!(words(&code).collect::<Vec<_>>(), ["kill", "1", "2", "a", "b", "puts", "c", "read", "0"]);
        assert_eq!(super::code("x \"open"), "x  ");
    }

    #[test]
    fn a_flag_is_covered_only_together_with_a_call_that_takes_it() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
        let contract_words =
            BTreeMap::from([("a".to_owned(), words("openat O_CREAT")), ("b".to_owned(), words("O_TRUNC"))]);
        let users = users(&contract_words);
        let kernel_words = words("O_CREAT O_TRUNC");
        let coverage = Coverage { answered: BTreeSet::new(), users, kernel_words, contract_words };
        assert_eq!(coverage.flag("O_CREAT", &["openat"]), "**O_CREAT**");
        assert_eq!(coverage.flag("O_TRUNC", &["openat"]), "O_TRUNC");
        assert_eq!(coverage.flag("O_PATH", &["openat"]), "~~O_PATH~~");
    }

    #[test]
    fn the_page_of_system_calls_is_up_to_date() {
        let page = page(&program::find(None).unwrap()).unwrap();
        let kept = paths::read(&page_file()).unwrap();
        assert!(page == kept, "testing/SYSCALLS.md is out of date: run `cargo xtask contracts --syscalls --write`");
    }
}
