//! What `kwab COMMAND --help` ends with: examples, and what the command's exit statuses mean. One table, read by the
//! help, by the manual pages and by the reference in the book.

use clap::Command;

/// A command: its name, examples, and its exit statuses but 2, which every command has.
struct Manual(&'static str, &'static [&'static str], &'static [(u8, &'static str)]);

/// Usage and I/O.
const FAILED: &str = "wrong arguments, or a file that cannot be read or written";

const MANUALS: &[Manual] = &[
    Manual(
        "import",
        &[
            "kwab import serial.log",
            "kwab import serial.log -o crashes/",
            "zcat serial.log.gz | kwab import - -o crash.kwab",
        ],
        &[
            (0, "written, or there was no crash"),
            (1, "a kernel's death was not understood"),
            (3, "the input is cut, or --strict was given and something was not understood"),
        ],
    ),
    Manual(
        "inspect",
        &[
            "kwab inspect crash.kwab",
            "kwab inspect crash.kwab --section bt,code --symbols vmlinux",
            "kwab inspect serial.log --json",
        ],
        &[(0, "the dump is sound"), (3, "parts of it are damaged")],
    ),
    Manual(
        "triage",
        &[
            "kwab triage crash.kwab",
            "kwab triage crash.kwab --symbols build/ --explain",
            "kwab triage serial.log --json",
        ],
        &[(0, "nothing found"), (1, "a bug or a death"), (3, "nothing found, but parts of the dump are damaged")],
    ),
    Manual(
        "audit-vm",
        &["kwab audit-vm crash.kwab", "kwab audit-vm crash.kwab --rule VM-CACHE-W", "kwab audit-vm --rules"],
        &[
            (0, "no rule is violated"),
            (1, "a rule is violated"),
            (3, "no violation found, but parts of the dump are damaged"),
        ],
    ),
    Manual(
        "verify-pages",
        &["kwab verify-pages crash.kwab", "kwab verify-pages crash.kwab --backing initramfs.cpio.gz"],
        &[
            (0, "no page is wrong"),
            (1, "a page is wrong"),
            (3, "no wrong page found, but parts of the dump are damaged"),
        ],
    ),
    Manual(
        "bisect",
        &[
            "kwab bisect --param mem=64..512 -- ./boot {}",
            "kwab bisect --inject leak,nx-tables --dump crash.kwab -- ./boot {}",
        ],
        &[(0, "the first value that crashes was found"), (1, "no boundary")],
    ),
    Manual(
        "ci",
        &[
            "kwab ci logs/ --baseline known.toml",
            "kwab ci serial.log --baseline known.toml --write-baseline",
            "kwab ci logs/ --baseline known.toml --github --junit ci.xml",
        ],
        &[(0, "no new crash"), (1, "a new crash"), (3, "no new crash, but something is damaged")],
    ),
    Manual(
        "diff",
        &["kwab diff good.kwab bad.kwab", "kwab diff nightly-41/ nightly-42/"],
        &[(0, "no difference"), (1, "a difference"), (3, "parts of a dump are damaged")],
    ),
    Manual(
        "oracle",
        &["kwab oracle linux.strace our.kwab --program /bin/ls", "kwab oracle good.log bad.log --symbols kernel"],
        &[(0, "the runs agree"), (1, "a difference"), (3, "the runs are incomplete or cannot be compared")],
    ),
    Manual(
        "follow",
        &[
            "kwab follow /var/log/console.log -o crashes",
            "kwab follow console.sock -o crashes --on-crash notify-send",
            "kwab follow --exec './boot --serial stdio' -o crashes --once",
        ],
        &[(0, "no crash"), (1, "a crash"), (3, "the console fell silent")],
    ),
    Manual(
        "capture",
        &[
            "kwab capture --qmp qmp.sock -o hang.kwab",
            "kwab capture --qmp qmp.sock --memory all -o machine.kwab",
            "kwab capture --mem vmcore -o machine.kwab",
        ],
        &[(0, "captured"), (3, "some memory could not be read")],
    ),
    Manual(
        "translate",
        &["kwab translate crash.kwab 0xffffffff80101000", "kwab translate crash.kwab 0x401000 --pid 7"],
        &[(0, "answered"), (3, "what the answer needs was not captured or is damaged")],
    ),
    Manual(
        "search",
        &[
            "kwab search crash.kwab 0xffff800000651380",
            "kwab search crash.kwab 'out of memory' -n 5",
            "kwab search crash.kwab dfdfdfdf --as hex",
        ],
        &[(0, "answered"), (3, "some memory could not be read")],
    ),
    Manual(
        "whatis",
        &["kwab whatis crash.kwab 0xffffffff801d23c9", "kwab whatis crash.kwab 0x61d000 --physical"],
        &[(0, "answered"), (3, "what the answer needs was not captured or is damaged")],
    ),
    Manual(
        "print",
        &["kwab print crash.kwab --symbols kernel", "kwab print crash.kwab --frame 2 '*task.files[3].name'"],
        &[(0, "printed"), (3, "what the value needs was not captured or is damaged")],
    ),
    Manual(
        "export",
        &[
            "kwab export crash.kwab --to jsonl -o crash.jsonl",
            "kwab export crash.kwab --to elf-core -o crash.core",
            "kwab export crash.kwab --to perfetto -o crash.pftrace",
        ],
        &[(0, "all of it"), (3, "what is sound was exported, the rest is damaged")],
    ),
    Manual(
        "report",
        &["kwab report crash.kwab", "kwab report serial.log --md -o -"],
        &[(0, "written"), (3, "written, but parts of the dump are damaged")],
    ),
    Manual("check", &["kwab check crash.kwab", "kwab check --quiet crashes/*.kwab"], &[(0, "sound"), (3, "damaged")]),
    Manual("salvage", &["kwab salvage bad.kwab -o good.kwab"], &[(0, "nothing was lost"), (3, "something was lost")]),
    Manual(
        "redact",
        &["kwab redact crash.kwab --keep kernel -o share.kwab", "kwab redact --rules"],
        &[(0, "written"), (3, "written, but parts of the dump are damaged")],
    ),
    Manual(
        "pack",
        &[
            "kwab pack crash.kwab -o crash.zip",
            "kwab pack crash.kwab --input initramfs.cpio --qemu './boot' -o crash.zip",
        ],
        &[(0, "all of it"), (3, "parts of the dump are damaged, or an image is missing")],
    ),
    Manual("open", &["kwab open crash.zip", "kwab open crash.zip -o crash/"], &[(0, "restored")]),
    Manual("doctor", &["kwab doctor", "kwab doctor --json"], &[(0, "nothing is missing"), (1, "something is missing")]),
    Manual("index", &["kwab index crashes/"], &[(0, "the index is up to date")]),
    Manual(
        "list",
        &[
            "kwab list crashes/",
            "kwab list crashes/ --filter 'cause:null score>80'",
            "kwab list crashes/ --regressions --sort last",
        ],
        &[(0, "sound"), (3, "a dump is damaged, or the index does not know all dumps")],
    ),
    Manual(
        "trends",
        &["kwab trends crashes/", "kwab trends crashes/ --since 14d --wide"],
        &[(0, "shown"), (3, "the index does not know all dumps")],
    ),
    Manual(
        "prune",
        &["kwab prune crashes/ --keep 5", "kwab prune crashes/ --max-size 10G --yes"],
        &[(0, "removed, or without --yes named"), (3, "something could not be removed")],
    ),
    Manual(
        "symbols",
        &[
            "kwab symbols add vmlinux",
            "kwab symbols slim crash.kwab",
            "kwab symbols embed crash.kwab -o one-file.kwab",
            "kwab symbols list",
            "kwab symbols prune --max-size 2G --yes",
        ],
        &[(0, "done, or without --yes named"), (3, "an image could not be kept or removed, or the dump is damaged")],
    ),
    Manual("mcp", &["kwab mcp crashes/ --symbols build/"], &[(0, "the client closed stdin")]),
    Manual(
        "tui",
        &["kwab tui crashes/", "kwab tui crash.kwab --symbols vmlinux", "kwab tui crash.kwab --goto 0x51c000"],
        &[(0, "quit")],
    ),
    Manual(
        "cat",
        &["kwab cat crash.kwab log", "kwab cat crash.kwab events", "kwab cat crash.kwab memory --payload > memory.bin"],
        &[(0, "all of it"), (3, "the section is damaged")],
    ),
    Manual("schema", &["kwab schema triage"], &[(0, "printed")]),
    Manual(
        "completions",
        &["kwab completions bash > ~/.local/share/bash-completion/completions/kwab"],
        &[(0, "printed")],
    ),
    Manual("man", &["kwab man | man -l -", "kwab man -o ~/.local/share/man/man1"], &[(0, "printed or written")]),
];

/// What the help of the program itself ends with, before the table of statuses.
const FIRST: &str = "\
Examples:
  kwab serial.log      judge a log of any kernel, or a dump
  kwab crashes/        browse the dumps of a directory
  kwab import serial.log -o crashes/
  kwab inspect crash.kwab --symbols vmlinux";

/// The command tree with examples and statuses in the help of each command.
pub(crate) fn with(command: Command) -> Command {
    let command = command.after_help(format!("{FIRST}\n\n{}", crate::failure::STATUSES));
    MANUALS.iter().fold(command, |command, row| {
        command.mut_subcommand(row.0, |sub| {
            let more = sub.get_after_long_help().map(|more| format!("\n\n{more}")).unwrap_or_default();
            let text = text(row);
            sub.after_help(text.clone()).after_long_help(text + &more)
        })
    })
}

fn text(Manual(_, examples, statuses): &Manual) -> String {
    let mut lines = vec!["Examples:".to_owned()];
    lines.extend(examples.iter().map(|example| format!("  {example}")));
    lines.push("\nExit status:".to_owned());
    let mut statuses = statuses.to_vec();
    statuses.push((crate::failure::FAILED, FAILED));
    statuses.sort_unstable();
    lines.extend(statuses.iter().map(|(status, what)| format!("  {status}  {what}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::Arguments;

    #[test]
    fn what_a_help_ends_with_fits_a_terminal_of_80_columns() {
        let command = with(Arguments::command());
        for one in std::iter::once(&command).chain(command.get_subcommands()) {
            let ends = one.get_after_long_help().or(one.get_after_help()).map(ToString::to_string).unwrap_or_default();
            for line in ends.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", one.get_name());
            }
        }
    }

    #[test]
    fn every_command_has_examples_and_each_of_them_can_be_parsed() {
        let command = Arguments::command();
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
        for name in shown {
            assert!(MANUALS.iter().any(|row| row.0 == name), "{name} has no examples");
        }
        for Manual(name, examples, _) in MANUALS {
            for example in *examples {
                let command = example.split(" | ").find(|part| part.starts_with("kwab ")).expect("a command of kwab");
                let command = command.split(" > ").next().expect("a command");
                let words = shlex::split(command).expect("words");
                assert_eq!(words.get(1).map(String::as_str), Some(*name), "{example}");
                Arguments::try_parse_from(&words).unwrap_or_else(|error| panic!("{example}: {error}"));
            }
        }
    }
}
