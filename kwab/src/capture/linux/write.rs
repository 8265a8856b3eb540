//! Writes what a Linux said as records: its log, its threads, and their stacks with names.

use std::io::Write;

use kwab_format::SectionKind;
use kwab_format::record::{Frame, FrameTrust, LogChunk, Task};

use super::{Linux, Thread};
use crate::model::emit::DumpWriter;

/// Bytes of a record of the log.
const CHUNK: usize = 32 << 10;

/// Writes a log of which so many bytes are gone, in pieces that end with a line.
pub(in crate::capture) fn put_log<W: Write>(writer: &mut DumpWriter<W>, mut offset: u64, log: &[u8]) {
    let mut rest = log;
    while !rest.is_empty() {
        let most = rest.len().min(CHUNK);
        let end = memchr::memrchr(b'\n', &rest[..most]).map_or(most, |at| at + 1);
        let (piece, behind) = rest.split_at(end);
        writer.put(SectionKind::LOG, &LogChunk { bytes: Some(piece), log_offset: Some(offset), ..LogChunk::default() });
        offset += piece.len() as u64;
        rest = behind;
    }
}

/// Writes the threads, each with its stack.
pub(in crate::capture) fn put_threads<W: Write>(writer: &mut DumpWriter<W>, linux: &Linux) {
    for (number, (thread, frames)) in linux.threads.iter().enumerate() {
        writer.put(SectionKind::TASKS, &record(thread));
        for (index, frame) in frames.iter().enumerate() {
            let is_named = !frame.name.is_empty();
            let record = Frame {
                trace: Some(number as u32),
                index: Some(index as u32),
                addr: Some(frame.address),
                symbol: Some(frame.name.as_slice()).filter(|_| is_named),
                symbol_offset: Some(frame.offset).filter(|_| is_named),
                symbol_size: Some(frame.size).filter(|_| is_named),
                trust: Some(if index == 0 { FrameTrust::EXACT } else { FrameTrust::UNWIND_TABLE }),
                pid: Some(thread.pid),
                tid: Some(thread.tid),
                ..Frame::default()
            };
            writer.put(SectionKind::TASKS, &record);
        }
    }
}

fn record(thread: &Thread) -> Task<'_> {
    let some = |text: &'_ Vec<u8>| !text.is_empty();
    Task {
        pid: Some(thread.pid),
        tid: Some(thread.tid),
        ppid: thread.parent,
        comm: Some(&thread.name),
        state: thread.state,
        wait_reason: Some(thread.waits_in.as_slice()).filter(|_| some(&thread.waits_in)),
        state_ns: thread.since,
        last_cpu: thread.cpu,
        kernel_sp: thread.saved.map(|(sp, _)| sp),
        kernel_ip: thread.saved.map(|(_, ip)| ip),
        user_sp: thread.user.map(|(_, sp, _)| sp),
        user_ip: thread.user.map(|(ip, ..)| ip),
        syscall: thread.user.map(|(.., call)| call).filter(|call| *call >= 0),
        cmdline: Some(thread.command.as_slice()).filter(|_| some(&thread.command)),
        run_ns: thread.ran,
        page_table_root: thread.root,
        ..Task::default()
    }
}
