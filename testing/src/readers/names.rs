//! Names of functions as different readers print them, made comparable: the last part of the path, without generics,
//! arguments and hashes.
//!
//! A reader names the function that owns the code, or one that is inlined there; each writes implementations and
//! closures in its own way, and what they have in common is the last part.

use kwab::symbols::demangle;

use super::{Names, Stacks};

/// The last part of a function's name; empty where there is none.
pub(super) fn last(function: &str) -> String {
    let mut name = demangle(function.trim());
    for (from, to) in [("$LT$", "<"), ("$GT$", ">"), ("$u7b$", "{"), ("$u7d$", "}"), ("$u20$", " "), ("..", "::")] {
        name = name.replace(from, to);
    }
    let (mut plain, mut depth, mut before) = (String::new(), 0, ' ');
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' if before == '-' => {}
            '>' => depth -= 1,
            // Arguments follow the name.
            '(' if depth == 0 && !plain.is_empty() => break,
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
        before = letter;
    }
    let plain = plain.split(" + ").next().unwrap_or_default().trim();
    let parts = plain.split("::").map(str::trim).filter(|part| !part.is_empty() && !is_hash(part));
    let last = parts.last().unwrap_or_default();
    if last.starts_with("??") {
        return String::new();
    }
    if last.contains("closure") {
        return "closure".to_owned();
    }
    last.split('{').next().unwrap_or_default().trim_matches('_').to_owned()
}

fn is_hash(part: &str) -> bool {
    part.strip_prefix('h').is_some_and(|rest| rest.len() == 16 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// How many addresses of our stacks have a name on both sides, which is one that we know there.
///
/// # Errors
/// The first difference, in words.
pub(super) fn agree(stacks: &Stacks, ours: &Names, theirs: &Names) -> Result<usize, String> {
    let mut same = 0;
    for address in stacks.values().flatten() {
        match (ours.get(address), theirs.get(address)) {
            (Some(known), Some(found)) if found.is_disjoint(known) => {
                return Err(format!("{address:#x} is {known:?} here, {found:?} there"));
            }
            (Some(_), Some(_)) => same += 1,
            // A frame that only one side has; the stacks were compared before.
            _ => {}
        }
    }
    if same == 0 && !ours.is_empty() {
        return Err("the functions have no name there".to_owned());
    }
    Ok(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_print_of_one_function_has_the_same_last_part() {
        let legacy = "kernel::_$LT$impl$u20$machine..hooks..Kernel$u20$for$u20$kernel..upper..Kwab$GT$::panic::";
        let legacy = legacy.to_owned() + "hae76165f7d4171c5";
        for (text, wanted) in [
            ("_ZN6kernel5crash5panic8on_panic17h069c7039b16679ffE", "on_panic"),
            ("kernel::crash::panic::on_panic::h069c7039b16679ff", "on_panic"),
            ("kernel::crash::panic::on_panic (info=0xffffce855f49f610) at kernel/src/crash/panic.rs:53", "on_panic"),
            (&legacy, "panic"),
            ("kernel::{impl#5}::panic (info=0x0) at kernel/src/main.rs:159", "panic"),
            ("_RNvNtCsg3SjgaGcPXb_4core9panicking9panic_fmt", "panic_fmt"),
            ("<kernel::procfs::text::TextFile as kernel::fs::inode::file::FileOps>::write", "write"),
            ("core::ops::function::FnOnce::call_once<fn(&T) -> u8, (&T)> (arg=1)", "call_once"),
            ("kernel::crash::sysrq::WAYS::_$u7b$$u7b$closure$u7d$$u7d$::h9c2ff479332e1f99", "closure"),
            ("kernel::crash::sysrq::WAYS::{closure#0} (x=1)", "closure"),
            ("syscall_entry + 74", "syscall_entry"),
            ("?? ()", ""),
        ] {
            assert_eq!(last(text), wanted, "{text}");
        }
    }
}
