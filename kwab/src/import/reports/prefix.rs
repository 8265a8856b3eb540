//! Takes the transport off a console line: time stamps, caller ids, syslog and journal heads, mail quotes, escapes.
//!
//! Transports nest (a CI stamp before a syslog head before a kernel time stamp), so the known forms are taken off one
//! after another, at most `ROUNDS` times, until none fits. What is left is what the kernel printed.

use super::transport;
use super::words::{after, dec, dec_after, has};

/// Bytes before a time stamp that may be a supervisor's label, and bytes of the stamp.
const LONGEST_LABEL: usize = 48;
const LONGEST_STAMP: usize = 32;

/// How many nested transports are taken off.
const ROUNDS: usize = 8;

/// Who printed a line, as `CONFIG_PRINTK_CALLER` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Caller {
    /// `[ T123]`: a task.
    Task(u32),
    /// `[ C1]`: a processor in interrupt context.
    Cpu(u32),
}

/// A line without its transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripped<'a> {
    /// Who printed it.
    pub caller: Option<Caller>,
    /// Nanoseconds since boot.
    pub ns: Option<u64>,
    /// Name of the task that ran on the processor that printed it, as kernels of vendors say.
    pub comm: Option<&'a [u8]>,
    /// What was printed, with its indentation.
    pub text: &'a [u8],
    /// What was taken off, its length.
    pub prefix: usize,
}

/// Takes transports off; keeps a buffer for the lines that need cleaning.
#[derive(Debug, Default)]
pub struct Stripper {
    buffer: Vec<u8>,
}

impl Stripper {
    /// Takes the transports off one line.
    pub fn strip<'a>(&'a mut self, line: &'a [u8]) -> Stripped<'a> {
        let special = |byte: &u8| matches!(byte, 0..=8 | 10..=31 | b'&' | b'=' | 0x7f | 0xc3 | 0xe2);
        let mut line = line;
        if (line.first() == Some(&b'{') || line.iter().any(special)) && super::clean::clean(line, &mut self.buffer) {
            line = &self.buffer;
        }
        strip_clean(without_markup(line))
    }
}

/// The ends of lines on a web page.
const MARKUP: [&[u8]; 8] = [b"<br>", b"<br/>", b"<br />", b"</p>", b"</div>", b"</span>", b"</pre>", b"</code>"];

/// A line without the tags that end it, and without the end of the string in which a log is listed:
/// `"msg": "[   12.345678] text"}`.
fn without_markup(line: &[u8]) -> &[u8] {
    let mut line = line;
    while line.ends_with(b">")
        && let Some(rest) = MARKUP.iter().find_map(|tag| line.strip_suffix(*tag))
    {
        line = rest;
    }
    let ends = [&b"\"},"[..], b"\"}", b"\",", b"\""];
    match ends.iter().find_map(|end| line.strip_suffix(*end)) {
        Some(rest) if super::words::find(line, b"\"[").is_some() => rest,
        _ => line,
    }
}

/// Takes the transports off a line without escapes.
pub fn strip_clean(line: &[u8]) -> Stripped<'_> {
    let mut found = Stripped { caller: None, ns: None, comm: None, text: line, prefix: 0 };
    for _ in 0..ROUNDS {
        let before = found.text.len();
        found.text = one(found.text, &mut found.caller, &mut found.ns, &mut found.comm);
        if found.text.len() == before {
            break;
        }
    }
    found.prefix = line.len() - found.text.len();
    found
}

/// Takes one transport off, if one of the known forms stands at the front.
fn one<'a>(text: &'a [u8], caller: &mut Option<Caller>, ns: &mut Option<u64>, comm: &mut Option<&'a [u8]>) -> &'a [u8] {
    let trimmed = text.trim_ascii_start();
    let found = match trimmed.first() {
        Some(b'[') => bracket(trimmed, caller, ns, comm),
        Some(b'<') => {
            let tag = || trimmed.strip_prefix(b"<p>").or_else(|| trimmed.strip_prefix(b"<pre>"));
            level(trimmed).or_else(tag)
        }
        Some(b':') => of_abrt(trimmed),
        Some(b'>') | Some(b'|') => quote(trimmed),
        Some(b'+') => added(trimmed),
        Some(b'0'..=b'9') => {
            let known = logcat(trimmed).or_else(|| stamp(trimmed)).or_else(|| netconsole(trimmed, caller, ns));
            let known = known.or_else(|| transport::of_probe(trimmed)).or_else(|| printing(trimmed, caller, *ns));
            known.or_else(|| numbered(trimmed)).or_else(|| rfc5424(trimmed))
        }
        Some(b'A'..=b'Z') => {
            let known = syslog(trimmed).or_else(|| trimmed.strip_prefix(b"MESSAGE="));
            let known = known.or_else(|| transport::glog(trimmed));
            known.or_else(|| vendor(trimmed, comm)).or_else(|| localised(trimmed))
        }
        Some(b'a'..=b'z') => {
            let stamped = ns.is_some();
            let known = tagged(trimmed).or_else(|| localised(trimmed));
            known.or_else(|| processor(trimmed, caller).filter(|_| stamped))
        }
        Some(0x80..) => localised(trimmed),
        Some(b'(') => android(trimmed, comm).or_else(|| dated(trimmed)),
        _ => None,
    };
    let found = found.or_else(|| host(trimmed).filter(|_| ns.is_some()));
    // What stands between two time stamps is the end of a line.
    let label = |ns: &Option<u64>| before_stamp(trimmed).filter(|_| ns.is_none());
    found.or_else(|| label(ns)).or_else(|| transport::other(trimmed)).unwrap_or(text)
}

/// What a supervisor writes before a line, one or two words: `guest-3 [   12.345678] text`, `[node/uart0] [ 12.345] `.
/// Only a time stamp of a kernel behind it tells it from text.
fn before_stamp(text: &[u8]) -> Option<&[u8]> {
    let near = &text[..text.len().min(LONGEST_LABEL)];
    let at = super::words::find(near, b" [").map(|at| at + 1)?;
    let words = text[..at].split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let stamped = &text[at..text.len().min(at + LONGEST_STAMP)];
    let end = memchr::memchr(b']', stamped)?;
    let (_, after) = seconds(stamped[1..end].trim_ascii())?;
    (after.is_empty() && words.count() <= 2).then_some(&text[at..])
}

/// `[   12.345678]`, `[ T12]`, `[ C1]`, `[Wed Nov  6 12:13:14 2024]`, `[2024-11-06T12:13:14.1Z]`, `[12:13:14]`.
fn bracket<'a>(
    text: &'a [u8],
    caller: &mut Option<Caller>,
    ns: &mut Option<u64>,
    comm: &mut Option<&'a [u8]>,
) -> Option<&'a [u8]> {
    let end = memchr::memchr(b']', &text[..text.len().min(64)])?;
    let inner = text[1..end].trim_ascii();
    let rest = &text[end + 1..];
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    match inner.first()? {
        b'T' | b'C' if inner.len() > 1 && inner[1..].iter().all(u8::is_ascii_digit) => {
            let (number, _) = dec(&inner[1..])?;
            let number = u32::try_from(number).ok()?;
            *caller = Some(if inner[0] == b'T' { Caller::Task(number) } else { Caller::Cpu(number) });
            Some(rest)
        }
        b'0'..=b'9' => {
            if let Some((value, after)) = seconds(inner) {
                // `[   12.345678 (CPU:0-pid:1:swapper/0)]`, `[   12.345678,0]` of vendors' kernels.
                // `[   12.345678 <    0.000002>]`: the time since the line before.
                let marks = [&b" ("[..], b",", b"@", b" <"];
                let known = after.is_empty() || marks.iter().any(|mark| after.starts_with(mark));
                *ns = ns.or(Some(value));
                *comm = comm.or_else(|| of_task(after.strip_prefix(b" (CPU:")?));
                return known.then_some(rest);
            }
            (is_clock(inner) || is_count(inner, rest) || is_minute(inner)).then_some(rest)
        }
        b'A'..=b'Z' => (is_day(inner) && has(inner, b":") || is_minute(inner)).then_some(rest),
        b'p' if inner.starts_with(b"pid:") && has(inner, b",cpu") => {
            // `[pid:10974,cpu1,grep]`; behind the name may stand a number.
            *caller = caller.or_else(|| dec_after(inner, b",cpu").map(Caller::Cpu));
            *comm = comm.or_else(|| inner.split(|byte| *byte == b',').nth(2).filter(|name| !name.is_empty()));
            Some(rest)
        }
        b'+' => is_difference(&inner[1..]).then_some(rest),
        _ => is_minute(inner).then_some(rest),
    }
}

/// The name in `0-pid:1:swapper/0)`.
fn of_task(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = dec(after(text, b"pid:")?)?;
    Some(rest.strip_prefix(b":")?.strip_suffix(b")")?).filter(|name| !name.is_empty())
}

/// `[  +0.000004]` of `dmesg -H`: the time since the line before, with the decimal sign of the locale.
fn is_difference(number: &[u8]) -> bool {
    let mut parts = number.split(|byte| matches!(byte, b'.' | b','));
    let digits = |part: Option<&[u8]>| part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
    digits(parts.next()) && digits(parts.next()) && parts.next().is_none()
}

/// `[Jul30 08:55]`, `[30. Jul 08:55]` of `dmesg -H`: the minute, where it differs from that of the line before.
fn is_minute(text: &[u8]) -> bool {
    let Some(at) = text.iter().rposition(|byte| *byte == b' ') else { return false };
    let (day, clock) = (&text[..at], &text[at + 1..]);
    let is_clock = clock.len() == 5 && clock[2] == b':' && [0, 1, 3, 4].iter().all(|at| clock[*at].is_ascii_digit());
    let letters = day.iter().filter(|byte| byte.is_ascii_alphabetic() || **byte >= 0x80).count();
    let digits = day.iter().filter(|byte| byte.is_ascii_digit()).count();
    let plain = day.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'.') || *byte >= 0x80);
    is_clock && plain && (2..=12).contains(&letters) && (1..=2).contains(&digits)
}

/// `c0 text` of a vendor's kernel, behind its time stamp: the processor that prints.
fn processor<'a>(text: &'a [u8], caller: &mut Option<Caller>) -> Option<&'a [u8]> {
    let (number, rest) = dec(text.strip_prefix(b"c")?)?;
    let rest = rest.strip_prefix(b" ").filter(|rest| number < 64 && !rest.trim_ascii_start().starts_with(b"="))?;
    *caller = caller.or(Some(Caller::Cpu(u32::try_from(number).ok()?)));
    Some(rest)
}

/// `003: text` behind the time stamp of a kernel with the patches for real time: the processor that prints.
fn printing<'a>(text: &'a [u8], caller: &mut Option<Caller>, ns: Option<u64>) -> Option<&'a [u8]> {
    ns.filter(|_| text.get(3) == Some(&b':'))?;
    let (number, rest) = dec(text)?;
    let rest = rest.strip_prefix(b": ").or_else(|| rest.strip_prefix(b":").filter(|rest| rest.is_empty()))?;
    *caller = caller.or(Some(Caller::Cpu(u32::try_from(number).ok()?)));
    Some(rest)
}

/// `[  240.]` of kernels without a finer clock, `[383411]` in seconds (FreeBSD), `[0000a3f8] <err>` in ticks (Zephyr).
/// Shorter numbers count frames, unless words of FreeBSD follow.
fn is_count(inner: &[u8], rest: &[u8]) -> bool {
    let digits = inner.strip_suffix(b".").unwrap_or(inner);
    let decimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let ticks = inner.len() == 8 && inner.iter().all(u8::is_ascii_hexdigit) && rest.starts_with(b"<");
    const WORDS: [&[u8]; 8] =
        [b"#", b"lock order", b"1st 0x", b"2nd 0x", b"stack backtrace:", b"Fatal trap", b"panic: ", b"KDB: "];
    let text = rest.trim_ascii_start();
    let early = decimal && WORDS.iter().any(|word| text.starts_with(word));
    decimal && (digits.len() < inner.len() || digits.len() >= 3) || ticks || early
}

/// `12.345678` in nanoseconds, and what follows.
fn seconds(text: &[u8]) -> Option<(u64, &[u8])> {
    let (whole, rest) = dec(text)?;
    let rest = rest.strip_prefix(b".")?;
    let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
    if !(1..=9).contains(&digits) || whole > 1 << 53 {
        return None;
    }
    let (fraction, after) = dec(rest)?;
    let scale = 10u64.pow(9 - digits as u32);
    Some((whole.saturating_mul(1_000_000_000).saturating_add(fraction * scale), after))
}

/// `2024-11-06T12:13:14.123Z`, `2024-11-06 12:13:14`, `12:13:14.5`, and nothing else.
fn is_clock(text: &[u8]) -> bool {
    let shape = |byte: &u8| {
        byte.is_ascii_digit() || matches!(byte, b':' | b'-' | b'.' | b'T' | b'Z' | b' ' | b'+' | b',' | b'/')
    };
    text.len() >= 8 && text.iter().all(shape) && text.iter().filter(|byte| **byte == b':').count() >= 2
}

fn is_day(text: &[u8]) -> bool {
    const DAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    DAYS.iter().any(|day| text.starts_with(day))
}

/// The priority that syslog prints before a line: `<4>`, `<14>`.
fn level(text: &[u8]) -> Option<&[u8]> {
    let (number, rest) = dec(&text[1..])?;
    rest.strip_prefix(b">").filter(|_| number < 256)
}

/// `> `, `>> `, `| `: a quoted mail or a table. `>ffff8880…:` of a memory dump stays.
fn quote(text: &[u8]) -> Option<&[u8]> {
    let rest = &text[1..];
    match rest.first() {
        Some(b' ') => Some(&rest[1..]),
        Some(b'>' | b'|') => Some(rest),
        None => Some(rest),
        _ => None,
    }
}

/// `+text`: a line that a comparison shows as new, as in the daily mails of BSD systems.
fn added(text: &[u8]) -> Option<&[u8]> {
    let rest = &text[1..];
    let said = rest
        .first()
        .is_none_or(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'#' | b'[' | b'<' | b' ' | b'\t' | b'-'));
    said.then_some(rest)
}

/// `2024-11-06T12:13:14.123+01:00 host kernel: `, `2024-11-06T12:13:14.1234567Z `, `12:13:14 `; `12.345678] ` of a line
/// whose bracket was lost.
fn stamp(text: &[u8]) -> Option<&[u8]> {
    if let Some((_, rest)) = seconds(text) {
        // `1276.705430:   <1> text` of a kernel that was read out of memory.
        let levelled = |rest: &&[u8]| rest.trim_ascii_start().starts_with(b"<");
        // `12.345678][T123] text`: the caller stands behind it.
        let caller = rest.strip_prefix(b"]").filter(|rest| rest.starts_with(b"[T") || rest.starts_with(b"[C"));
        let known = rest.strip_prefix(b"] ").or(caller).or_else(|| rest.strip_prefix(b":").filter(levelled));
        // `1730891594.123456 host kernel: text`.
        return known.or_else(|| host(rest.strip_prefix(b" ")?));
    }
    let mut end = text.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    let mut word = &text[..end];
    // `2024-11-06 12:13:14`: the day and the time are two words.
    if word.len() == 10 && word.iter().filter(|byte| matches!(byte, b'-' | b'/')).count() == 2 {
        let rest = text.get(end + 1..)?;
        end += 1 + rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        word = &text[..end];
    }
    if !is_clock(word) {
        return None;
    }
    let rest = text.get(end..)?;
    if let Some(columns) = rest.strip_prefix(b"\t") {
        return of_kernel(columns);
    }
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    // A terminal program puts a sign between its time and the line.
    let rest = rest.strip_prefix(b": ").or_else(|| rest.strip_prefix(b"-> ")).unwrap_or(rest);
    let rest = transport::of_terminal(rest);
    Some(host(rest).unwrap_or(rest))
}

/// The last of the columns `severity`, `process`, `text` of an exported log, if the kernel wrote it.
fn of_kernel(columns: &[u8]) -> Option<&[u8]> {
    let mut columns = columns.splitn(3, |byte| *byte == b'\t');
    let (_, process, text) = (columns.next()?, columns.next()?, columns.next()?);
    (process == b"kernel").then(|| text.strip_suffix(b"\t").unwrap_or(text))
}

/// `Nov  6 12:13:14 host kernel: `, also with a year or fractions of seconds.
fn syslog(text: &[u8]) -> Option<&[u8]> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    if is_day(text) && text.get(3) == Some(&b' ') {
        return syslog(&text[4..]).or_else(|| full(&text[4..]));
    }
    let rest = MONTHS.iter().find_map(|month| text.strip_prefix(*month))?.strip_prefix(b" ")?.trim_ascii_start();
    let (day, rest) = dec(rest)?;
    let rest = rest.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    if day > 31 || !is_clock(&rest[..end]) {
        return None;
    }
    let rest = rest[end..].strip_prefix(b" ").unwrap_or(&rest[end..]);
    Some(host(rest).unwrap_or(rest))
}

/// `2024-11-06 12:13:14 CET host kernel: ` behind the day of the week, as `journalctl -o short-full` prints it.
fn full(text: &[u8]) -> Option<&[u8]> {
    let (stamp, rest) = text.split_at_checked(19)?;
    let rest = rest.strip_prefix(b" ").filter(|_| is_clock(stamp))?;
    let end = rest.iter().position(|byte| *byte == b' ')?;
    let zone = &rest[..end];
    let is_zone =
        zone.len() <= 6 && zone.iter().all(|byte| byte.is_ascii_uppercase() || b"+-0123456789".contains(byte));
    host(rest[end..].trim_ascii_start()).filter(|_| is_zone)
}

/// `1 2024-11-06T12:13:14.123+01:00 host kernel - - - text`: a syslog head by RFC 5424.
fn rfc5424(text: &[u8]) -> Option<&[u8]> {
    let mut fields = text.splitn(8, |byte| *byte == b' ');
    let (version, time, _host) = (fields.next()?, fields.next()?, fields.next()?);
    let (program, _process, _kind, data) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let fits = version == b"1" && is_clock(time) && program == b"kernel" && data == b"-";
    fields.next().filter(|_| fits)
}

/// `:text`: the lines of a report in a mail of ABRT.
fn of_abrt(text: &[u8]) -> Option<&[u8]> {
    let rest = &text[1..];
    rest.first().filter(|byte| byte.is_ascii_alphanumeric() || b" [<#-=".contains(byte)).map(|_| rest)
}

/// `myhost kernel: `, `myhost kernel[12]: `: the rest of a syslog head.
fn host(text: &[u8]) -> Option<&[u8]> {
    let end = text[..text.len().min(128)].iter().position(|byte| *byte == b' ')?;
    // `(none)` is what a machine without a name is called.
    let name = text[..end].strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")).unwrap_or(&text[..end]);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':');
    if !name.iter().all(plain) || name.ends_with(b":") {
        return tagged(text);
    }
    let rest = text[end..].trim_ascii_start();
    // A collector of netconsole writes the record of `/dev/kmsg` behind the name.
    tagged(rest).or_else(|| netconsole(rest, &mut None, &mut None).map(|_| rest))
}

/// `июл 27 14:08:03 laptop kernel: `: a syslog head whose month is in another language.
fn localised(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().take(17).position(|byte| *byte == b' ')?;
    if end < 2 || text[..end].iter().any(|byte| byte.is_ascii_digit() || *byte == b':') {
        return None;
    }
    let (day, rest) = dec(text[end..].trim_ascii_start())?;
    let rest = rest.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b' ')?;
    // Only the kernel's tag tells it from prose.
    if day > 31 || !is_clock(&rest[..end]) { None } else { host(rest[end..].trim_ascii_start()) }
}

/// `08-03 17:15:47.235     0     0 E         : text` of Android's logcat: day, time, process, thread, level, tag.
fn logcat(text: &[u8]) -> Option<&[u8]> {
    let (day, rest) = text.split_at_checked(5)?;
    let is_day = day[2] == b'-' && [0, 1, 3, 4].iter().all(|at| day[*at].is_ascii_digit());
    let mut rest = rest.strip_prefix(b" ").filter(|_| is_day)?;
    let end = rest.iter().position(|byte| *byte == b' ')?;
    if !is_clock(&rest[..end]) {
        return None;
    }
    rest = rest[end..].trim_ascii_start();
    for _ in 0..2 {
        rest = dec(rest)?.1.strip_prefix(b" ")?.trim_ascii_start();
    }
    let (level, rest) = rest.split_first()?;
    let rest = rest.strip_prefix(b" ").filter(|_| b"VDIWEFA".contains(level))?.trim_ascii_start();
    // The kernel's lines have no tag.
    Some(rest.strip_prefix(b": ").unwrap_or(rest))
}

/// `7366   │ text` of a pager that numbers lines.
fn numbered(text: &[u8]) -> Option<&[u8]> {
    let (_, rest) = dec(text)?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii_start().strip_prefix("│".as_bytes())?;
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

/// `I[0:  kworker/u16:3:  435] text` of a vendor's kernel: level, processor, task, process.
fn vendor<'a>(text: &'a [u8], comm: &mut Option<&'a [u8]>) -> Option<&'a [u8]> {
    let (_, rest) = dec(text.get(1..)?.strip_prefix(b"[")?)?;
    let rest = rest.strip_prefix(b":")?;
    let end = memchr::memchr(b']', &rest[..rest.len().min(48)])?;
    let colon = memchr::memrchr(b':', &rest[..end])?;
    let number = rest[colon + 1..end].trim_ascii();
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    *comm = comm.or_else(|| Some(rest[..colon].trim_ascii()).filter(|name| is_number && !name.is_empty()));
    is_number.then(|| rest[end + 1..].strip_prefix(b" ").unwrap_or(&rest[end + 1..]))
}

/// `(01-28 07:22:33.304698634) text`.
fn dated(text: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b')', &text[..text.len().min(40)])?;
    is_clock(&text[1..end]).then(|| text[end + 1..].strip_prefix(b" ").unwrap_or(&text[end + 1..]))
}

/// `kernel: `, `kernel:[ 12.3]`, `kern.warn kernel: `, `vmunix: `, `console | `.
fn tagged(text: &[u8]) -> Option<&[u8]> {
    for tag in [&b"kernel:"[..], b"vmunix:", b"klogd:", b"user.crit kernel:"] {
        if let Some(rest) = text.strip_prefix(tag) {
            return Some(rest.strip_prefix(b" ").unwrap_or(rest));
        }
    }
    if let Some((_, rest)) = text.strip_prefix(b"kernel[").and_then(dec) {
        return rest.strip_prefix(b"]: ");
    }
    // `kern  :alert : text` of `dmesg -x`.
    if let Some(rest) = text.strip_prefix(b"kern").map(<[u8]>::trim_ascii_start).filter(|rest| rest.starts_with(b":")) {
        let end = rest.iter().position(|byte| *byte == b' ').filter(|end| *end < 8)?;
        return rest[end..].trim_ascii_start().strip_prefix(b": ");
    }
    if let Some(rest) = text.strip_prefix(b"backtrace: :") {
        return Some(rest);
    }
    if let Some(rest) = text.strip_prefix(b"kern.") {
        let end = rest.iter().position(|byte| *byte == b' ')?;
        return Some(&rest[end + 1..]).filter(|_| end < 8);
    }
    // `vm_1  | text` of a supervisor's output.
    let end = text[..text.len().min(32)]
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'_' | b'-'))?;
    let rest = text[end..].trim_ascii_start().strip_prefix(b"| ")?;
    (text[end] == b' ').then_some(rest)
}

/// `4,1234,5678901,-;text` and `4,1234,5678901,-,caller=T12;text`: extended netconsole and `/dev/kmsg`.
fn netconsole<'a>(text: &'a [u8], caller: &mut Option<Caller>, ns: &mut Option<u64>) -> Option<&'a [u8]> {
    let end = memchr::memchr(b';', &text[..text.len().min(96)])?;
    let mut fields = text[..end].split(|byte| *byte == b',');
    let all = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let (level, number, micros, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    if !all(level) || !all(number) || !all(micros) || flags.len() > 2 {
        return None;
    }
    *ns = ns.or_else(|| dec(micros).and_then(|(value, _)| value.checked_mul(1000)));
    for field in fields {
        if let Some(value) = field.strip_prefix(b"caller=")
            && let Some((number, _)) = value.get(1..).and_then(dec)
        {
            let number = u32::try_from(number).ok()?;
            *caller = Some(if value[0] == b'T' { Caller::Task(number) } else { Caller::Cpu(number) });
        }
    }
    Some(&text[end + 1..])
}

/// `(3)[45:comm]text` of Android vendors.
fn android<'a>(text: &'a [u8], comm: &mut Option<&'a [u8]>) -> Option<&'a [u8]> {
    let (_, rest) = dec(&text[1..])?;
    let rest = rest.strip_prefix(b")[")?;
    let end = memchr::memchr(b']', &rest[..rest.len().min(48)])?;
    let colon = memchr::memchr(b':', &rest[..end])?;
    *comm = comm.or_else(|| Some(rest[colon + 1..end].trim_ascii()).filter(|name| !name.is_empty()));
    Some(&rest[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(line: &str) -> (String, Option<Caller>, Option<u64>) {
        let mut stripper = Stripper::default();
        let found = stripper.strip(line.as_bytes());
        (String::from_utf8_lossy(found.text.trim_ascii_start()).into_owned(), found.caller, found.ns)
    }

    #[test]
    fn every_transport_leaves_the_same_text() {
        // Shapes: printk(9), journalctl(1) output modes, rsyslog's templates, Documentation/networking/netconsole.
        for line in [
            "BUG: bad",
            "<4>BUG: bad",
            "[   12.345678] BUG: bad",
            "[   12.345678][  T1234] BUG: bad",
            "<1>[   12.345678][    C1] BUG: bad",
            "[Wed Nov  6 12:13:14 2024] BUG: bad",
            "Nov  6 12:13:14 box kernel: [   12.345678] BUG: bad",
            "Nov 16 12:13:14 box.lan kernel: BUG: bad",
            "2024-11-06T12:13:14+0100 box kernel: BUG: bad",
            "2024-11-06T12:13:14.123456+01:00 box kernel: [   12.345678] BUG: bad",
            "2024-11-06T12:13:14.1234567Z [   12.345678] BUG: bad",
            "[2024-11-06T12:13:14.123Z] BUG: bad",
            "12:13:14 [   12.345678] BUG: bad",
            "2024-11-06 12:13:14 [   12.345678] BUG: bad",
            "4,1234,12345678,-;BUG: bad",
            "4,1234,12345678,-,caller=T12;BUG: bad",
            "> > [   12.345678] BUG: bad",
            ">> [   12.345678] BUG: bad",
            "\x1b[31m[   12.345678]\x1b[0m BUG: bad\r",
            "&lt;4&gt;[   12.345678] BUG: bad",
            "kernel:[   12.345678] BUG: bad",
            "[   12.345678] (3)[45:init]BUG: bad",
            "vm_1  | [   12.345678] BUG: bad",
            "{\"PRIORITY\":\"4\",\"MESSAGE\":\"BUG: bad\",\"_TRANSPORT\":\"kernel\"}",
            "MESSAGE=BUG: bad",
            "guest-3 [   12.345678] BUG: bad",
            "[node/uart0] [   12.345678] BUG: bad",
            "ttyS1: guest [   12.345678][    C0] BUG: bad",
            "[   12.] BUG: bad",
            "[383411] BUG: bad",
            "[0000a3f8] <3>BUG: bad",
            "12.345678] BUG: bad",
            "\u{241b}[1;31mBUG: bad",
            "login: BUG: bad",
            "box login: BUG: bad",
            "2024-11-06 12:13:14,567 - INFO # BUG: bad",
            "2024-11-06 12:13:14,567 # BUG: bad",
            "INFO - ERROR - BUG: bad",
            "2024-11-06T12:13:14+00:00 box unix: [ID 100000 kern.notice] #012#015BUG: bad",
            "E#1      @rack/board  console output: BUG: bad",
            "2024-11-06T12:13:14\tNotice\tkernel\tBUG: bad\t",
            "08-03 17:15:47.235     0     0 E         : BUG: bad",
            "May 25 07:29:42 box 0,16627,40311380557,-,caller=C0;BUG: bad",
            "7366   │ 0,5027,12935280555,-;BUG: bad",
            "июл 27 14:08:03 laptop kernel: BUG: bad",
            "juil. 27 14:08:03 laptop kernel: BUG: bad",
            "[    2.392276]I[0:  kworker/u16:3:  435] BUG: bad",
            "17:00:25.091 : BUG: bad",
            "17:00:25.091 -> BUG: bad",
            " 1276.705430:   <1> (01-28 07:22:33.304698634) BUG: bad",
            "[   12.345678] box kernel: BUG: bad",
            "1730891594.123456 box kernel: BUG: bad",
            "Wed 2024-11-06 12:13:14 CET box kernel: BUG: bad",
            "Wed 2024-11-06 12:13:14 CET box kernel[0]: BUG: bad",
            "[    3.456789 <    0.000001>] box kernel: BUG: bad",
            "[   12.345678 <    0.000002>] BUG: bad",
            "<4>1 2024-11-06T12:13:14.123456+01:00 box kernel - - - BUG: bad",
            "kern  :alert : [Wed Nov  6 12:13:14 2024] BUG: bad",
            "[   12.345678] BUG: bad<br>",
            "<p>[   12.345678] BUG: bad</p>",
            ":BUG: bad",
            "backtrace: :BUG: bad",
            "[Jul30 08:55] BUG: bad",
            "[30. Jul 08:55] BUG: bad",
            "[июл30 08:55] BUG: bad",
            "[  +0.000004] BUG: bad",
            "[  +0,000004] BUG: bad",
            "<4>[169739.712691] c2 BUG: bad",
        ] {
            assert_eq!(stripped(line).0, "BUG: bad", "{line}");
        }
    }

    #[test]
    fn caller_and_time_are_kept() {
        let (_, caller, ns) = stripped("[   12.500000][  T77] x");
        assert_eq!((caller, ns), (Some(Caller::Task(77)), Some(12_500_000_000)));
        let comm = |line: &'static str| strip_clean(line.as_bytes()).comm.map(String::from_utf8_lossy);
        for line in [
            "[    2.392276]I[0:  demo/0:3:  435] x",
            "[   12.345678] (3)[45:demo/0:3]x",
            "[   12.345678] [pid:45,cpu1,demo/0:3]x",
            "[   12.345678][pid:45,cpu1,demo/0:3,7]x",
            "[   12.345678 (CPU:0-pid:45:demo/0:3)] x",
        ] {
            assert_eq!(comm(line).as_deref(), Some("demo/0:3"), "{line}");
        }
        assert_eq!(comm("[   12.345678] x"), None);
        let (_, caller, ns) = stripped("6,12,2000000,-,caller=C3;x");
        assert_eq!((caller, ns), (Some(Caller::Cpu(3)), Some(2_000_000_000)));
    }

    #[test]
    fn text_that_only_looks_like_a_transport_stays() {
        for line in [">ffff888100000000: fb fb", "[<ffffffff81000000>] foo+0x1/0x2", "[inline]", "12 monkeys", "<TASK>"]
        {
            assert_eq!(stripped(line).0, line);
        }
        for line in [
            "may 5 12:13:14 was a day",
            "c0 is a register",
            "::panicinfo",
            "the kernel: BUG",
            "[+1] x",
            "[at 08:55] x",
            "10-12 people",
            "I[0] = 3",
            "7 │ x".trim_start_matches("7 │ "),
            "(12) x",
        ] {
            assert_eq!(stripped(line).0, line);
        }
        for line in ["[12] foo+0x1/0x2", "a b c [   12.345678] x", "foo [bar]", "1.5 seconds", "at [0x12] foo"] {
            assert_eq!(stripped(line).0, line);
        }
    }
}
