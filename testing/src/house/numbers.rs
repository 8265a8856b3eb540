//! Wants each number of Linux declared once, in linux-abi: a constant of the kernel crates with one of Linux's names
//! takes its value from there.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{House, Violation};

/// Where numbers are declared.
const ABI: &str = "kernel/abi/src/";
/// Where they are used.
const USERS: [&str; 3] = ["kernel/src/", "kernel/logic/src/", "kernel/machine/src/"];

/// What Linux's names begin with.
const PREFIXES: [&str; 61] = [
    "O_",
    "S_I",
    "MAP_",
    "PROT_",
    "SIG_",
    "SA_",
    "SS_",
    "SI_",
    "CLD_",
    "TRAP_",
    "SEGV_",
    "BUS_",
    "FPE_",
    "ILL_",
    "POLL_",
    "TIOC",
    "TCGET",
    "TCSET",
    "TCSB",
    "FIO",
    "PR_",
    "CLONE_",
    "EPOLL",
    "AT_",
    "F_",
    "FUTEX_",
    "MS_",
    "MNT_",
    "MADV_",
    "MREMAP_",
    "MCL_",
    "MLOCK_",
    "MEMBARRIER_",
    "RLIMIT_",
    "RUSAGE_",
    "PRIO_",
    "SO_",
    "SOL_",
    "SCM_",
    "MSG_",
    "AF_",
    "SOCK_",
    "SHUT_",
    "RWF_",
    "SEEK_",
    "FALLOC_",
    "CAP_",
    "SCHED_",
    "CLOCK_",
    "ITIMER_",
    "TFD_",
    "EFD_",
    "SFD_",
    "GRND_",
    "MFD_",
    "XATTR_",
    "RENAME_",
    "STATX_",
    "UTIME_",
    "WNO",
    "RESOLVE_",
];

pub(super) fn check(house: &House) -> Result<Vec<Violation>> {
    let abi = house.files.iter().filter(|file| file.path.starts_with(ABI));
    let declared: BTreeSet<&str> = abi.flat_map(|file| file.text.lines()).filter_map(name_in_a_table).collect();
    if declared.len() < 500 {
        let text = format!("only {} names were recognised; there are more than 900", declared.len());
        return Ok(vec![Violation::new(ABI, text)]);
    }
    let users = house.files.iter().filter(|file| USERS.iter().any(|user| file.path.starts_with(user)));
    Ok(users.flat_map(|file| second_declarations(&file.path, &file.text, &declared)).collect())
}

/// The name of a row `NAME = 0x1,` or `NAME: u32 = 1, "…";` of linux-abi.
fn name_in_a_table(line: &str) -> Option<&str> {
    let (name, _) = line.trim().split_once([' ', ':'])?;
    let is_constant = |name: &&str| {
        name.len() > 3
            && name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_')
            && name.chars().all(|one| one.is_ascii_uppercase() || one.is_ascii_digit() || one == '_')
    };
    Some(name).filter(is_constant).filter(|_| line.contains('='))
}

/// Constants with a name of Linux whose value does not come from a path.
fn second_declarations(path: &str, text: &str, declared: &BTreeSet<&str>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((name, value)) = constant(line) else { continue };
        let of_linux =
            declared.contains(name) && name.contains('_') || PREFIXES.iter().any(|start| name.starts_with(start));
        if of_linux && !value.contains("::") {
            let location = format!("{path}:{}", index + 1);
            found.push(Violation::new(
                location,
                format!("{name} is declared by value; linux-abi declares Linux's numbers"),
            ));
        }
    }
    found
}

/// The name and the value of a constant item.
fn constant(line: &str) -> Option<(&str, &str)> {
    let (before, item) = line.split_once("const ")?;
    let (name, rest) = item.split_once(':')?;
    let value = rest.split_once('=')?.1;
    let is_item = before.trim().is_empty() || before.trim().starts_with("pub");
    is_item.then_some((name.trim(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_linux_that_is_declared_again_is_found() {
        let declared = BTreeSet::from(["FIONREAD", "UMOUNT_NOFOLLOW"]);
        let text =
            "const FIONREAD: u32 = 0x541b;\n    pub(super) const UMOUNT_NOFOLLOW: u64 = 8;\nconst O_RDWR: u32 = 2;\n";
        let found = second_declarations("kernel/src/tty.rs", text, &declared);
        let locations: Vec<&str> = found.iter().map(|violation| violation.location.as_str()).collect();
        assert_eq!(locations, ["kernel/src/tty.rs:1", "kernel/src/tty.rs:2", "kernel/src/tty.rs:3"]);
    }

    #[test]
    fn a_value_taken_from_the_table_and_a_name_of_our_own_are_none() {
        let text = "pub const S_IFREG: u32 = file::S_IFREG as u32;\nconst MOST: usize = 8;\nfn f() -> u32 { 1 }\n";
        assert_eq!(second_declarations("kernel/src/attr.rs", text, &BTreeSet::new()), []);
    }

    #[test]
    fn rows_of_both_kinds_of_tables_are_recognised() {
        assert_eq!(name_in_a_table("            O_CLOEXEC = 0o2000000,"), Some("O_CLOEXEC"));
        assert_eq!(name_in_a_table("    F_RDLCK: u16 = 0, \"a lock\";"), Some("F_RDLCK"));
        assert_eq!(name_in_a_table("    let flags = 3;"), None);
    }
}
