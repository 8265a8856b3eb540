//! Commands to run next, without what the dump cannot answer: a section that it lacks, an audit without mappings.

use super::code;
use super::context::Context;
use super::stacks;

/// The command, without the sections that would print nothing; `None` for an audit of nothing.
pub(super) fn useful(ctx: &Context<'_, '_>, command: &str) -> Option<String> {
    if command.starts_with("kwab audit-vm ") {
        let audited = !ctx.case.vmas.is_empty() || !ctx.case.ptes.is_empty() || !ctx.case.frame_infos.is_empty();
        return audited.then(|| command.to_owned());
    }
    let Some((head, sections)) = command.split_once(" --section ") else { return Some(command.to_owned()) };
    let held: Vec<&str> = sections.split(',').filter(|section| holds(ctx, section)).collect();
    // What the kernel said is there in any case.
    let sections = if held.is_empty() { "cause,log".to_owned() } else { held.join(",") };
    Some(format!("{head} --section {sections}"))
}

/// Whether the dump has something to show in a section of `kwab inspect`.
fn holds(ctx: &Context<'_, '_>, section: &str) -> bool {
    let case = ctx.case;
    match section {
        // A trace of one frame is the instruction pointer, which the cause shows.
        "bt" => {
            ctx.trace.len() > 1 || !case.frames.is_empty() || !stacks::all(case, ctx.symbols, &ctx.death).is_empty()
        }
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
