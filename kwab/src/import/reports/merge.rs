//! Decides whether a later head belongs to the report that is open, and takes it: `Oops: 0002 [#1]` behind `BUG:
//! unable to handle`, the panic that a warning leads to, `kernel BUG at` behind `list_del corruption`.

use super::build::Builder;
use super::class::Class;
use super::linux::heads::Part;
use super::{LogPosition, Open, dialect, linux, template, words};

/// Whether a head of Linux belongs to the report that is open, and takes it.
pub(super) fn merge(open: &mut Open, found: &linux::Found<'_, '_>, text: &[u8], position: LogPosition) -> bool {
    let builder = &mut open.builder;
    let near = position.line.saturating_sub(builder.report.first.line) <= 14 && !builder.has_stack();
    let (class, new) = (builder.report.class, found.head.class);
    let takes = match found.head.part {
        Part::Panic => {
            let message = words::after(text, b"syncing: ").or_else(|| words::after(text, b"panic: ")).unwrap_or(text);
            if open.orphan || !is_consequence(message, class, new) {
                return false;
            }
            builder.report.panic.get_or_insert_with(|| words::text(message));
            if class == Class::OomKill && new == Class::OomPanic {
                builder.report.class = new;
            }
            builder.ended = true;
            builder.quiet = 0;
            builder.report.last = position;
            builder.in_stack = false;
            return true;
        }
        Part::Stage if matches!(new, Class::OomKill | Class::HungTask) => class == new,
        Part::Stage => {
            !builder.ended
                && (class.is_trap() || builder.announced || class == Class::Ubsan)
                && !second_oops(builder, text)
        }
        Part::Opens | Part::Announces => {
            let both_traps = class.is_trap() && new.is_trap() && builder.report.registers.is_empty();
            let slab = class == Class::SlabCorruption && new == Class::Warning && words::has(text, b"mm/slub.c");
            let told = found.captures.dec("cpu").or_else(|| words::dec_after(text, b"on CPU "));
            let told = told.or_else(|| words::dec_after(text, b"{ "));
            let elsewhere = class.is_stall() && builder.report.cpu.zip(told).is_some_and(|(here, there)| here != there);
            // `refcount_t: underflow` stands before the warning or behind it, as all that announces one.
            let announces = found.head.part == Part::Announces && !matches!(new, Class::Warning | Class::Bug);
            let counted = class == Class::Warning && announces && near;
            if counted && !open.orphan {
                builder.report.class = new;
                builder.title = found.head.title.to_string();
            }
            counted
                || slab && !builder.has_crash_stack()
                || near && (builder.announced || both_traps || class == new && !elsewhere)
        }
    };
    if !takes || open.orphan {
        return false;
    }
    if !builder.announced
        && matches!(class, Class::Oops | Class::PageFault)
        && new.is_trap()
        && new != Class::Oops
        && !(class == Class::PageFault && new == Class::Exception)
    {
        builder.report.class = new;
        builder.title = found.head.title.to_string();
    }
    linux::head_line(builder, found, text);
    builder.quiet = 0;
    builder.report.last = position;
    true
}

/// Whether `[#2]` counts a second oops.
fn second_oops(builder: &Builder, text: &[u8]) -> bool {
    builder.has_stack() && words::dec_after(text, b"[#").is_some_and(|number| number > 1)
}

/// Whether a panic only ends the report before it.
fn is_consequence(message: &[u8], class: Class, new: Class) -> bool {
    const WORDS: &[&[u8]] = &[
        b"Fatal exception",
        b"panic_on_warn",
        b"Fatal error",
        b"softlockup",
        b"hung_task",
        b"RCU Stall",
        b"Hard LOCKUP",
        b"Watchdog detected",
        b"Oops",
        b"panic_on_oops",
        b"kasan.fault",
        b"fault=panic",
        b"An NMI",
        b"nmi",
        b"panic_on",
        b"Machine check",
        b"corrupted stack end",
        b"Aiee",
        b"scheduling while atomic",
        b"workqueue",
        b"lockdep",
        b"BUG!",
        b"UBSAN",
        b"die",
        b"VCPU",
    ];
    WORDS.iter().any(|word| message.starts_with(word) || words::has(message, word) && word.len() > 6)
        || class.is_fatal()
        || class == new
        || class.is_stall()
        || class == Class::OomKill && new == Class::OomPanic
}

/// Takes a later stage of a report of another kernel.
pub(super) fn later_stage(
    builder: &mut Builder,
    opening: &dialect::Opening,
    captures: &template::Captures<'_, '_>,
    row: usize,
) {
    // A panic whose message is still to come says less than the line that comes instead.
    let rest = dialect::read::is_rest(builder);
    let weak = matches!(builder.report.class, Class::Unknown)
        || std::mem::take(&mut builder.wants_message)
        || rest
        || dialect::read::wants_reason(builder)
        || builder.title == "{message}" && opening.title != "{message}";
    // `Exception vector: 6`, and behind it what the exception was.
    let vague = builder.report.class == Class::Exception && builder.title.starts_with("exception");
    let told = !matches!(opening.class, Class::Exception | Class::Panic | Class::Unknown | Class::Assertion);
    dialect::read::said(builder, captures);
    if weak || vague && told {
        builder.report.class = opening.class;
        builder.title = opening.title.to_string();
    }
    if let Some(message) = captures.text("message") {
        builder.say("message", message.clone());
        if rest {
            builder.report.message.clone_from(&message);
        }
        builder.note(message);
    }
    let _ = row;
}
