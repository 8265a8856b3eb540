//! Writes the fuzzer's table of system calls as C: the kernel's own list with its argument kinds and flags.
//!
//! The list is `linux_abi`'s, so a call or a flag that the kernel learns is fuzzed from then on. `answered` marks the
//! calls that the kernel has a function for; the others are called seldom.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use linux_abi::flags::FlagSet;
use linux_abi::syscalls::{ArgKind, ResultKind, Syscall, TABLE};

/// The header that the guest program includes once.
#[must_use]
pub fn header(answered: &BTreeSet<String>) -> String {
    let sets: Vec<&FlagSet> = linux_abi::flags::ALL.iter().flat_map(|area| area.iter().copied()).collect();
    let mut text = String::from("/* Generated from kernel/abi by cargo xtask; do not edit. */\n");
    sets.iter().for_each(|set| values(set, &mut text));
    text.push_str("const struct flag_set flag_sets[] = {\n");
    for set in &sets {
        let (name, fields, bits) = (set.name, fields(set).count(), set.bits.len());
        let field = if fields > 0 { format!("fields_{name}") } else { "NULL".to_owned() };
        let bit = if bits > 0 { format!("bits_{name}") } else { "NULL".to_owned() };
        let _ = writeln!(text, "    {{ \"{name}\", {fields}, {field}, {bits}, {bit} }},");
    }
    text.push_str("};\nconst struct call calls[] = {\n");
    for call in TABLE {
        row(call, answered.contains(call.name), &sets, &mut text);
    }
    text.push_str("};\n");
    text
}

/// The fields of a set that have a value.
fn fields(set: &'static FlagSet) -> impl Iterator<Item = &'static linux_abi::flags::Field> {
    set.fields.iter().filter(|field| !field.values.is_empty())
}

fn values(set: &'static FlagSet, text: &mut String) {
    let list = |values: &[(u64, &str)]| -> String {
        values.iter().map(|(bits, name)| format!("{{ {bits:#x}UL, \"{name}\" }}, ")).collect()
    };
    let name = set.name;
    for (index, field) in fields(set).enumerate() {
        let _ = writeln!(text, "static const struct value values_{name}_{index}[] = {{ {}}};", list(field.values));
    }
    if fields(set).next().is_some() {
        let rows: String = fields(set)
            .enumerate()
            .map(|(index, field)| format!("{{ {:#x}UL, {}, values_{name}_{index} }}, ", field.mask, field.values.len()))
            .collect();
        let _ = writeln!(text, "static const struct field fields_{name}[] = {{ {rows}}};");
    }
    if !set.bits.is_empty() {
        let _ = writeln!(text, "static const struct value bits_{name}[] = {{ {}}};", list(set.bits));
    }
}

fn row(call: &Syscall, answered: bool, sets: &[&FlagSet], text: &mut String) {
    let result = match call.result {
        ResultKind::Int => "INT",
        ResultKind::Fd => "FD",
        ResultKind::Address => "ADDRESS",
        ResultKind::Size => "SIZE",
        ResultKind::Pid => "PID",
        ResultKind::Never => "NEVER",
        ResultKind::Hex => "HEX",
    };
    let (number, count, name) = (call.nr, call.args.len(), call.name);
    let _ = write!(text, "    {{ {number}, {}, RESULT_{result}, {count}, \"{name}\", {{", u8::from(answered));
    for argument in call.args {
        let set = match argument.kind {
            ArgKind::Flags(set) | ArgKind::Flags64(set) => Some(set),
            ArgKind::CloneFlags => Some(&linux_abi::flags::process::CLONE),
            _ => None,
        };
        let index = set.and_then(|set| sets.iter().position(|other| core::ptr::eq(*other, set)));
        let index = index.map_or_else(|| "-1".to_owned(), |index| index.to_string());
        let _ = write!(text, " {{ \"{}\", KIND_{}, {index} }},", argument.name, kind(argument.kind));
    }
    text.push_str(" } },\n");
}

fn kind(kind: ArgKind) -> &'static str {
    match kind {
        ArgKind::Fd => "FD",
        ArgKind::DirFd => "DIR_FD",
        ArgKind::Path => "PATH",
        ArgKind::Str => "STR",
        ArgKind::Ptr => "PTR",
        ArgKind::Size => "SIZE",
        ArgKind::Offset => "OFFSET",
        ArgKind::Mode => "MODE",
        ArgKind::Pid => "PID",
        ArgKind::Id => "ID",
        ArgKind::Int => "INT",
        ArgKind::Uint => "UINT",
        ArgKind::Long => "LONG",
        ArgKind::Hex => "HEX",
        ArgKind::Signal => "SIGNAL",
        ArgKind::Flags(_) | ArgKind::Flags64(_) => "FLAGS",
        ArgKind::CloneFlags => "CLONE_FLAGS",
        ArgKind::Time => "TIME",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_brings_its_kinds_and_a_set_its_values() {
        let header = header(&BTreeSet::from(["openat".to_owned()]));
        assert!(header.contains("{ 257, 1, RESULT_FD, 4, \"openat\", { { \"dirfd\", KIND_DIR_FD, -1 },"), "{header}");
        assert!(header.contains("{ 0, 0, RESULT_SIZE, 3, \"read\","));
        assert!(header.contains("{ 0x40UL, \"O_CREAT\" }"));
        let sets = header.matches("\n    { \"").count();
        assert_eq!(sets, linux_abi::flags::ALL.iter().map(|area| area.len()).sum::<usize>());
    }
}
