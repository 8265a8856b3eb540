//! Reads printed registers, whatever the architecture: `NAME: hex`, `NAME=hex`, `NAME : [<hex>]`, `NAME. 0xhex`, also
//! in a frame of box-drawing characters, and the tables of powerpc, s390, mips and loongarch.

use super::report::Arch;
use super::words::{hex, text};

/// Registers that one line may hold.
const MOST_PER_LINE: usize = 32;

/// What a line of registers holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Names as printed, values.
    pub pairs: Vec<(String, u64)>,
    /// Whether a code segment on it is that of user code (x86).
    pub user: bool,
}

/// Reads a line that holds registers and little else.
pub fn line(bytes: &[u8]) -> Option<Line> {
    let unboxed = without_frames(bytes);
    let trimmed = unboxed.as_deref().unwrap_or(bytes).trim_ascii();
    if trimmed.len() < 5 {
        return None;
    }
    table(trimmed).or_else(|| pairs(trimmed)).or_else(|| bare_names(trimmed))
}

/// The line with blanks for the frames of a table (U+2500 to U+257F, three bytes each in UTF-8); `None` if it has none.
fn without_frames(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_frame = |at: &[u8]| matches!(at, [0xe2, 0x94 | 0x95, 0x80..=0xbf, ..]);
    memchr::memchr_iter(0xe2, bytes).find(|at| is_frame(&bytes[*at..]))?;
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, behind)) = rest.split_first() {
        let frame = is_frame(rest);
        plain.push(if frame { b' ' } else { *byte });
        rest = if frame { &rest[3..] } else { behind };
    }
    Some(plain)
}

/// Reads the four words of a continuation line of s390's `Krnl GPRS:`, which begin with register `first`.
pub fn continuation(bytes: &[u8], first: usize) -> Option<Line> {
    let words = words(bytes.trim_ascii(), 16)?;
    numbered("GPR", first, &words)
}

/// `GPR00: a b c d`, `Krnl GPRS: a b c d`, `$ 0   : a b c d`, `$12   : a b c d`.
fn table(bytes: &[u8]) -> Option<Line> {
    if let Some(rest) = bytes.strip_prefix(b"GPR").or_else(|| bytes.strip_prefix(b"$")) {
        let rest = rest.trim_ascii_start();
        let (first, rest) = super::words::dec(rest)?;
        let rest = rest.trim_ascii_start().strip_prefix(b":")?;
        let values = words(rest.trim_ascii(), 8)?;
        return numbered(if bytes[0] == b'$' { "$" } else { "GPR" }, usize::try_from(first).ok()?, &values);
    }
    let rest = bytes.strip_prefix(b"Krnl GPRS:").or_else(|| bytes.strip_prefix(b"User GPRS:"))?;
    let mut line = numbered("GPR", 0, &words(rest.trim_ascii(), 16)?)?;
    line.user = bytes.starts_with(b"User");
    Some(line)
}

fn words(bytes: &[u8], digits: usize) -> Option<Vec<u64>> {
    let mut values = Vec::new();
    for word in bytes.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
        let (value, rest) = hex(word)?;
        if !rest.is_empty() || word.len() < digits || values.len() >= 8 {
            return None;
        }
        values.push(value);
    }
    (!values.is_empty()).then_some(values)
}

fn numbered(name: &str, first: usize, values: &[u64]) -> Option<Line> {
    let last = first.checked_add(values.len())?;
    let pairs = values.iter().enumerate().map(|(index, value)| (format!("{name}{}", first + index), *value)).collect();
    (last <= 32).then_some(Line { pairs, user: false })
}

/// `NAME sep VALUE` again and again; what stands between must be blanks, commas, bars or remarks in parentheses.
fn pairs(bytes: &[u8]) -> Option<Line> {
    let mut line = Line::default();
    let mut rest = bytes;
    let mut foreign = 0;
    while !rest.is_empty() && line.pairs.len() < MOST_PER_LINE {
        let Some((name, value, after, user)) = pair(rest) else {
            // A word that is not part of a pair: `EFLAGS: 00010246 (VM)`, `Not tainted`.
            let end = match rest.first() {
                Some(b'(') => memchr::memchr(b')', rest).map_or(rest.len(), |end| end + 1),
                _ => rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len()),
            };
            foreign += if rest.starts_with(b"(") { 0 } else { end };
            rest = rest[end..].trim_ascii_start();
            if foreign > 24 || line.pairs.is_empty() {
                return None;
            }
            continue;
        };
        line.user |= user;
        if let Some(value) = value {
            line.pairs.push((text(name), value));
        }
        rest = separators(after);
    }
    let known = line.pairs.iter().filter(|(name, _)| is_register(name.as_bytes())).count();
    let most = known * 4 >= line.pairs.len() * 3;
    (known > 0 && most && (known > 1 || foreign == 0)).then_some(line)
}

fn separators(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b',' | b'|' | b';')).unwrap_or(text.len());
    &text[end..]
}

type Pair<'a> = (&'a [u8], Option<u64>, &'a [u8], bool);

/// One pair: the name, the value, what follows, and whether it says that user code ran.
fn pair(bytes: &[u8]) -> Option<Pair<'_>> {
    let end = bytes.iter().position(|byte| !name_byte(*byte))?;
    let name = &bytes[..end];
    if name.is_empty() || name.len() > 16 || name[0].is_ascii_digit() {
        return None;
    }
    let mut rest = bytes[end..].trim_ascii_start();
    // `(r15/pc): 0x` of Zephyr: an alias in parentheses.
    if rest.starts_with(b"(") {
        let close = memchr::memchr(b')', &rest[..rest.len().min(16)])?;
        rest = rest[close + 1..].trim_ascii_start();
    }
    let dot = || rest.strip_prefix(b".").filter(|value| value.starts_with(b" 0x"));
    let sign = |sign: &[u8]| rest.strip_prefix(sign);
    let rest = sign(b":").or_else(|| sign(b"=")).or_else(|| sign(b"->")).or_else(dot)?;
    let rest = rest.trim_ascii_start();
    let bracket = rest.strip_prefix(b"[<").or_else(|| rest.strip_prefix(b"["));
    let inner = bracket.unwrap_or(rest);
    let (mut value, mut after) = hex(inner)?;
    let mut user = false;
    let mut length = inner.len() - after.len();
    // `RSP: 0018:ffff8880…`: a selector stands first.
    if let Some((second, rest)) = after.strip_prefix(b":").and_then(hex).filter(|_| length == 4) {
        user = value & 3 == 3;
        (length, value, after) = (after.len() - rest.len(), second, rest);
    }
    if bracket.is_some() {
        after = after.strip_prefix(b">").unwrap_or(after);
        after = after.strip_prefix(b"]")?;
    }
    let ends = after.first().is_none_or(|byte| matches!(byte, b' ' | b',' | b'\t' | b'|' | b';' | b')' | b'('));
    let plausible = length >= 2 || is_register(name);
    (ends && plausible).then_some((name, Some(value), after, user))
}

fn name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'$')
}

/// `pc 9000000000 ra 9000000000 tp 9000000000 sp 9000000000` of loongarch; `scause 0xd` of small kernels.
fn bare_names(bytes: &[u8]) -> Option<Line> {
    let mut line = Line::default();
    let mut parts = bytes.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    while let Some(name) = parts.next() {
        let value = parts.next()?;
        let value = value.strip_suffix(b";").or_else(|| value.strip_suffix(b",")).unwrap_or(value);
        let (number, rest) = hex(value)?;
        let long = value.len() >= 8 || value.starts_with(b"0x");
        if !is_register(name) || !rest.is_empty() || !long || line.pairs.len() >= MOST_PER_LINE {
            return None;
        }
        line.pairs.push((text(name), number));
    }
    (!line.pairs.is_empty()).then_some(line)
}

/// Whether a name is that of a register of some architecture.
pub fn is_register(name: &[u8]) -> bool {
    let mut lower = [0u8; 16];
    if name.is_empty() || name.len() > lower.len() {
        return false;
    }
    for (to, from) in lower.iter_mut().zip(name) {
        *to = from.to_ascii_lowercase();
    }
    // `r15/pc`, `x8/s0`, `r0/a1`: two names of one register.
    let mut names = lower[..name.len()].split(|byte| *byte == b'/');
    names.all(is_lower)
}

/// Words that the function below looks for.
const NAMES: &[&[u8]] = &[
    b"rax",
    b"rbx",
    b"rcx",
    b"rdx",
    b"rsi",
    b"rdi",
    b"rbp",
    b"rsp",
    b"rip",
    b"rfl",
    b"rflags",
    b"eflags",
    b"eflag",
    b"rfla",
    b"eax",
    b"ebx",
    b"ecx",
    b"edx",
    b"esi",
    b"edi",
    b"ebp",
    b"esp",
    b"eip",
    b"cs",
    b"ds",
    b"es",
    b"fs",
    b"gs",
    b"ss",
    b"flags",
    b"fsbase",
    b"gsbase",
    b"fs_base",
    b"gs_base",
    b"orig_rax",
    b"orig_eax",
    b"cr0",
    b"cr2",
    b"cr3",
    b"cr4",
    b"cr8",
    b"pkru",
    b"fsbase",
    b"knlgs",
    b"errcode",
    b"error_code",
    b"pc",
    b"lr",
    b"sp",
    b"ip",
    b"fp",
    b"psr",
    b"cpsr",
    b"xpsr",
    b"sl",
    b"pstate",
    b"elr",
    b"far",
    b"esr",
    b"spsr",
    b"elr_el1",
    b"far_el1",
    b"esr_el1",
    b"spsr_el1",
    b"pmr_save",
    b"elr_el3",
    b"sp_el0",
    b"tpidr",
    b"tpidr2",
    b"orig_r0",
    b"ttbr0",
    b"epc",
    b"ra",
    b"gp",
    b"tp",
    b"mepc",
    b"sepc",
    b"mcause",
    b"scause",
    b"mtval",
    b"stval",
    b"badaddr",
    b"cause",
    b"status",
    b"mstatus",
    b"sstatus",
    b"satp",
    b"htval",
    b"orig_a0",
    b"nip",
    b"ctr",
    b"xer",
    b"msr",
    b"dar",
    b"dsisr",
    b"cfar",
    b"softe",
    b"irqmask",
    b"dear",
    b"ccr",
    b"cr",
    b"badvaddr",
    b"badva",
    b"hi",
    b"lo",
    b"era",
    b"estat",
    b"crmd",
    b"prmd",
    b"euen",
    b"ecfg",
    b"badv",
    b"zero",
    b"at",
    b"tt",
    b"psw",
    b"zr",
    b"ps",
    b"sar",
    b"lbeg",
    b"lend",
    b"lcount",
    b"lcnt",
    b"vaddr",
    b"excvaddr",
    b"exccause",
    b"epc1",
    b"esf",
    b"usp",
    b"ssp",
    b"ipsr",
    b"apsr",
    b"cfsr",
    b"hfsr",
    b"bfar",
    b"mmfar",
    b"tstate",
    b"tpc",
    b"tnpc",
];

fn is_lower(name: &[u8]) -> bool {
    let number = |from: usize, most: u32| {
        let digits = &name[from..];
        let value =
            std::str::from_utf8(digits).ok().filter(|_| digits.len() <= 2).and_then(|text| text.parse::<u32>().ok());
        value.is_some_and(|value| value <= most)
    };
    match name {
        [b'r' | b'x' | b'$', b'0'..=b'9', ..] => number(1, 31),
        // Xtensa has sixteen.
        [b'a', b'0'..=b'9', ..] => number(1, 15),
        [b't' | b's' | b'u' | b'k' | b'v', b'0'..=b'9', ..] => number(1, 11),
        [b'd', b'r', b'0'..=b'9'] => true,
        [b'g' | b'i' | b'o' | b'l', b'0'..=b'7'] => true,
        [b'g', b'p', b'r', b'0'..=b'9', ..] => number(3, 31),
        name => NAMES.contains(&name),
    }
}

/// The architecture that a register name belongs to alone.
pub fn arch_of(name: &str) -> Option<Arch> {
    let lower = name.to_ascii_lowercase();
    Some(match lower.as_str() {
        "rip" | "rax" | "rsp" | "rdi" | "rflags" => Arch::X86_64,
        "eip" | "eax" | "esp" => Arch::I386,
        "pstate" | "x29" | "x30" | "elr_el1" | "far_el1" | "esr_el1" | "pmr_save" | "tpidr2" => Arch::Arm64,
        "psr" | "cpsr" | "xpsr" | "r15/pc" => Arch::Arm,
        "sepc" | "scause" | "stval" | "mepc" | "mcause" | "mtval" | "badaddr" => Arch::Riscv64,
        "nip" | "gpr0" if name.starts_with('G') || name.starts_with('N') => Arch::Powerpc,
        "badva" | "badvaddr" | "$0" => Arch::Mips,
        "era" | "estat" | "crmd" | "prmd" => Arch::Loongarch,
        "tstate" | "tpc" => Arch::Sparc,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        line(text.as_bytes()).map(|line| line.pairs.into_iter().map(|pair| pair.0).collect()).unwrap_or_default()
    }

    #[test]
    fn every_architecture_prints_its_own_way() {
        assert_eq!(names("RAX: ffffffffffffffda RBX: 0000000000000001 RCX: 0000000000000000"), ["RAX", "RBX", "RCX"]);
        let found = line(b"RSP: 002b:00007ffd8bb7b128 EFLAGS: 00000202 ORIG_RAX: 0000000000000001").expect("registers");
        assert_eq!((found.pairs[0].1, found.user), (0x7ffd_8bb7_b128, true));
        assert_eq!(names("EAX: 00000000 EBX: c1a2b3c4 ECX: 00000001 EDX: 00000002"), ["EAX", "EBX", "ECX", "EDX"]);
        assert_eq!(names("x29: ffff80001234bd60 x28: ffff0000c1234500 x27: 0000000000000000"), ["x29", "x28", "x27"]);
        assert_eq!(names("pstate: 60400005 (nZCv daif +PAN -UAO -TCO -DIT -SSBS BTYPE=--)")[0], "pstate");
        assert_eq!(names("pc : [<c0101234>]    lr : [<c0105678>]    psr: 60000013"), ["pc", "lr", "psr"]);
        assert_eq!(names("r10: c0e03d48  r9 : 00000000  r8 : c1234567"), ["r10", "r9", "r8"]);
        assert_eq!(names("epc : ffffffff80123456 ra : ffffffff80123450 sp : ff20000000123d40"), ["epc", "ra", "sp"]);
        assert_eq!(names("GPR04: c000000000001000 c000000000002000 0000000000000000 0000000000000001")[3], "GPR7");
        assert_eq!(names("$ 4   : 80123456 00000001 00000002 00000003")[0], "$4");
        assert_eq!(names("pc 9000000000223456 ra 9000000000223450 tp 9000000100000000 sp 9000000100003d40").len(), 4);
        assert_eq!(names("r0/a1:  0x00000003  r1/a2:  0x00000000  r2/a3:  0x20000abc").len(), 3);
        assert_eq!(names("rax=0000000000000000 rbx=0000000000000001 rcx=00000000deadbeef").len(), 3);
        assert_eq!(names("scause 0x000000000000000d"), ["scause"]);
        assert_eq!(names("│ r8 . 0x0000000000000000 │ r9 . 0x0000000000000001 │"), ["r8", "r9"]);
        assert_eq!(names("│ rip:                           0xffffffff80000491 │"), ["rip"]);
        assert_eq!(names("│ cs   0x0008             │ ds   0x0030             │"), ["cs", "ds"]);
        assert_eq!(names("├─────────────────────────┴─────────────────────────┤"), Vec::<String>::new());
        assert_eq!(
            continuation(b"           0700037fe034edc8 000003ffe0249e48", 4).map(|line| line.pairs.len()),
            Some(2)
        );
    }

    #[test]
    fn other_lines_are_not_registers() {
        for text in [
            "CPU: 0 PID: 1 Comm: init",
            "task: ffff88 ti: ffff88",
            "Memory: 1024K",
            "eth0: link up",
            "foo: 12 bar: 13",
            "usb 1-1: new device",
            "Freeing unused kernel memory: 12",
            "x: y",
            "status: ok",
        ] {
            assert_eq!(names(text), Vec::<String>::new(), "{text}");
        }
    }
}
