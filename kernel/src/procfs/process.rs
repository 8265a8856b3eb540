//! Further files of `/proc/PID`: command line, environment, links, memory, `oom_score_adj`.

use alloc::format;
use alloc::vec::Vec;

use linux_abi::Errno;
use machine::addr::{PAGE_SIZE, UserAddr};

use super::lines::Lines;
use super::{Target, system};
use crate::fs::inode::LinkTarget;
use crate::fs::mount::{self, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_RELATIME, Mount};
use crate::mm::AddressSpace;
use crate::sched::breathe;
use crate::task::{self, creds::cap, oom};

/// The most bytes of arguments or environment shown.
const LONGEST: u64 = 1 << 20;

pub(super) fn own_link(thread: bool) -> LinkTarget {
    let task = task::current();
    let (pid, tid) = (task.pid(), task.tid());
    system::text_link(&if thread { format!("{pid}/task/{tid}") } else { format!("{pid}") })
}

pub(super) fn command_line(target: Target) -> Result<Vec<u8>, Errno> {
    let Some(mm) = target.thread().ok().and_then(|thread| thread.mm()) else { return Ok(Vec::new()) };
    let (start, end) = mm.lock().args;
    read_memory(&mm, start, end)
}

pub(super) fn environment(mm: &AddressSpace) -> Result<Vec<u8>, Errno> {
    let (start, end) = mm.lock().envs;
    read_memory(mm, start, end)
}

pub(super) fn auxv(mm: &AddressSpace) -> Result<Vec<u8>, Errno> {
    let pairs = mm.lock().aux.clone();
    Ok(pairs.iter().flat_map(|&(kind, value)| [kind, value]).flat_map(u64::to_ne_bytes).collect())
}

/// Bytes of another process's memory, as far as they are present.
fn read_memory(mm: &AddressSpace, start: u64, end: u64) -> Result<Vec<u8>, Errno> {
    let end = end.min(start.saturating_add(LONGEST));
    let mut out = Lines::new();
    let mut at = start;
    while at < end {
        let Some((frame, _)) = UserAddr(at).page().and_then(|page| mm.space.frame(page)) else { break };
        let offset = (at % PAGE_SIZE as u64) as usize;
        let count = (PAGE_SIZE - offset).min((end - at) as usize);
        frame.read(offset, out.room(count)?);
        at += count as u64;
        breathe();
    }
    Ok(out.into_text())
}

pub(super) fn comm(target: Target) -> Result<Vec<u8>, Errno> {
    let mut name = [0; 16];
    let length = target.thread()?.comm(&mut name);
    let mut out = name[..length].to_vec();
    out.push(b'\n');
    Ok(out)
}

pub(super) fn set_comm(target: Target, name: &[u8]) -> Result<(), Errno> {
    if target.process()?.pid != task::current().pid() {
        return Err(Errno::EINVAL);
    }
    target.thread()?.set_comm(name);
    Ok(())
}

pub(super) fn cwd(target: Target) -> Result<LinkTarget, Errno> {
    target.look(|| Ok(LinkTarget::Jump(target.thread()?.fs.get().ok_or(Errno::ENOENT)?.cwd())))
}

pub(super) fn root(target: Target) -> Result<LinkTarget, Errno> {
    target.look(|| Ok(LinkTarget::Jump(target.thread()?.fs.get().ok_or(Errno::ENOENT)?.root())))
}

pub(super) fn exe(target: Target) -> Result<LinkTarget, Errno> {
    target.look(|| {
        let mm = target.thread()?.mm().ok_or(Errno::ENOENT)?;
        let exe = mm.lock().exe.clone().ok_or(Errno::ENOENT)?;
        Ok(LinkTarget::Jump(exe.path.clone()))
    })
}

pub(super) fn personality(target: Target) -> Result<Vec<u8>, Errno> {
    target.check_access().map_err(|_| Errno::EPERM)?;
    Ok(format!("{:08x}\n", target.process()?.personality()).into_bytes())
}

pub(super) fn oom_score(target: Target) -> Result<Vec<u8>, Errno> {
    Ok(format!("{}\n", oom::score(&*target.process()?)).into_bytes())
}

pub(super) fn oom_score_adj(target: Target) -> Result<Vec<u8>, Errno> {
    Ok(format!("{}\n", target.process()?.oom_score.adjustment()).into_bytes())
}

pub(super) fn set_oom_score_adj(target: Target, text: &[u8]) -> Result<(), Errno> {
    let value = number(text).ok_or(Errno::EINVAL)?;
    let privileged = task::current().creds.with(|creds| creds.capable(cap::SYS_RESOURCE));
    target.process()?.oom_score.set(value, privileged)
}

/// The number that `text` is up to its first NUL: octal behind a 0, hexadecimal behind 0x (`kstrtoint` of Linux).
fn number(text: &[u8]) -> Option<i32> {
    let text = text.split(|byte| *byte == 0).next()?;
    let text = core::str::from_utf8(text.trim_ascii()).ok()?;
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // A second sign would be taken by the parser.
    if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
        return None;
    }
    i64::from_str_radix(digits, base).ok().and_then(|value| i32::try_from(sign * value).ok())
}

pub(super) fn descriptor_info(target: Target, fd: i32) -> Result<Vec<u8>, Errno> {
    target.check_access()?;
    let files = target.thread()?.files.get().ok_or(Errno::ENOENT)?;
    let file = files.get(fd).map_err(|_| Errno::ENOENT)?;
    let close_on_exec = if files.is_close_on_exec(fd).unwrap_or(false) { 0o2_000_000 } else { 0 };
    let (flags, attr) = (file.flags() | close_on_exec, file.inode().attr());
    let position = file.position();
    Ok(format!("pos:\t{position}\nflags:\t0{flags:o}\nmnt_id:\t{}\nino:\t{}\n", file.path.mount.id, attr.ino)
        .into_bytes())
}

fn flags_of(mount: &Mount) -> Vec<u8> {
    let flags = mount.flags();
    let mut out = if mount.is_read_only() { b"ro".to_vec() } else { b"rw".to_vec() };
    let names = [
        (MS_NOSUID, ",nosuid"),
        (MS_NODEV, ",nodev"),
        (MS_NOEXEC, ",noexec"),
        (mount::MS_NOATIME, ",noatime"),
        (MS_RELATIME, ",relatime"),
    ];
    for (flag, name) in names {
        if flags & flag != 0 {
            out.extend_from_slice(name.as_bytes());
        }
    }
    out
}

/// What separates the fields of a line of mounts.
const SEPARATORS: &[u8] = b" \t\n\\";

/// Adds a name to a line; those of its bytes that are among `special` in octal.
pub(super) fn escape(out: &mut Vec<u8>, name: &[u8], special: &[u8]) {
    for &byte in name {
        if special.contains(&byte) {
            out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        } else {
            out.push(byte);
        }
    }
}

fn mount_point_of(mount: &Mount) -> Vec<u8> {
    let root = task::current().fs().root();
    mount.mounted_at().map_or_else(|| b"/".to_vec(), |at| at.display(&root))
}

pub(super) fn mounts(_target: Target) -> Result<Vec<u8>, Errno> {
    let mut out = Lines::new();
    for mount in mount::all() {
        let mut line = Vec::new();
        let source = if mount.source.is_empty() { b"none" } else { &mount.source[..] };
        escape(&mut line, source, SEPARATORS);
        line.push(b' ');
        escape(&mut line, &mount_point_of(&mount), SEPARATORS);
        line.extend_from_slice(format!(" {} ", mount.fs.kind()).as_bytes());
        line.extend_from_slice(&flags_of(&mount));
        line.extend_from_slice(&mount.fs.options());
        line.extend_from_slice(b" 0 0\n");
        out.push(&line)?;
        breathe();
    }
    Ok(out.into_text())
}

pub(super) fn mountinfo(_target: Target) -> Result<Vec<u8>, Errno> {
    let mut out = Lines::new();
    for mount in mount::all() {
        let parent = mount.mounted_at().map_or(mount.id, |at| at.mount.id);
        let (major, minor) = crate::fs::dev::split(mount.fs.dev());
        let mut line = format!("{} {parent} {major}:{minor} / ", mount.id).into_bytes();
        escape(&mut line, &mount_point_of(&mount), SEPARATORS);
        line.push(b' ');
        line.extend_from_slice(&flags_of(&mount));
        line.extend_from_slice(format!(" - {} ", mount.fs.kind()).as_bytes());
        escape(&mut line, if mount.source.is_empty() { b"none" } else { &mount.source }, SEPARATORS);
        line.extend_from_slice(if mount.is_read_only() { b" ro" } else { b" rw" });
        line.extend_from_slice(&mount.fs.options());
        line.push(b'\n');
        out.push(&line)?;
        breathe();
    }
    Ok(out.into_text())
}
