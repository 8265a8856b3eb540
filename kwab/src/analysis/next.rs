//! Commands to run next, without what the dump cannot answer: a section that it lacks, an audit without mappings.

use super::code;
use super::context::Context;

/// The command, without the sections that would print nothing; `None` when nothing of it is left.
pub(super) fn useful(ctx: &Context<'_, '_>, command: &str) -> Option<String> {
    if command.starts_with("kwab audit-vm ") {
        let audited = !ctx.case.vmas.is_empty() || !ctx.case.ptes.is_empty() || !ctx.case.frame_infos.is_empty();
        return audited.then(|| command.to_owned());
    }
    let Some((head, sections)) = command.split_once(" --section ") else { return Some(command.to_owned()) };
    let held: Vec<&str> = sections.split(',').filter(|section| holds(ctx, section)).collect();
    (!held.is_empty()).then(|| format!("{head} --section {}", held.join(",")))
}

/// Whether the dump has something to show in a section of `kwab inspect`.
fn holds(ctx: &Context<'_, '_>, section: &str) -> bool {
    let case = ctx.case;
    match section {
        "bt" => !ctx.trace.is_empty() || !case.frames.is_empty() || !case.stacks.is_empty(),
        "code" => code::of_death(ctx).is_some(),
        "regs" => !case.registers.is_empty() || !ctx.death.registers.is_empty(),
        "memory" => !case.memory.is_empty(),
        "vmas" => !case.vmas.is_empty(),
        "tasks" => !case.tasks.is_empty(),
        "syscalls" => !case.syscalls.is_empty() || !case.entries.is_empty() || case.returns > 0,
        "trace" => !case.flight.is_empty(),
        _ => true,
    }
}
