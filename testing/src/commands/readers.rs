//! `cargo xtask readers [DUMP...]`: opens exported core files in gdb, eu-stack, drgn and lldb, and compares every
//! thread's stack, the names of its functions, and the names of threads where a reader shows them.
//!
//! The dumps are those that `cargo xtask exam` left in `build/exam` (or those that are named) as far as the kernel of
//! the build tree made them; each becomes a core file in `build/readers`. A reader that is not installed is left out,
//! and the last line says so. drgn is looked for in the Python named by `KWAB_PYTHON`, or in `python3`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use kwab::analysis::{TraceFrame, images};
use kwab::export::{core_stacks, elf_core};
use kwab::memory::Ram;
use kwab::model::Dump;
use kwab::symbols::{BuildId, Finder, IndexCache};
use kwab::unwind::Trust;

use crate::kernel::Which;
use crate::paths;
use crate::readers::{READERS, Reader, View, view_of};
use crate::setup::Consent;

/// ReadersArguments of `readers`.
#[derive(Debug, Args)]
pub struct ReadersArguments {
    /// Dumps of the kernel of the build tree; without any, those of the last exam.
    dumps: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &ReadersArguments, consent: Consent) -> Result<ExitCode> {
    let kernel = Which::Ours.image(consent)?;
    let dumps = if arguments.dumps.is_empty() { of_exam()? } else { arguments.dumps.clone() };
    let folder = paths::build("readers")?;
    let (mut judged, mut wrong, mut absent) = (0, 0, Vec::new());
    for path in &dumps {
        let name = path.file_stem().context("a dump has a name")?.to_string_lossy().into_owned();
        let core = folder.join(&name).with_extension("core");
        let Some((ours, program)) = export(path, &kernel, &core)? else {
            println!("{name:<18} made by another kernel: left out");
            continue;
        };
        judged += 1;
        let mut words = Vec::new();
        for reader in READERS {
            let Some(theirs) = view_of(*reader, &core, &program)? else {
                absent.push(reader.name());
                continue;
            };
            match reader.compare(&ours, &theirs) {
                Ok((frames, names)) => words.push(format!("{} {frames} frames {names} names", reader.name())),
                Err(difference) => {
                    wrong += 1;
                    words.push(format!("{} DIFFERS: {difference}", reader.name()));
                }
            }
        }
        println!("{name:<18} {} threads: {}", ours.stacks.len(), words.join(", "));
    }
    ensure!(judged > 0, "no dump of this kernel: run `cargo xtask exam` first");
    absent.sort_unstable();
    absent.dedup();
    let left_out = if absent.is_empty() { String::new() } else { format!("; not installed: {}", absent.join(", ")) };
    println!("{judged} core files, {wrong} differences{left_out}");
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What gdb finds in the core file of a dump, held against what kwab walks: threads and frames. `None` without gdb.
pub(super) fn in_gdb(dump: &Path, kernel: &Path) -> Result<Option<(usize, usize)>> {
    let core = dump.with_extension("core");
    let (ours, program) = export(dump, kernel, &core)?.context("the dump is of another kernel")?;
    let Some(theirs) = view_of(Reader::Gdb, &core, &program)? else { return Ok(None) };
    match Reader::Gdb.compare(&ours, &theirs) {
        Ok((frames, _)) => Ok(Some((theirs.stacks.len(), frames))),
        Err(difference) => bail!("gdb differs: {difference}"),
    }
}

fn of_exam() -> Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(paths::build("exam")?)?.flatten().map(|entry| entry.path());
    let mut dumps: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "kwab")).collect();
    dumps.sort();
    Ok(dumps)
}

/// Writes the core file; gives the stacks that kwab walks, and the program whose memory it shows. `None` for a dump of
/// another kernel.
fn export(path: &Path, kernel: &Path, core: &Path) -> Result<Option<(View, PathBuf)>> {
    let dump = Dump::from_bytes(std::fs::read(path).with_context(|| paths::shown(path))?)?;
    let case = dump.case();
    let guests = paths::build("guest")?;
    let mut finder = Finder::new(Vec::new(), false).and_by_id(vec![kernel.to_path_buf(), guests]);
    let images = images::load(&case, &mut finder, &IndexCache::of_user());
    let made_by = case.identities.first().and_then(|identity| identity.kernel_build_id).map(|id| BuildId(id.to_vec()));
    let known = images.symbols.loaded().iter().find(|loaded| loaded.pid.is_none());
    if known.and_then(|loaded| loaded.image.build_id()) != made_by {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    elf_core(&case, &Ram::of(&dump), &images.symbols, &mut bytes).with_context(|| paths::shown(path))?;
    paths::write(core, &bytes)?;
    let stacks = core_stacks(&case, &images.symbols);
    let user = stacks.first().and_then(|(_, frames)| frames.first()).is_some_and(|frame| frame.ip >> 63 == 0);
    let program = images.symbols.loaded().iter().find(|loaded| user && loaded.pid.is_some());
    let program = program.and_then(|loaded| loaded.image.path()).unwrap_or(kernel).to_path_buf();
    let mut view = seen(&stacks);
    for task in &case.tasks {
        let name = task.comm.and_then(|name| str::from_utf8(name).ok());
        view.threads.extend(task.tid.or(task.pid).zip(name.map(str::to_owned)));
    }
    Ok(Some((view, program)))
}

/// Frames that are more than a guess, with the functions at their addresses.
fn seen(stacks: &[(u32, Vec<TraceFrame>)]) -> View {
    let mut view = View::default();
    for (id, frames) in stacks {
        let sure: Vec<&TraceFrame> = frames.iter().take_while(|frame| frame.trust != Trust::Scan).collect();
        for frame in &sure {
            let symbol = frame.name.as_deref().map(|name| name.rsplit_once("+0x").map_or(name, |(name, _)| name));
            let functions = frame.functions.iter().filter_map(|function| function.function.as_deref());
            functions.chain(symbol).for_each(|name| view.name(frame.ip, name));
        }
        view.stacks.insert(*id, sure.iter().map(|frame| frame.ip).collect());
    }
    view
}
