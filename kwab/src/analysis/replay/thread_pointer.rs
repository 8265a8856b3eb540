//! The thread pointer of the thread that died: what arch_prctl(2) was told, and what the processor has.
//!
//! The kernel does not use FS itself, so that at a death the register holds what the running thread set last.

use kwab_format::record::{RegId, SyscallRecord};

use super::{Answered, WrongAnswer, row};
use crate::analysis::context::Context;
use crate::model::Located;

/// `ARCH_SET_FS` of arch_prctl(2).
const SET_FS: u64 = 0x1002;

/// The last call that set the thread pointer, when it was answered with success and the register holds another.
pub(super) fn wrong_answer(ctx: &Context<'_, '_>) -> Option<WrongAnswer> {
    let set = ctx.case.registers.iter().find(|set| Some(set.at) == ctx.death.registers_at)?;
    let tid = set.tid.or(ctx.death.pid).filter(|tid| *tid != 0)?;
    let base = set.regs.as_ref()?.iter().find(|reg| reg.id == Some(RegId::FS_BASE))?.value?;
    let own = |record: &&Located<SyscallRecord<'_>>| record.tid.or(record.pid) == Some(tid);
    let rows = ctx.case.syscalls.iter().rev().filter(own);
    let last = rows.filter_map(row).find(|row| sets(row) || renews(row)).filter(sets)?;
    let told = last.args[1];
    (told != base).then(|| last.wrong(format!("the thread pointer (FS base) of thread {tid} is {base:#x}")))
}

fn sets(row: &Answered<'_>) -> bool {
    row.call.name == "arch_prctl" && row.args[0] == SET_FS && row.result == 0
}

/// A new program begins without one.
fn renews(row: &Answered<'_>) -> bool {
    matches!(row.call.name, "execve" | "execveat") && row.result == 0
}
