//! Imports a serial log that was found beside the dumps.

use std::fs::File;
use std::path::{Path, PathBuf};

use kwab::import::{LogInput, Options, import as import_log};
use kwab::output::Replace;

use super::Message;
use crate::text::count;

/// Makes dumps of a log, beside it; nothing is overwritten. A log that is cut gives what came before, and says so.
pub(super) fn import(log: &Path, send: &mut dyn FnMut(Message)) {
    let name = log.display();
    match dumps_of(log, send) {
        Ok((dumps, cut)) => {
            let cut = cut.map(|why| format!("; {why}")).unwrap_or_default();
            let text = format!("{name}: {} made{cut}", count(dumps.len(), "dump", "dumps"));
            send(Message::Imported { dumps, text });
        }
        Err(why) => send(Message::Failed { generation: 0, text: format!("{name}: {why}") }),
    }
}

fn dumps_of(log: &Path, send: &mut dyn FnMut(Message)) -> Result<(Vec<PathBuf>, Option<String>), String> {
    let folder = match log.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let file = File::open(log).map_err(|error| error.to_string())?;
    let total = file.metadata().map(|meta| meta.len()).unwrap_or(0);
    let source = log.file_name().unwrap_or(log.as_os_str()).to_string_lossy().into_owned();
    let stem = log.file_stem().unwrap_or(log.as_os_str()).to_string_lossy().into_owned();
    let options = Options { source, folder: Some(folder.clone()) };
    let mut progress = |done: u64| {
        let (done, total) = (done.min(total) / 1024, total / 1024);
        send(Message::Progress { generation: 0, what: "import", done: done as usize, total: total as usize + 1 });
    };
    let log = LogInput::open(file).map_err(|error| error.to_string())?;
    let problem = log.problem();
    let imported = import_log(log, &options, &mut progress).map_err(|error| error.to_string());
    send(Message::Progress { generation: 0, what: "import", done: 1, total: 1 });
    let (_, pending) = imported?;
    let many = pending.len() > 1;
    let named: Vec<_> = pending
        .into_iter()
        .map(|dump| {
            let number = dump.summary.number;
            let name = if many { format!("{stem}-{number}.kwab") } else { format!("{stem}.kwab") };
            (folder.join(name), dump)
        })
        .collect();
    if let Some((path, _)) = named.iter().find(|(path, _)| path.exists()) {
        return Err(format!("{} exists; kwab import --force overwrites it", path.display()));
    }
    let mut dumps = Vec::new();
    for (path, dump) in named {
        let Some(file) = dump.file else { continue };
        file.name(&path, Replace::Never).map_err(|error| format!("{}: {error}", path.display()))?;
        dumps.push(path);
    }
    Ok((dumps, problem.take()))
}
