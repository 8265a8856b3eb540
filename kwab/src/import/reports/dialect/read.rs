//! Opens a report from a row of the table, and offers it the lines that follow.

use super::super::build::{Builder, ReportedTask, Took};
use super::super::class::Class;
use super::super::decode;
use super::super::frame;
use super::super::frames;
use super::super::function::is_skipped;
use super::super::generic;
use super::super::registers;
use super::super::report::{Frame, LogPosition, MOST_STACKS, Stack, StackKind};
use super::super::template::Captures;
use super::super::words::{hex_all, text};
use super::{Dialects, Opening, Use};

/// Begins a report with its first line.
pub fn open(
    all: &Dialects,
    opening: &Opening,
    captures: &Captures<'_, '_>,
    line: &[u8],
    position: LogPosition,
) -> Builder {
    let name = all.row(opening.row).map_or("generic", super::Dialect::name);
    let mut builder = Builder::new(name, opening.class, &opening.title, position);
    builder.report.message = captures.text("message").unwrap_or_else(|| text(line.trim_ascii()));
    if captures.get("message").is_some() {
        generic::shorten(&mut builder);
    }
    said(&mut builder, captures);
    let given = captures.text("message").is_some_and(|message| message.trim_matches(':').len() > 1);
    generic::message(&mut builder, line, given);
    // A report that lost its head begins with one of its frames.
    if captures.get("symbol").is_some() {
        builder.frame(frame_of(captures), position);
    } else if let Some(frame) = frames::go(line.trim_ascii()).filter(|_| name == "go") {
        builder.frame(frame, position);
    }
    // Or with the title of its backtrace.
    if let Some((Use::Stack, _)) = all.row(opening.row).and_then(|dialect| dialect.learn(line.trim_ascii())) {
        builder.begin(StackKind::Crash, Some(text(line.trim_ascii())));
    }
    builder
}

/// Takes what the captures of a line say.
pub fn said(builder: &mut Builder, captures: &Captures<'_, '_>) {
    let mut who = ReportedTask { cpu: captures.dec("cpu"), pid: captures.dec("pid"), comm: captures.text("comm") };
    who.comm = who
        .comm
        .map(|comm| comm.trim_matches(['"', '\'']).to_string())
        // `swi4: clock (0)` in parentheses: the capture ended at the first of the two that close.
        .map(|comm| if comm.contains('(') && !comm.contains(')') { comm + ")" } else { comm })
        .filter(|comm| !comm.is_empty() && comm != "unknown");
    if who != ReportedTask::default() {
        let report = &mut builder.report;
        report.cpu = report.cpu.or(who.cpu);
        report.pid = report.pid.or(who.pid);
        report.comm = report.comm.take().or(who.comm);
    }
    // The file may stand on the line before that of its line number.
    let file = captures.text("file").or_else(|| builder.value("file").map(str::to_string));
    let report = &mut builder.report;
    report.fault_address = report.fault_address.or(captures.hex("address"));
    report.ip = report.ip.or(captures.hex("ip"));
    report.sp = report.sp.or(captures.hex("sp"));
    report.error_code = report.error_code.or(captures.hex("code"));
    report.error_text = report.error_text.take().or_else(|| captures.text("error"));
    report.version = report.version.take().or_else(|| captures.text("version"));
    if let (Some(file), Some(line)) = (file, captures.dec("line")) {
        report.source.get_or_insert((file.trim_matches(['"', '\'']).to_string(), line));
    }
    if let Some(function) = captures.text("function") {
        builder.head_function.get_or_insert(bare_function(&function).to_owned());
    }
    faults_said(builder, captures);
    for (name, value) in captures.iter() {
        let numeric = matches!(name, "cpu" | "pid" | "address" | "ip" | "sp" | "line" | "function" | "message");
        if !numeric {
            builder.say(name, text(value.trim_ascii()));
        }
    }
}

/// The name in a prototype: `ns::Page::erase` of `int ns::Page::erase(unsigned int)`.
fn bare_function(name: &str) -> &str {
    let Some((head, _)) = name.split_once('(').filter(|_| name.ends_with(')')) else { return name };
    head.rsplit(' ').next().filter(|name| !name.is_empty()).unwrap_or(name)
}

/// Takes where a kernel's debugger stopped: `Stopped in pid 0.1 (system) at netbsd:foo+0x27`.
fn stopped(builder: &mut Builder, captures: &Captures<'_, '_>, line: &[u8], position: LogPosition) {
    let Some(symbol) = captures.text("function").filter(|_| line.starts_with(b"Stopped ")) else { return };
    if is_skipped(&symbol) {
        builder.head_function = builder.head_function.take().filter(|name| *name != symbol);
    } else if builder.report.location.is_none() && !builder.has_stack() {
        let behind = line.split(|byte| *byte == b'+').next_back().unwrap_or_default();
        let offset = super::super::words::hex(behind).map(|(offset, _)| offset);
        let frame = Frame { symbol: Some(symbol), offset, line: position.line, ..Frame::default() };
        builder.report.location = Some(frame);
    }
}

/// Takes fault status registers, decoded, and the base name of an image.
fn faults_said(builder: &mut Builder, captures: &Captures<'_, '_>) {
    if let Some(syndrome) = captures.hex("esr") {
        let told = decode::esr(syndrome).text;
        builder.report.error_code = builder.report.error_code.or(Some(syndrome));
        builder.say("error", told.clone());
        builder.report.error_text.get_or_insert(told);
    }
    for (name, shift) in [("cfsr", 0), ("mmfsr", 0), ("bfsr", 8), ("ufsr", 16)] {
        let told = captures.hex(name).and_then(|value| decode::cortex_m(value << shift));
        if let Some(told) = told {
            builder.say("fault", told);
            builder.report.error_text.get_or_insert_with(|| told.to_string());
        }
    }
    if let Some(image) = captures.text("image") {
        let base = image.rsplit(['\\', '/']).next().unwrap_or(&image);
        builder.say("image", base);
    }
    // The instruction that a trap interrupted; what stands above it in the stack is the way into the panic.
    if let Some(interrupted) = captures.hex("interrupted") {
        let in_kernel = interrupted >> 47 != 0 || (0xc000_0000..1 << 32).contains(&interrupted);
        builder.report.ip = builder.report.ip.or(Some(interrupted).filter(|_| in_kernel));
        if builder.report.class.is_trap() && in_kernel {
            builder.trapped();
        }
    }
}

/// The frame that the captures of a line hold.
fn frame_of(captures: &Captures<'_, '_>) -> Frame {
    // A frame without a symbol may show its address where the name would stand.
    let is_address = |name: &[u8]| name.len() >= 8 && hex_all(name).is_some();
    let bare = captures.get("symbol").filter(|name| is_address(name)).and_then(hex_all);
    let symbol = captures.text("symbol").filter(|_| bare.is_none()).map(|name| {
        let name = name.trim_matches('"');
        // The parameters of a C++ function stay whole; an empty pair of brackets behind a name goes.
        if name.contains('(') && name.ends_with(')') && !name.ends_with("()") {
            name
        } else {
            name.trim_matches(['(', ')'])
        }
        .to_string()
    });
    Frame {
        address: captures.hex("address").or(bare),
        // `???`: the kernel knows no name.
        symbol: symbol
            .filter(|name| name.bytes().any(|byte| byte != b'?'))
            .filter(|name| !name.is_empty() && hex_all(name.as_bytes()).is_none_or(|_| !name.starts_with("0x"))),
        offset: captures.hex("offset"),
        size: captures.hex("size"),
        module: captures.text("module"),
        source: captures.text("file").zip(captures.dec("line")),
        ..Frame::default()
    }
}

/// Offers a line to a report of row `row`; `row` changes when the line shows which kernel it is.
pub fn learn(all: &Dialects, row: &mut usize, builder: &mut Builder, line: &[u8], position: LogPosition) -> Took {
    let trimmed = line.trim_ascii();
    if trimmed.is_empty() {
        return Took::Yes;
    }
    let marked = marked(all, row, builder, trimmed);
    if tells_why(all, builder, trimmed) {
        return Took::No;
    }
    if let Some(dialect) = all.row(*row)
        && let Some((what, captures)) = dialect.learn(trimmed)
    {
        return apply(*what, builder, &captures, trimmed, position);
    }
    if marked {
        return Took::Yes;
    }

    // A report of which nothing is known yet, such as a backtrace before its panic, waits for the line that says more;
    // so does one whose message is still to come.
    if (builder.report.class == Class::Unknown || builder.wants_message)
        && all.opens(trimmed).is_some_and(|(opening, _)| opening.stage)
    {
        return Took::No;
    }
    if builder.wants_message && generic::wanted_message(builder, trimmed) {
        return Took::Yes;
    }
    let own = |name: &str| all.row(*row).is_some_and(|dialect| dialect.has_register(name));
    if let Some(found) = registers::line(trimmed).or_else(|| generic::own_registers(trimmed, &own)) {
        registers_said(builder, &found);
        builder.registers(found);
        return Took::Yes;
    }
    let mut found = frame::frames(trimmed, false);
    if found.is_empty() {
        found.extend(frames::frames(trimmed, builder.in_stack));
    }
    if !found.is_empty() {
        for frame in found {
            builder.frame(frame, position);
        }
        return Took::Yes;
    }
    generic::detail(builder, trimmed)
}

/// Whether a line tells the reason of a death that is open without it: a log that has its newest line first tells the
/// panic behind its stack, and OP-TEE the assertion behind the code with which it ends an application.
fn tells_why(all: &Dialects, builder: &Builder, line: &[u8]) -> bool {
    let wants: fn(&Opening) -> bool = match () {
        () if is_rest(builder) => |opening| opening.stage,
        () if wants_reason(builder) => |opening| opening.class == Class::Assertion,
        () => return false,
    };
    all.opens(line).is_some_and(|(opening, captures)| wants(opening) && captures.get("message").is_some())
}

/// Whether the report has a code instead of a reason.
pub fn wants_reason(builder: &Builder) -> bool {
    builder.title.starts_with("a trusted application panicked")
}

/// Whether nothing but a stack is known of the report.
pub fn is_rest(builder: &Builder) -> bool {
    builder.title.starts_with("stack of a cut report")
}

/// Whether the line shows which kernel the report is of; the row that reads it may change.
fn marked(all: &Dialects, row: &mut usize, builder: &mut Builder, line: &[u8]) -> bool {
    let Some(number) = all.marked(line) else { return false };
    let Some(dialect) = all.row(number).filter(|dialect| dialect.may_claim(&builder.report.family)) else {
        return false;
    };
    // A line that the row at hand reads does not mark another kernel.
    let reader = all.reader(number);
    if reader == number && all.row(*row).is_some_and(|own| own.learn(line).is_some()) {
        return false;
    }
    *row = reader;
    builder.report.family = dialect.name().into();
    builder.marked = true;
    true
}

/// Names the exception that the words of a panic tell of: it is none that the kernel raised on purpose.
pub fn refine(builder: &mut Builder) {
    const EXCEPTIONS: &[(&str, Class)] = &[
        ("general protection", Class::GeneralProtection),
        ("double fault", Class::DoubleFault),
        ("page fault", Class::PageFault),
        ("hardfault", Class::Exception),
        ("hard fault", Class::Exception),
        ("kernel fault", Class::Exception),
        ("cpu fault", Class::Exception),
        ("usage fault", Class::Exception),
        ("bus fault", Class::Exception),
        ("data abort", Class::Exception),
        ("unexpected trap", Class::Exception),
        ("unhandled trap", Class::Exception),
        ("unexpected exception", Class::Exception),
        ("failed assertion", Class::Assertion),
    ];
    let report = &mut builder.report;
    let message = format!("{} {}", report.message, builder.title).to_lowercase();
    let kind = builder.values.iter().find(|(name, _)| name == "kind").map(|(_, kind)| kind.to_lowercase());
    let told = |words: &str| message.contains(words) || kind.as_ref().is_some_and(|kind| kind.contains(words));
    if matches!(report.class, Class::Panic | Class::Exception)
        && let Some((_, class)) = EXCEPTIONS.iter().find(|(words, _)| told(words))
    {
        report.class = *class;
    }
    // The handler of a fault that ends in an assertion of its own, as in NuttX.
    let handler = report.source.as_ref().and_then(|(file, _)| file.strip_suffix("fault.c")).map(str::to_owned);
    if report.class == Class::Assertion
        && let Some(kind) = handler.as_deref().and_then(|file| file.rsplit(['/', '_']).next())
    {
        report.class = Class::Exception;
        builder.title = format!("{kind} fault");
    }
    bug_check_place(builder);
    place_of_caller(builder);
    let told = super::super::words::place_in(&builder.report.message);
    if matches!(builder.report.class, Class::Assertion | Class::Panic) {
        builder.report.source = builder.report.source.take().or(told);
    }
    // The prefix of a logger says where a line is printed: of an assertion that is where it failed.
    if builder.report.class == Class::Assertion
        && let (Some(file), Some(line)) = (builder.value("printer"), builder.value("at").and_then(|at| at.parse().ok()))
    {
        let place = (file.to_owned(), line);
        builder.report.source.get_or_insert(place);
    }
    let report = &mut builder.report;
    if report.class == Class::GeneralProtection {
        // CR2 holds the address of an older page fault.
        report.fault_address = None;
    }
}

/// Takes the position that stands below a frame, `at kernel/src/mm.rs:44:9`; says whether the line is one.
fn is_place_of_frame(builder: &mut Builder, captures: &Captures<'_, '_>, line: &[u8]) -> bool {
    let place =
        captures.text("file").zip(captures.dec("line")).filter(|_| line.starts_with(b"at ") && builder.in_stack);
    let Some((place, frame)) = place.zip(builder.last_frame().filter(|frame| frame.source.is_none())) else {
        return false;
    };
    frame.source = Some(place);
    true
}

/// Whether a file belongs to Rust's own libraries or to a dependency that Cargo fetched.
fn is_fetched(file: &str) -> bool {
    const FOLDERS: [&str; 5] =
        ["library/core/", "library/alloc/", "library/std/", "/registry/src/", "/.cargo/git/checkouts/"];
    file.starts_with("/rustc/") || FOLDERS.iter().any(|folder| file.contains(folder))
}

/// Gives a panic in a library the position of the kernel's own code that called it, where the backtrace has one.
fn place_of_caller(builder: &mut Builder) {
    let report = &builder.report;
    let Some(library) = report.source.clone().filter(|(file, _)| is_fetched(file)) else { return };
    let crash = report.stacks.iter().find(|stack| stack.kind == StackKind::Crash);
    let own = |frame: &&Frame| {
        let foreign = frame.source.as_ref().is_none_or(|(file, _)| is_fetched(file));
        !foreign && frame.symbol.as_deref().is_none_or(|name| !is_skipped(name))
    };
    let caller = crash.and_then(|stack| stack.frames.iter().find(own)).and_then(|frame| frame.source.clone());
    let Some((file, line)) = caller else { return };
    builder.note(format!("the panic is raised at {}:{}", library.0, library.1));
    if builder.value("file").is_some() {
        builder.values.retain(|(name, _)| name != "file");
        builder.say("file", format!("{file}:{line}"));
    }
    builder.report.source = Some((file, line));
}

/// Takes the instruction out of the parameters of a Windows bug check, which its code gives a meaning (bug check code
/// reference of the Windows driver documentation).
fn bug_check_place(builder: &mut Builder) {
    if builder.report.class != Class::Bugcheck || builder.report.ip.is_some() {
        return;
    }
    let number = match builder.report.error_code.map(|code| code & 0x0fff_ffff) {
        Some(0x1e | 0x3b | 0x7e | 0x8e) => 2,
        Some(0x50) => 3,
        Some(0x0a | 0xd1) => 4,
        _ => return,
    };
    // `({p1},{p2},{p3},{p4})` behind the code, or parameters on lines of their own.
    let listed = builder.report.message.split(',').nth(number - 1).map(|text| text.trim_matches([' ', ')', '}']));
    let said = builder.value(&format!("p{number}")).or(listed.filter(|_| builder.report.message.contains(',')));
    let address = said.and_then(|text| hex_all(text.as_bytes())).filter(|address| *address >= 0x8000_0000);
    builder.report.ip = address;
}

fn apply(what: Use, builder: &mut Builder, captures: &Captures<'_, '_>, line: &[u8], position: LogPosition) -> Took {
    match what {
        Use::End => {
            said(builder, captures);
            builder.in_stack = false;
            return Took::End;
        }
        Use::Line if is_place_of_frame(builder, captures, line) => {}
        Use::Line | Use::Mark => {
            builder.marked |= what == Use::Mark;
            said(builder, captures);
            stopped(builder, captures, line, position);
            if let Some(found) = registers::line(line).or_else(|| registers::line(behind_function(line)?)) {
                builder.registers(found);
            }
            // The name of a package marks its kernel, and stands in its frames.
            if what == Use::Mark && (builder.in_stack || !builder.has_stack()) {
                frames::frames(line, false).into_iter().for_each(|frame| builder.frame(frame, position));
            }
        }
        Use::Stack => {
            builder.begin(if builder.has_stack() { StackKind::OtherTask } else { StackKind::Crash }, Some(text(line)));
            said(builder, captures);
            // `Backtrace:0x4008b562:0x3ffc3440 …`: the addresses stand behind the title.
            let rest = memchr::memchr(b':', line).map(|colon| line[colon + 1..].trim_ascii()).unwrap_or_default();
            frames::addresses(rest, true).into_iter().for_each(|frame| builder.frame(frame, position));
        }
        Use::Frame => {
            let frame = frame_of(captures);
            if frame.address.is_none() && frame.symbol.is_none() {
                if let (Some(last), Some(source)) = (builder.last_frame(), frame.source) {
                    last.source.get_or_insert(source);
                }
                return Took::Yes;
            }
            builder.frame(frame, position);
        }
    }
    Took::Yes
}

/// What follows the name of the function that prints a line: `up_dump_register: A0: 00000015 A1: 80608564`.
fn behind_function(line: &[u8]) -> Option<&[u8]> {
    let colon = super::super::words::find(line, b": ")?;
    let name = line[..colon].rsplit(|byte| *byte == b' ').next()?;
    (name.len() > 3 && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'))
        .then(|| line[colon + 2..].trim_ascii())
}

/// A register dump says where the fault is.
fn registers_said(builder: &mut Builder, found: &registers::Line) {
    let value = |names: &[&str]| {
        let mut all = found.pairs.iter();
        all.find(|(name, _)| names.iter().any(|known| name.eq_ignore_ascii_case(known))).map(|(_, value)| *value)
    };
    let trap = builder.report.class.is_trap() || matches!(builder.report.class, Class::Exception | Class::Panic);
    if let Some(address) =
        value(&["CR2", "FAR", "stval", "badaddr", "mtval", "FAR_EL1", "BADV", "badva"]).filter(|_| trap)
    {
        builder.report.fault_address = builder.report.fault_address.or(Some(address));
    }
    if let Some(cause) = value(&["scause", "mcause"]) {
        builder.report.error_code = builder.report.error_code.or(Some(cause));
        builder.report.error_text.get_or_insert(decode::scause(cause).text);
    }
    if let Some(syndrome) = value(&["ESR", "ESR_EL1"]) {
        builder.report.error_code = builder.report.error_code.or(Some(syndrome));
        builder.report.error_text.get_or_insert(decode::esr(syndrome).text);
    }
}

/// Whether a function is one that the row never calls guilty.
pub fn skips(all: &Dialects, row: usize, symbol: &str) -> bool {
    all.row(row).is_some_and(|dialect| dialect.row.skip.iter().any(|name| symbol.starts_with(name.as_ref())))
}

/// Parts the frames by which a kernel enters its panic from those of the failure, where the row alone knows their
/// names: readers of the dump blame the innermost frame that they do not know.
pub fn part_way(all: &Dialects, builder: &mut Builder, row: usize) {
    let stacks = &mut builder.report.stacks;
    let crash = stacks.iter().position(|stack| stack.kind == StackKind::Crash);
    let Some(stack) = crash.and_then(|at| stacks.get_mut(at)) else { return };
    let of_row = |name: &str| skips(all, row, name);
    let names = stack.frames.iter().map_while(|frame| frame.symbol.as_deref());
    let way = names.take_while(|name| of_row(name) || is_skipped(name)).count();
    let names = stack.frames[..way].iter().filter_map(|frame| frame.symbol.as_deref());
    let is_told = names.clone().any(|name| !is_skipped(name));
    let place = builder.report.location.as_ref().and_then(|frame| frame.symbol.as_deref());
    let holds_place = place.is_some_and(|place| names.clone().any(|name| name == place));
    if is_told && !holds_place && way < stack.frames.len() && stacks.len() < MOST_STACKS {
        let behind = stacks[crash.unwrap_or(0)].frames.split_off(way);
        let frames = std::mem::replace(&mut stacks[crash.unwrap_or(0)].frames, behind);
        let title = Some("the way into the panic".to_owned());
        stacks.push(Stack { kind: StackKind::Repeated, title, frames, ..Stack::default() });
    }
}
