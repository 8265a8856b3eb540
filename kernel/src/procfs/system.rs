//! Files of `/proc` about the whole system (proc(5)).

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::str::FromStr;
use core::sync::atomic::Ordering::Relaxed;

use linux_abi::Errno;
use machine::time::now;

use super::{Crash, Target};
use crate::fs::dev::kmsg::Writing;
use crate::fs::inode::LinkTarget;
use crate::fs::slots;
use crate::ipc::{charge, epoll};
use crate::mm::{image, pool, prefault};
use crate::options::level;
use crate::task::process::family;
use crate::task::{limits, tree};
use crate::upper::Kwab;
use crate::uts::{
    self, RELEASE, VERSION, domain_name as domain, host_name as host, set_domain_name as set_domain,
    set_host_name as set_host,
};
use crate::{log, options, random, sched, time, trace};

type Text = Result<Vec<u8>, Errno>;

pub(super) fn text_link(target: &str) -> LinkTarget {
    LinkTarget::Text(target.as_bytes().into())
}

/// A number a program wrote.
pub(super) fn parse<T: FromStr>(text: &[u8]) -> Result<T, Errno> {
    core::str::from_utf8(text.trim_ascii()).ok().and_then(|text| text.parse().ok()).ok_or(Errno::EINVAL)
}

fn line(text: &[u8]) -> Text {
    let mut out = text.to_vec();
    out.push(b'\n');
    Ok(out)
}

pub(super) fn command_line(_: Target) -> Text {
    line(&options::get().line)
}

pub(super) fn version(_: Target) -> Text {
    line(format!("Linux version {RELEASE} (kwab) {VERSION}").as_bytes())
}

pub(super) fn os_release(_: Target) -> Text {
    line(RELEASE.as_bytes())
}

pub(super) fn os_version(_: Target) -> Text {
    line(VERSION.as_bytes())
}

pub(super) fn host_name(_: Target) -> Text {
    line(&host())
}

pub(super) fn set_host_name(_: Target, name: &[u8]) -> Result<(), Errno> {
    set_host(cut(name))
}

/// As much of a name as there is room for.
fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(uts::FIELD - 1)]
}

pub(super) fn domain_name(_: Target) -> Text {
    line(&domain())
}

pub(super) fn set_domain_name(_: Target, name: &[u8]) -> Result<(), Errno> {
    set_domain(cut(name))
}

pub(super) fn debug_categories(_: Target) -> Text {
    let mut out = String::new();
    for name in trace::selected() {
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(name);
    }
    line(out.as_bytes())
}

pub(super) fn set_debug_categories(_: Target, list: &[u8]) -> Result<(), Errno> {
    trace::replace(list)
}

pub(super) fn printk(_: Target) -> Text {
    Ok(format!("{}\t4\t1\t7\n", log::console_level()).into_bytes())
}

pub(super) fn set_printk(_: Target, text: &[u8]) -> Result<(), Errno> {
    let first = text.split(u8::is_ascii_whitespace).next().unwrap_or(text);
    log::set_console_level(parse(first)?);
    Ok(())
}

pub(super) fn printk_devkmsg(_: Target) -> Text {
    line(Writing::name().as_bytes())
}

pub(super) fn set_printk_devkmsg(_: Target, text: &[u8]) -> Result<(), Errno> {
    Writing::set(text.trim_ascii())
}

pub(super) fn prefault(_: Target) -> Text {
    line(prefault::limit().to_string().as_bytes())
}

pub(super) fn set_prefault(_: Target, text: &[u8]) -> Result<(), Errno> {
    prefault::set_limit(parse(text)?);
    Ok(())
}

pub(super) fn exec_image(_: Target) -> Text {
    line(image::mode_name().as_bytes())
}

pub(super) fn set_exec_image(_: Target, text: &[u8]) -> Result<(), Errno> {
    image::set_mode(text.trim_ascii())
}

pub(super) fn huge_pages(_: Target) -> Text {
    let counts = pool::counts();
    line((counts.total - counts.surplus).to_string().as_bytes())
}

pub(super) fn set_huge_pages(_: Target, text: &[u8]) -> Result<(), Errno> {
    pool::resize(parse(text)?);
    Ok(())
}

pub(super) fn huge_pages_beyond(_: Target) -> Text {
    line(pool::overcommit().to_string().as_bytes())
}

pub(super) fn set_huge_pages_beyond(_: Target, text: &[u8]) -> Result<(), Errno> {
    pool::set_overcommit(parse(text)?);
    Ok(())
}

pub(super) fn threads_max(_: Target) -> Text {
    line(limits::max_threads().to_string().as_bytes())
}

pub(super) fn set_threads_max(_: Target, text: &[u8]) -> Result<(), Errno> {
    limits::set_max_threads(parse(text)?)
}

pub(super) fn epoll_watches(_: Target) -> Text {
    line(epoll::max_user_watches().to_string().as_bytes())
}

pub(super) fn set_epoll_watches(_: Target, text: &[u8]) -> Result<(), Errno> {
    epoll::set_max_user_watches(parse(text)?);
    Ok(())
}

pub(super) fn open_files(_: Target) -> Text {
    // The second number is 0 on Linux too.
    line(format!("{}\t0\t{}", slots::open(), slots::limit()).as_bytes())
}

pub(super) fn open_files_limit(_: Target) -> Text {
    line(slots::limit().to_string().as_bytes())
}

pub(super) fn set_open_files_limit(_: Target, text: &[u8]) -> Result<(), Errno> {
    slots::set_limit(parse(text)?)
}

pub(super) fn pipe_pages_soft(_: Target) -> Text {
    line(charge::SOFT.load(Relaxed).to_string().as_bytes())
}

pub(super) fn set_pipe_pages_soft(_: Target, text: &[u8]) -> Result<(), Errno> {
    charge::SOFT.store(parse(text)?, Relaxed);
    Ok(())
}

pub(super) fn pipe_pages_hard(_: Target) -> Text {
    line(charge::HARD.load(Relaxed).to_string().as_bytes())
}

pub(super) fn set_pipe_pages_hard(_: Target, text: &[u8]) -> Result<(), Errno> {
    charge::HARD.store(parse(text)?, Relaxed);
    Ok(())
}

pub(super) fn randomize(_: Target) -> Text {
    Ok(if options::get().norandmaps { b"0\n".to_vec() } else { b"2\n".to_vec() })
}

fn processors() -> impl Iterator<Item = u32> {
    let online = machine::cpu::online();
    (0..64).filter(move |number| online >> number & 1 != 0)
}

pub(super) fn cpuinfo(_: Target) -> Text {
    let info = machine::cpu::info();
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or(b"")).into_owned();
    let (vendor, model) = (text(&info.vendor), text(&info.model));
    let hz = machine::time::params().hz;
    let mut out = String::new();
    for number in processors() {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "processor\t: {number}\nvendor_id\t: {vendor}\ncpu family\t: {}\nmodel\t\t: {}\n\
             model name\t: {}\nstepping\t: {}\n\
             cpu MHz\t\t: {}.{:03}\nphysical id\t: 0\nsiblings\t: {count}\ncore id\t\t: {number}\n\
             cpu cores\t: {count}\n\
             fpu\t\t: yes\nfpu_exception\t: yes\nwp\t\t: yes\n\
             flags\t\t: fpu tsc msr pae cx8 apic sep cmov mmx fxsr sse sse2 syscall nx lm\n\
             bogomips\t: {}.{:02}\naddress sizes\t: 40 bits physical, 48 bits virtual\n\n",
            info.family,
            info.model_number,
            model.trim(),
            info.stepping,
            hz / 1_000_000,
            hz / 1000 % 1000,
            hz / 500_000,
            hz / 5000 % 100,
            count = processors().count(),
        );
    }
    Ok(out.into_bytes())
}

pub(super) fn uptime(_: Target) -> Text {
    let hundredths = |nanos: u64| (nanos / 1_000_000_000, nanos / 10_000_000 % 100);
    let ((up, up_rest), (idle, idle_rest)) = (hundredths(now()), hundredths(processors().map(idle_time).sum()));
    Ok(format!("{up}.{up_rest:02} {idle}.{idle_rest:02}\n").into_bytes())
}

pub(super) fn loadavg(_: Target) -> Text {
    let running = sched::runnable().max(1);
    let [one, five, fifteen] = sched::load::averages().map(|average| {
        let hundredths = average * 100 / sched::load::ONE;
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    });
    Ok(format!("{one} {five} {fifteen} {running}/{} {}\n", tree::thread_count(), tree::last_pid()).into_bytes())
}

/// How long a processor has been idle.
fn idle_time(number: u32) -> u64 {
    sched::idle_time(machine::cpu::CpuId(number))
}

/// A line of `/proc/stat`: user, nice, system and idle time, and six kinds that there are not.
fn processor_line(out: &mut String, name: &str, [user, system, idle]: [u64; 3]) {
    let ticks = time::to_ticks;
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{name} {} 0 {} {} 0 0 0 0 0 0", ticks(user), ticks(system), ticks(idle));
}

pub(super) fn stat(_: Target) -> Text {
    let mut all = [0; 3];
    let mut lines = String::new();
    for number in processors() {
        let times = sched::times(machine::cpu::CpuId(number));
        all.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
        processor_line(&mut lines, &format!("cpu{number}"), times);
    }
    let mut out = String::new();
    processor_line(&mut out, "cpu ", all);
    out.push_str(&lines);
    let switches: u64 = processors().map(|number| sched::of(machine::cpu::CpuId(number)).switches.load(Relaxed)).sum();
    let boot = machine::time::wall_at_boot() / 1_000_000_000;
    let _ = write!(
        out,
        "intr 0\nctxt {switches}\nbtime {boot}\nprocesses {}\nprocs_running {}\nprocs_blocked 0\n\
         softirq 0 0 0 0 0 0 0 0 0 0 0\n",
        family::made(),
        sched::runnable().max(1)
    );
    Ok(out.into_bytes())
}

pub(super) fn interrupts(_: Target) -> Text {
    let mut out = String::from("     ");
    for number in processors() {
        // Writing to a string cannot fail.
        let _ = write!(out, "{:>11}", format!("CPU{number}"));
    }
    out.push('\n');
    Ok(out.into_bytes())
}

pub(super) fn uuid(_: Target) -> Text {
    line(random_uuid().as_bytes())
}

pub(super) fn boot_id(_: Target) -> Text {
    line(uuid_text(<Kwab as Crash>::boot_id()).as_bytes())
}

/// `cat /proc/kwab`: a dump of the system as it is.
pub(super) fn live_dump(_: Target) -> Text {
    Ok(<Kwab as Crash>::live_dump())
}

/// How much memory a dump of the kernel holds, by name.
pub(super) fn dump_level(_: Target) -> Text {
    line(level::get().name().as_bytes())
}

pub(super) fn set_dump_level(_: Target, text: &[u8]) -> Result<(), Errno> {
    level::set_named(text)
}

/// What is written to `/proc/sysrq-trigger` (sysrq in Linux's admin guide): the first byte counts.
pub(super) fn sysrq(_: Target, text: &[u8]) -> Result<(), Errno> {
    <Kwab as Crash>::request(text)
}

/// A version 4 UUID (RFC 4122, 4.4).
fn random_uuid() -> String {
    let mut bytes = [0; 16];
    random::fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    uuid_text(bytes)
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let bits = u128::from_be_bytes(bytes);
    let (high, low) = ((bits >> 64) as u64, bits as u64);
    let (time, clock) = (high >> 16 & 0xffff, low >> 48);
    format!("{:08x}-{time:04x}-{:04x}-{clock:04x}-{:012x}", high >> 32, high & 0xffff, low & 0xffff_ffff_ffff)
}
