//! The text that kernels of the `DBG` dialect print around a panic.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_until, take_while, take_while1};
use nom::character::complete::char;
use nom::combinator::opt;
use nom::multi::{many0, separated_list0};
use nom::sequence::{delimited, preceded};

use super::{Location, Parsed, decimal, hex, location, signed, spaces};

/// Texts of which every line holds one that [`fault_notice`] or [`killed_for_memory`] knows.
pub const NEEDLES: &[&[u8]] = &[b"(pid=", OOM_KILL];
/// How the line begins by which the kernel says whom it killed for memory.
const OOM_KILL: &[u8] = b"Out of memory: killed process ";

/// `[PANIC] CPU=0 at platform/x64/interrupt.rs:350`
pub fn panic_location(line: &[u8]) -> Option<(u32, &[u8], u32)> {
    fn parse(input: &[u8]) -> Parsed<'_, (u64, &[u8])> {
        let (rest, cpu) = preceded(tag(&b"[PANIC] CPU="[..]), decimal).parse(input)?;
        let (rest, _) = tag(&b" at "[..]).parse(rest)?;
        Ok((&[], (cpu, rest)))
    }
    let (_, (cpu, position)) = parse(line.trim_ascii()).ok()?;
    let colon = memchr::memrchr(b':', position)?;
    let number = std::str::from_utf8(&position[colon + 1..]).ok()?.parse().ok()?;
    Some((u32::try_from(cpu).ok()?, &position[..colon], number))
}

/// Words of the lines by which this workspace's kernel dies or kills for memory; it breaks them in what programs print.
pub const OWN_DEATHS: &[&[u8]] = &[b"[PANIC", b"register dump:", b"panicked at ", b"Out of memory: killed"];

/// The same of other kernels with its events, which break nothing.
pub const OTHER_DEATHS: &[&[u8]] = &[b"!!! double fault"];

/// The processor of a `[PANIC] CPU=0` line, with a source location or without one (an exception has none).
pub fn panic_head(line: &[u8]) -> Option<u32> {
    let (rest, cpu) = decimal(line.trim_ascii().strip_prefix(b"[PANIC] CPU=")?).ok()?;
    (rest.is_empty() || rest.starts_with(b" at ")).then_some(u32::try_from(cpu).ok()?)
}

/// `PID=2 TID=2 comm=sh`: what was running.
pub fn running(line: &[u8]) -> Option<(u32, u32, &[u8])> {
    fn parse(input: &[u8]) -> Parsed<'_, (u64, u64)> {
        let (rest, pid) = preceded(tag(&b"PID="[..]), decimal).parse(input)?;
        let (rest, tid) = preceded(tag(&b" TID="[..]), decimal).parse(rest)?;
        let (rest, _) = tag(&b" comm="[..]).parse(rest)?;
        Ok((rest, (pid, tid)))
    }
    let (comm, (pid, tid)) = parse(line.trim_ascii()).ok()?;
    Some((u32::try_from(pid).ok()?, u32::try_from(tid).ok()?, comm))
}

/// A line of a register block: `  RIP=0000000000000000  RSP=ffff80003ff37468`, `CS=0x8 (ring 0)  SS=0x10`.
pub fn registers(line: &[u8]) -> Option<Vec<(&[u8], u64)>> {
    fn name(input: &[u8]) -> Parsed<'_, &[u8]> {
        take_while1(|byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit()).parse(input)
    }
    fn pair(input: &[u8]) -> Parsed<'_, (&[u8], u64)> {
        let (rest, name) = name(input)?;
        let (rest, _) = opt(spaces).parse(rest)?;
        let (rest, value) = preceded(char('='), hex).parse(rest)?;
        let (rest, _) =
            opt(preceded(opt(spaces), delimited(char('('), take_until(&b")"[..]), char(')')))).parse(rest)?;
        Ok((rest, (name, value)))
    }
    let (rest, pairs) = many0(preceded(opt(spaces), pair)).parse(line).ok()?;
    let known = |name: &[u8]| {
        matches!(name, [b'R', ..] | b"CS" | b"SS" | b"DS" | b"ES" | b"FS" | b"GS" | b"ERR" | [b'C', b'R', _])
    };
    (!pairs.is_empty() && rest.trim_ascii().is_empty() && pairs.iter().all(|(name, _)| known(name))).then_some(pairs)
}

/// `  CR2 (fault vaddr) = 0000000000000000`
pub fn fault_address(line: &[u8]) -> Option<u64> {
    let rest = line.trim_ascii().strip_prefix(b"CR2 (fault vaddr) = ")?;
    hex(rest).ok().map(|(_, value)| value)
}

/// The build-id at the end of `Kernel Offset: 0x2600000 from 0xffffffff80100000, build-id 0a1b2c…`.
pub fn build_id(line: &[u8]) -> Option<Vec<u8>> {
    let at = crate::import::reports::words::find(line, b", build-id ")?;
    let digits = std::str::from_utf8(line[at + 11..].trim_ascii()).ok()?;
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect::<Option<Vec<u8>>>().filter(|id| !id.is_empty())
}

/// `    [rsp+0x08] = 0000000000000000`: offset and word.
pub fn stack_word(line: &[u8]) -> Option<(u64, u64)> {
    fn parse(input: &[u8]) -> Parsed<'_, (u64, u64)> {
        let (rest, offset) = delimited(tag(&b"[rsp+"[..]), hex, tag(&b"] = "[..])).parse(input)?;
        let (rest, word) = hex(rest)?;
        Ok((rest, (offset, word)))
    }
    let (rest, word) = parse(line.trim_ascii()).ok()?;
    rest.is_empty().then_some(word)
}

/// A numbered frame: `    0: ffff800000116550  symbol()+0x6f0`.
pub fn frame(line: &[u8]) -> Option<(u32, u64, Option<Location<'_>>)> {
    fn parse(input: &[u8]) -> Parsed<'_, (u64, u64)> {
        let (rest, index) = decimal(input)?;
        let (rest, _) = tag(&b": "[..]).parse(rest)?;
        let (rest, _) = opt(spaces).parse(rest)?;
        let (rest, address) = hex(rest)?;
        Ok((rest, (index, address)))
    }
    let trimmed = line.trim_ascii();
    let (rest, (index, address)) = parse(trimmed).ok()?;
    if !rest.is_empty() && !rest.starts_with(b" ") {
        return None;
    }
    Some((u32::try_from(index).ok()?, address, location(rest.trim_ascii())))
}

/// `  interrupted at: 0000000000000000   __executable_start+0x0`
pub fn interrupted_at(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.trim_ascii().strip_prefix(b"interrupted at: ")?;
    let (position, address) = hex(rest).ok()?;
    Some((address, position.trim_ascii()))
}

/// `SIGSEGV: invalid address 0x10 (pid=2, ip=0x40116c)`: what a kernel says before it sends the signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultNotice<'a> {
    /// Name of the signal.
    pub signal: &'a [u8],
    /// Process that faulted.
    pub pid: u32,
    /// Address of the instruction that faulted.
    pub ip: u64,
    /// Address it failed on, when printed.
    pub address: Option<u64>,
}

/// Reads a [`FaultNotice`].
pub fn fault_notice(line: &[u8]) -> Option<FaultNotice<'_>> {
    if !line.starts_with(b"SIG") {
        return None;
    }
    fn parse(input: &[u8]) -> Parsed<'_, FaultNotice<'_>> {
        let (rest, signal) = take_while1(|byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit()).parse(input)?;
        let (rest, reason) = preceded(tag(&b": "[..]), take_until(&b"(pid="[..])).parse(rest)?;
        let (rest, pid) = preceded(tag(&b"(pid="[..]), decimal).parse(rest)?;
        let (rest, ip) = preceded(tag(&b", ip="[..]), hex).parse(rest)?;
        let (rest, _) = char(')').parse(rest)?;
        let address = reason.trim_ascii().rsplit(|byte| *byte == b' ').next();
        let address =
            address.filter(|word| word.starts_with(b"0x")).and_then(|word| hex(word).ok()).map(|found| found.1);
        Ok((rest, FaultNotice { signal, pid: u32::try_from(pid).unwrap_or(u32::MAX), ip, address }))
    }
    parse(line.trim_ascii()).ok().map(|(_, notice)| notice)
}

/// `Out of memory: killed process 3 (tail), 84688 KiB resident`: whom the kernel killed, its pid and name.
pub fn killed_for_memory(line: &[u8]) -> Option<(u32, &[u8])> {
    let (rest, pid) = decimal(line.trim_ascii().strip_prefix(OOM_KILL)?).ok()?;
    let rest = rest.strip_prefix(b" (")?.strip_suffix(b" KiB resident")?;
    // A name may hold a parenthesis.
    let end = memchr::memmem::rfind(rest, b"), ")?;
    rest[end + 3..].iter().all(u8::is_ascii_digit).then_some((u32::try_from(pid).ok()?, &rest[..end]))
}

/// The head of the flight recorder's base line: `(base TSC=0x1ad2cd8a, showing 3 events)`.
pub fn flight_base(line: &[u8]) -> Option<u64> {
    let rest = line.trim_ascii().strip_prefix(b"(base TSC=")?;
    hex(rest).ok().map(|(_, value)| value)
}

/// First line of a flight-recorder event: ticks since the base, processor, name.
pub fn flight_event(line: &[u8]) -> Option<(u64, u32, &[u8])> {
    fn parse(input: &[u8]) -> Parsed<'_, (u64, u64, &[u8])> {
        let (rest, ticks) = preceded((char('+'), opt(spaces)), decimal).parse(input)?;
        let (rest, _) = (spaces, tag(&b"ticks"[..]), spaces).parse(rest)?;
        let (rest, cpu) = preceded(tag(&b"CPU="[..]), decimal).parse(rest)?;
        let (rest, name) =
            preceded(spaces, take_while1(|byte: u8| byte.is_ascii_alphanumeric() || byte == b'_')).parse(rest)?;
        Ok((rest, (ticks, cpu, name)))
    }
    let (_, (ticks, cpu, name)) = parse(line.trim_ascii()).ok()?;
    Some((ticks, u32::try_from(cpu).ok()?, name))
}

/// Second line of a flight-recorder event: `CPU=0 CTX_SWITCH  from_pid=0 to_pid=1`; gives the detail.
pub fn flight_detail<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    fn parse(input: &[u8]) -> Parsed<'_, u64> {
        let (rest, cpu) = preceded(tag(&b"CPU="[..]), decimal).parse(input)?;
        let (rest, _) = spaces(rest)?;
        Ok((rest, cpu))
    }
    let (rest, _) = parse(line.trim_ascii()).ok()?;
    Some(rest.strip_prefix(name)?.trim_ascii())
}

/// `name=value` of a flight-recorder detail.
pub fn detail_number(detail: &[u8], name: &[u8]) -> Option<u64> {
    let word = detail.split(|byte| *byte == b' ').find_map(|word| word.strip_prefix(name)?.strip_prefix(b"="))?;
    if word.starts_with(b"0x") { hex(word).ok() } else { decimal(word).ok() }.map(|(_, value)| value)
}

/// `=== PID 1 last 32 syscalls ===`
pub fn ring_head(line: &[u8]) -> Option<u32> {
    fn parse(input: &[u8]) -> Parsed<'_, u64> {
        let (rest, pid) = preceded(tag(&b"=== PID "[..]), decimal).parse(input)?;
        let (rest, _) =
            (tag(&b" last "[..]), take_while(|byte: u8| byte.is_ascii_alphanumeric()), tag(&b" syscalls ==="[..]))
                .parse(rest)?;
        Ok((rest, pid))
    }
    parse(line.trim_ascii()).ok().and_then(|(_, pid)| u32::try_from(pid).ok())
}

/// An entry of a printed ring of system calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingEntry<'a> {
    /// Position in the ring.
    pub index: u64,
    /// Name of the call.
    pub name: &'a [u8],
    /// Number of the system call.
    pub nr: i64,
    /// The arguments that are printed.
    pub args: Vec<u64>,
    /// What it returned; `None` when it had not.
    pub result: Option<i64>,
}

/// `[ 12] writev(n=20) args=(0x1,0x9ffffea30,0x2) -> 17`
pub fn ring_entry(line: &[u8]) -> Option<RingEntry<'_>> {
    fn number(input: &[u8]) -> Parsed<'_, i64> {
        if input.starts_with(b"0x") { hex.map(|value| value as i64).parse(input) } else { signed(input) }
    }
    fn parse(input: &[u8]) -> Parsed<'_, RingEntry<'_>> {
        let (rest, index) = delimited((char('['), opt(spaces)), decimal, tag(&b"] "[..])).parse(input)?;
        let (rest, name) = preceded(opt(spaces), take_while1(|byte: u8| byte != b'(' || byte == b' ')).parse(rest)?;
        let (rest, nr) = delimited(tag(&b"(n="[..]), signed, char(')')).parse(rest)?;
        let (rest, args) =
            preceded(tag(&b" args=("[..]), separated_list0((char(','), opt(spaces)), alt((hex, decimal))))
                .parse(rest)?;
        let (rest, _) = char(')').parse(rest)?;
        let (rest, result) = opt(preceded(tag(&b" -> "[..]), number)).parse(rest)?;
        Ok((rest, RingEntry { index, name, nr, args, result }))
    }
    parse(line.trim_ascii()).ok().map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_without_a_place_in_the_source_is_still_a_death() {
        assert_eq!(panic_head(b"[PANIC] CPU=3"), Some(3));
        assert_eq!(panic_head(b"[PANIC] CPU=0 at src/main.rs:7"), Some(0));
        assert_eq!(panic_head(b"[PANIC] CPU=0x"), None);
        assert_eq!(running(b"PID=2 TID=5 comm=my program"), Some((2, 5, &b"my program"[..])));
        assert_eq!(running(b"PID=2 comm=sh"), None);
    }

    #[test]
    fn lines_of_a_real_panic_are_read() {
        assert_eq!(
            panic_location(b"[PANIC] CPU=0 at platform/x64/interrupt.rs:350"),
            Some((0, &b"platform/x64/interrupt.rs"[..], 350))
        );
        let pairs =
            registers(b"  RSI=ffff80003f84f070  RDI=ffff80003f850070  R8 =0000000000000000  R9 =0000000000000004");
        assert_eq!(pairs.as_ref().map(Vec::len), Some(4));
        assert_eq!(pairs.and_then(|pairs| pairs.get(2).copied()), Some((&b"R8"[..], 0)));
        let line = b"  CS=0x8 (ring 0)  SS=0x10  RFLAGS=0x00000002  ERR=0x10";
        assert_eq!(
            registers(line).map(|pairs| pairs.iter().map(|pair| pair.1).collect::<Vec<_>>()),
            Some(vec![8, 16, 2, 16])
        );
        assert_eq!(registers(b"A=1 sentence about B"), None);
        assert_eq!(fault_address(b"  CR2 (fault vaddr) = 00000000deadbeef"), Some(0xdead_beef));
        assert_eq!(stack_word(b"    [rsp+0x08] = 00000000000000ff"), Some((8, 255)));
        let (index, address, position) = frame(b"    3: ffff800000101280  interrupt_common()+0x30").expect("a frame");
        assert_eq!((index, address, position.map(|at| at.offset)), (3, 0xffff_8000_0010_1280, Some(0x30)));
    }

    #[test]
    fn the_flight_recorder_and_the_ring_are_read() {
        assert_eq!(flight_base(b"  (base TSC=0x1ad2cd8a, showing 3 events)"), Some(0x1ad2_cd8a));
        assert_eq!(flight_event(b"  +52922766 ticks  CPU=0  CTX_SWITCH "), Some((52_922_766, 0, &b"CTX_SWITCH"[..])));
        let detail = flight_detail(b"  CPU=0 CTX_SWITCH  from_pid=1 to_pid=2", b"CTX_SWITCH").expect("a detail");
        assert_eq!((detail_number(detail, b"from_pid"), detail_number(detail, b"to_pid")), (Some(1), Some(2)));
        assert_eq!(ring_head(b"=== PID 1 last 32 syscalls ==="), Some(1));
        let entry = ring_entry(b"[ 12] writev(n=20) args=(0x1,0x9ffffea30,0x2) -> 17").expect("an entry");
        assert_eq!((entry.index, entry.name, entry.nr, entry.result), (12, &b"writev"[..], 20, Some(17)));
        assert_eq!(entry.args, [1, 0x9_ffff_ea30, 2]);
    }

    #[test]
    fn the_notice_before_a_signal_says_where_and_what() {
        let notice = fault_notice(b"SIGSEGV: invalid address 0x10 (pid=2, ip=0x40116c)").expect("a notice");
        assert_eq!((notice.signal, notice.pid, notice.ip, notice.address), (&b"SIGSEGV"[..], 2, 0x40_116c, Some(0x10)));
    }
}
