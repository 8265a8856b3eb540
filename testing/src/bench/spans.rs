//! Where a benchmark's time goes as the kernel itself measures it: its profile, imported by kwab.
//!
//! Each benchmark boots alone with `debug=profile,trace` under the instruction clock, so that a nanosecond is an
//! instruction and the figures are the same in every run. At its end the guest program switches the profile off, which
//! makes the kernel report it. The console is imported into a dump (kept in `build/results`), and the
//! `syscall_profile`, `span_profile` and `page_faults` records of it, a report may take several, are the table:
//! everything since the boot, set-up included. Measuring has its price: the figure of this run stands beside the
//! profile and is higher than that of a kernel that does not watch itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kwab::model::{Depth, Dump};
use kwab_format::List;
use kwab_format::record::{PageFaults, SpanProfile, SyscallProfile};

use super::compare::number;
use super::method::{self, Timing};
use super::{BenchRow, Figure};
use crate::kernel::Which;
use crate::{evidence, paths};

/// One line of the kernel's own accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `syscall`, `span` or `page faults`.
    pub group: &'static str,
    /// Which of the group.
    pub name: String,
    /// Number of spans or calls that were counted.
    pub calls: u64,
    /// Nanoseconds in all.
    pub total_ns: u64,
}

/// Boots one benchmark with the kernel's profile on; gives its figure, the accounts and the dump they are in.
pub fn accounts(boot: &Path, image: &(PathBuf, u32), row: &BenchRow) -> Result<(Figure, Vec<Account>, PathBuf)> {
    let mut machine = method::machine(Which::Ours, boot, image, Timing::Instructions);
    machine.append.push_str(" debug=profile,trace");
    let (run, serial) = method::measure_on(&machine, "profile", image.1, std::slice::from_ref(row))?;
    let log = paths::build("results")?.join(format!("profile-{}.log", row.name));
    paths::write(&log, &serial)?;
    let dumps = evidence::record(&log, &serial)?;
    let path = dumps.last().with_context(|| format!("{} holds nothing to import", paths::shown(&log)))?;
    let dump = Dump::open(path, Depth::All).with_context(|| paths::shown(path))?;
    let figure = run.figure(&row.name).with_context(|| format!("{} gave no figure", row.name))?.clone();
    Ok((figure, of_dump(&dump), path.clone()))
}

/// All profiles of a dump, those of one name summed.
fn of_dump(dump: &Dump) -> Vec<Account> {
    let text = |name: Option<&[u8]>| String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
    let mut accounts = Vec::new();
    for profile in dump.records::<SyscallProfile<'_>>() {
        accounts.extend(profile.entries.iter().flat_map(List::iter).map(|entry| Account {
            group: "syscall",
            name: text(entry.name),
            calls: entry.calls.unwrap_or(0),
            total_ns: entry.total_ns.unwrap_or(0),
        }));
    }
    for profile in dump.records::<SpanProfile<'_>>() {
        accounts.extend(profile.entries.iter().flat_map(List::iter).map(|entry| Account {
            group: "span",
            name: text(entry.name),
            calls: entry.calls.unwrap_or(0),
            total_ns: entry.total_ns.unwrap_or(0),
        }));
    }
    for faults in dump.records::<PageFaults<'_>>() {
        let (calls, total_ns) = (faults.count.unwrap_or(0), faults.total_ns.unwrap_or(0));
        accounts.push(Account { group: "page faults", name: String::new(), calls, total_ns });
    }
    let mut sums: Vec<Account> = Vec::new();
    for account in accounts {
        match sums.iter_mut().find(|sum| sum.group == account.group && sum.name == account.name) {
            Some(sum) => {
                sum.calls += account.calls;
                sum.total_ns += account.total_ns;
            }
            None => sums.push(account),
        }
    }
    sums
}

/// The table of one benchmark's accounts, the dearest first in each group.
#[expect(clippy::cast_precision_loss, reason = "52 bits of a count are plenty")]
pub fn table(figure: &Figure, accounts: &[Account]) -> String {
    let mut text = String::new();
    let watched = number(figure.per_operation());
    let _ = writeln!(
        text,
        "{}: the kernel's own profile ({watched} instructions per operation while it watches)",
        figure.name
    );
    if accounts.is_empty() {
        text.push_str("  the kernel wrote no profile\n");
        return text;
    }
    let _ = writeln!(text, "  {:<34} {:>12} {:>12} {:>14}", "", "calls", "ns each", "ns per op");
    let mut sorted: Vec<&Account> = accounts.iter().filter(|account| account.calls > 0).collect();
    sorted.sort_by(|a, b| a.group.cmp(b.group).then(b.total_ns.cmp(&a.total_ns)).then(a.name.cmp(&b.name)));
    for account in sorted {
        let name = format!("{} {}", account.group, account.name);
        let each = number(account.total_ns as f64 / account.calls as f64);
        let per_operation = number(account.total_ns as f64 / figure.iterations as f64);
        let _ = writeln!(text, "  {name:<34} {:>12} {each:>12} {per_operation:>14}", account.calls);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_several_events_becomes_one_account_per_name() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("profile.log");
        let serial = concat!(
            "DBG {\"type\":\"syscall_profile\",\"tsc_freq_hz\":1000000000,\"entries\":[{\"nr\":39,\"name\":\"getpid\",",
            "\"calls\":1,\"total_ns\":90,\"avg_ns\":90,\"min_ns\":90,\"max_ns\":90}]}\n",
            "DBG {\"type\":\"syscall_profile\",\"tsc_freq_hz\":1000000000,\"entries\":[{\"nr\":39,\"name\":\"getpid\",",
            "\"calls\":999,\"total_ns\":89910,\"avg_ns\":90,\"min_ns\":80,\"max_ns\":120}]}\n",
            "DBG {\"type\":\"span_profile\",\"tsc_freq_hz\":1000000000,\"entries\":[{\"id\":1,\"name\":\"vma_lookup\",",
            "\"calls\":4,\"total_ns\":400,\"avg_ns\":100,\"min_ns\":90,\"max_ns\":110}]}\n",
            "DBG {\"type\":\"page_faults\",\"count\":7,\"total_ns\":7000,\"avg_ns\":1000}\n",
        );
        let dumps = evidence::record(&log, serial.as_bytes()).unwrap();
        let found = of_dump(&Dump::open(&dumps[0], Depth::All).unwrap());
        let account = |group, name: &str, calls, total_ns| Account { group, name: name.into(), calls, total_ns };
        assert_eq!(
            found,
            [
                account("syscall", "getpid", 1000, 90_000),
                account("span", "vma_lookup", 4, 400),
                account("page faults", "", 7, 7000)
            ]
        );
        let figure = Figure { name: "getpid".into(), iterations: 1000, total_ns: 117_000 };
        let table = table(&figure, &found);
        assert!(table.contains("syscall getpid") && table.contains("90.0"), "{table}");
    }
}
