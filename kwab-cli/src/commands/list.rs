//! `kwab list PATH… [--filter TERMS] [--since WHEN] [--build BUILD] [--regressions] [--sort ORDER] [--quick]
//! [--index FILE] [--check WHAT] [--json] [--wide]`
//!
//! A catalogue of dumps: what triage concludes, how sure it is, where, who, when, damage; dumps of the same bug
//! together, the most frequent first. Directories are searched for files that end in `.kwab`; one that `kwab index`
//! has indexed is answered from its index, and only what differs from that is read. Of more than 10,000 files only the
//! directories are looked at, and a remark says so; `--check files` looks at each. A log that is named stands for the
//! crashes in it. `--regressions` keeps the crashes of the newest build (or of `--build`) whose signature or bug the
//! build before does not have, and says on stderr which of them an older one has; a build is as old as its first dump.
//! Status 0: all that is listed is sound; 3: some of it is damaged or not a dump, or dumps that are there were not
//! listed; 2: a path that was named cannot be read; the others are listed all the same.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use kwab::model::DumpFile;
use kwab::report::catalogue::{Catalogue, CatalogueEntry, FIELDS, Order};
use kwab::report::filter::Filter;

use super::log::{self, Beginning};
use crate::catalogue::row::Row;
use crate::catalogue::scan::Found;
use crate::catalogue::store::{Gathered, Gathering, Groups, Returned, Store, Streamed, Wanted};
use crate::catalogue::{self, Filling, Opened, row};
use crate::cli::{Color, List, Sort};
use crate::failure::{DAMAGED, FAILED, about, say, shown, system};
use crate::fleet::Look;
use crate::inputs;
use crate::output::{self, Style};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &List, color: Color) -> Result<ExitCode> {
    let filter = Filter::parse(arguments.filter.as_deref().unwrap_or_default(), FIELDS)?;
    let since_ns = arguments.since.map(crate::since::Since::ns);
    let wanted = Wanted { since_ns, build: arguments.build.clone(), is_new: arguments.regressions };
    let mut all = match arguments.paths.as_slice() {
        [folder] if inputs::is_dir(folder) => {
            let opened = directory(folder, arguments)?;
            All { store: opened.store, folder: folder.clone(), is_readable: true, is_partial: opened.is_partial }
        }
        paths => several(paths, arguments)?,
    };
    if wanted.is_new {
        say_returned(&all.store, &wanted)?;
    }
    let style = Style::of_stdout(color, arguments.wide);
    let order = order(arguments.sort);
    let sound = if wanted.is_all() && filter.is_empty() {
        whole(&all, order, arguments.json, style)?
    } else {
        part(&all, &wanted, &filter, order, arguments.json, style)?
    };
    all.is_partial |= !sound;
    Ok(ExitCode::from(match (all.is_readable, all.is_partial) {
        (false, _) => FAILED,
        (true, true) => DAMAGED,
        (true, false) => 0,
    }))
}

/// Says which of the regressions an older build had, or that there is none to compare with.
fn say_returned(store: &Store, wanted: &Wanted) -> Result<()> {
    if let Some(build) = store.oldest(wanted)? {
        let build = build.shown();
        say(&anyhow::anyhow!("no build before {build}: every crash of it is listed, new or not"));
    }
    let returned = store.returned(wanted)?;
    for Returned { what, last } in returned.iter().take(MOST_RETURNED) {
        say(&anyhow::anyhow!("back, last seen in build {last}: {what}"));
    }
    if let Some(more @ 1..) = returned.len().checked_sub(MOST_RETURNED) {
        say(&anyhow::anyhow!("{more} more are back; kwab trends shows the builds of each signature"));
    }
    Ok(())
}

/// Regressions that are named on stderr.
const MOST_RETURNED: usize = 8;
/// What stands for a list where there are no dumps.
const NO_DUMPS: &str = "no dumps here";
/// What stands for a list of those that match.
const NO_MATCH: &str = "no dump matches";
/// Names of a directory that are looked at for logs.
const MOST_NAMES: usize = 4096;

/// What to do with a directory that holds logs instead of dumps.
fn advice(folder: &Path) -> Option<String> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
    let names = std::fs::read_dir(folder).ok()?.take(MOST_NAMES).filter_map(|found| Some(found.ok()?.path()));
    let logs: Vec<PathBuf> = names.filter(is_log).collect();
    let first = kwab::report::command::word(logs.iter().min()?.to_str()?);
    let count = kwab::units::count(logs.len() as u64, "log", "logs");
    Some(format!("{} holds {count}: kwab {first} judges the first, kwab import makes dumps of it", shown(folder)))
}

/// What the paths of a command hold.
struct All {
    store: Store,
    /// Where paths of the store begin.
    folder: PathBuf,
    /// Whether what was named could be read.
    is_readable: bool,
    /// Whether dumps are damaged or not listed.
    is_partial: bool,
}

/// Lists all dumps of a store, group by group; gives whether they are sound.
fn whole(all: &All, order: Order, json: bool, style: Style) -> Result<bool> {
    let (bugs, sound) = all.store.bugs(&all.folder, order)?;
    print(&all.store.of(&all.folder, &bugs), (json, NO_DUMPS), style)?;
    if !json
        && bugs.is_empty()
        && !inputs::is_confined()
        && let Some(advice) = advice(&all.folder)
    {
        say(&anyhow::anyhow!(advice));
    }
    Ok(sound)
}

/// Prints groups as they are read, or what stands for them if there are none.
fn print(groups: &impl Groups, (json, none): (bool, &'static str), style: Style) -> Result<()> {
    let streamed = Streamed(groups);
    output::beside(&streamed)?;
    if json {
        return output::json(&streamed);
    }
    let each = (0..groups.len()).map(|at| groups.group(at, render::tables::named(style)));
    output::texts(render::tables::list(each, none, style))
}

/// Dumps that match and are held; of more than that only the lines of a list are.
const HELD: usize = 4096;

/// The dumps of a store that match.
enum Matching<'a> {
    Few(Vec<CatalogueEntry>),
    Many(Gathered<'a>),
    /// Of pairs of logs and dumps, or of more groups than are held: in a temporary store, which is on disk.
    Apart(Store),
}

/// Finds the wanted dumps of a store for which the filter holds; holds about `most` of them.
fn matching<'a>(
    all: &'a All,
    (wanted, filter): (&'a Wanted, &'a Filter),
    order: Order,
    most: usize,
) -> Result<Matching<'a>> {
    let mut held = Vec::new();
    let mut gathering = Gathering::default();
    let mut is_gathered = all.store.has_no_pairs()?;
    all.store.placed(&all.folder, wanted, |_, (bug, place), row| {
        if filter.holds(&row.entry) {
            is_gathered = is_gathered && gathering.add(bug, place, &row);
            if held.len() <= most {
                held.push(row.entry);
            }
        }
        Ok(())
    })?;
    if held.len() <= most {
        return Ok(Matching::Few(held));
    }
    drop(held);
    if is_gathered {
        let groups = Gathered::of(gathering, (&all.store, &all.folder), (wanted, filter), order)?;
        return Ok(Matching::Many(groups));
    }
    apart(all, wanted, filter, most).map(Matching::Apart)
}

/// Puts the wanted dumps of a store for which the filter holds into one of their own.
fn apart(all: &All, wanted: &Wanted, filter: &Filter, most: usize) -> Result<Store> {
    let mut store = Store::temporary()?;
    let (mut batch, mut rows): (Vec<(Found, Vec<Row>)>, usize) = (Vec::new(), 0);
    all.store.rows(&all.folder, wanted, |file, row| {
        if !filter.holds(&row.entry) {
            return Ok(());
        }
        rows += 1;
        if let Some((_, of_file)) = batch.last_mut().filter(|(last, _)| last.name == file.name) {
            of_file.push(row);
            return Ok(());
        }
        if rows > most {
            store.put(&batch)?;
            batch.clear();
            rows = 1;
        }
        batch.push((file, vec![row]));
        Ok(())
    })?;
    store.put(&batch)?;
    store.complete()?;
    Ok(store)
}

/// Lists the wanted dumps of a store; gives whether they are sound.
fn part(all: &All, wanted: &Wanted, filter: &Filter, order: Order, json: bool, style: Style) -> Result<bool> {
    let entries = match matching(all, (wanted, filter), order, HELD)? {
        Matching::Few(entries) => entries,
        Matching::Many(groups) => {
            print(&groups, (json, NO_MATCH), style)?;
            return Ok(groups.is_sound());
        }
        Matching::Apart(store) => {
            let all = All { store, folder: all.folder.clone(), is_readable: true, is_partial: false };
            return whole(&all, order, json, style);
        }
    };
    let sound = entries.iter().all(|entry| entry.sound);
    let catalogue = Catalogue::of(entries, order);
    output::beside(&catalogue)?;
    if json {
        output::json(&catalogue)?;
        return Ok(sound);
    }
    let groups = catalogue.groups.into_iter().map(|group| {
        let dumps = group.dumps.len();
        Ok::<_, Infallible>((group, dumps))
    });
    output::texts(render::tables::list(groups, NO_MATCH, style))?;
    Ok(sound)
}

/// Reads several paths into one store.
fn several(paths: &[PathBuf], arguments: &List) -> Result<All> {
    let mut store = Store::in_memory(Path::new("memory"))?;
    let (mut is_readable, mut is_partial) = (true, false);
    let mut filling = Filling::new(&mut store);
    for path in paths {
        if inputs::is_dir(path) {
            let opened = directory(path, arguments)?;
            is_partial |= opened.is_partial;
            filling.copy(&opened.store, path, |_| true)?;
            continue;
        }
        // A file that was named must be a dump or a log; one that was found may be anything.
        let mut rows = Vec::new();
        for dump in named(path) {
            match dump {
                Ok(file) => rows.push(row::of_dump(file, arguments.quick, &shown(path), 0)),
                Err(error) => {
                    say(&error);
                    is_readable = false;
                }
            }
        }
        filling.put_named(path, rows)?;
    }
    filling.end()?;
    store.settle(&[])?;
    Ok(All { store, folder: PathBuf::new(), is_readable, is_partial })
}

/// The dumps of a file that was named, or what its log becomes; a log in which nothing is recognised has none.
pub(super) fn named(path: &Path) -> Vec<Result<DumpFile>> {
    let text = match log::beginning(path) {
        Ok(Beginning::Dump(Ok(dumps))) => return dumps.map(|dump| dump.map_err(|error| about(path, error))).collect(),
        Ok(Beginning::Dump(Err(error))) => return vec![Err(error)],
        Ok(Beginning::Other(text)) => text,
        Err(error) => return vec![Err(about(path, system(&error)))],
    };
    match log::crashes(path, text.clone()) {
        Ok(Some(Ok(dumps))) => dumps,
        Ok(Some(Err(quiet))) => {
            say(&about(path, quiet.line()));
            Vec::new()
        }
        // What is neither a dump nor a log is described as the dump it is not.
        Ok(None) => match text {
            Some(text) => super::within(path, text),
            None => super::open_all(path).collect(),
        },
        Err(error) => vec![Err(error)],
    }
}

const fn order(sort: Sort) -> Order {
    match sort {
        Sort::Count => Order::Count,
        Sort::Score => Order::Score,
        Sort::First => Order::First,
        Sort::Last => Order::Last,
        Sort::Finding => Order::Finding,
        Sort::Place => Order::Place,
        Sort::Process => Order::Process,
        Sort::Completeness => Order::Completeness,
    }
}

/// What each dump in a directory is about.
pub(super) fn entries_of(folder: &Path) -> Vec<CatalogueEntry> {
    files_in(folder, &["kwab"]).iter().flat_map(|found| entries_in(found, false)).collect()
}

/// The files in a directory whose names end so, in order.
pub(super) fn files_in(folder: &Path, ends: &[&str]) -> Vec<PathBuf> {
    let is_wanted = |path: &PathBuf| path.extension().is_some_and(|end| ends.iter().any(|wanted| end == *wanted));
    if let Some(files) = inputs::confined_files(folder) {
        return files.into_iter().map(|(path, _)| path).filter(is_wanted).collect();
    }
    let all = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let files = all.filter(|found| found.file_type().is_file()).map(walkdir::DirEntry::into_path);
    files.filter(is_wanted).collect()
}

/// The entries of all dumps of a file that was found.
fn entries_in(path: &Path, quick: bool) -> impl Iterator<Item = CatalogueEntry> + use<> {
    row::of_file(path, quick, 0).into_iter().map(|row| row.entry)
}

/// The dumps of a directory: of its index where that is up to date. An index that cannot be read costs only time.
fn directory(folder: &Path, arguments: &List) -> Result<Opened> {
    // An index lies in the folder that it describes: a server takes nothing from it.
    if arguments.quick || inputs::is_confined() {
        let mut store = Store::in_memory(folder)?;
        let mut filling = Filling::new(&mut store);
        for path in files_in(folder, &["kwab"]) {
            filling.put_named(path.strip_prefix(folder).unwrap_or(&path), row::of_file(&path, arguments.quick, 0))?;
        }
        filling.end()?;
        store.settle(&[])?;
        return Ok(Opened { store, remark: None, is_partial: false });
    }
    opened(folder, arguments.index.as_deref(), arguments.check)
}

/// The store that answers for a directory; what it has not looked at is said on stderr.
pub(super) fn opened(folder: &Path, index: Option<&Path>, look: Option<Look>) -> Result<Opened> {
    let opened = catalogue::open(folder, index, look).or_else(|error| {
        say(&error.into());
        catalogue::read_all(folder)
    })?;
    if let Some(remark) = &opened.remark {
        say(&anyhow::anyhow!(remark.clone()));
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Every dump of the repository in one store; with a log of one of their deaths beside it.
    fn all(with_log: bool) -> All {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing");
        let mut store = Store::in_memory(&data).expect("made");
        let mut filling = Filling::new(&mut store);
        let files = files_in(&data.join("dumps"), &["kwab"]).into_iter();
        let pair = data.join("data/one-death");
        for path in files.chain(with_log.then(|| pair.join("memory.kwab"))) {
            let rows = row::of_file(&path, false, 0);
            filling.put_named(path.strip_prefix(&data).expect("below"), rows).expect("put");
        }
        if with_log {
            let log = pair.join("serial.log");
            let (_, dumps) = log::everything(&log, None).expect("read");
            let dumps = dumps.into_iter().map(|one| log::opened(&log, one).expect("a dump"));
            let rows = dumps.map(|dump| row::of_dump(dump, false, "serial.log", 0)).collect();
            filling.put_named(Path::new("serial.log"), rows).expect("put");
        }
        filling.end().expect("put");
        store.settle(&[]).expect("counted");
        All { store, folder: data, is_readable: true, is_partial: false }
    }

    fn json(value: &impl serde::Serialize) -> serde_json::Value {
        serde_json::to_value(value).expect("JSON")
    }

    #[test]
    fn a_list_of_more_than_is_held_is_the_list_of_what_is_held() {
        let orders = [Order::Count, Order::Score, Order::Last, Order::Place, Order::Completeness];
        for with_log in [false, true] {
            let all = all(with_log);
            assert_eq!(all.store.has_no_pairs().expect("read"), !with_log);
            for (text, least) in [("kind:sysrq", 6), ("source:kernel", 16), ("process:exam", 10)] {
                let filter = Filter::parse(text, FIELDS).expect("a filter");
                let none = Wanted::default();
                let found = |most, order| matching(&all, (&none, &filter), order, most).expect("found");
                let Matching::Few(entries) = found(HELD, Order::Count) else { panic!("{text}: too many to hold") };
                assert!(entries.len() >= least, "{text}: {}", entries.len());
                for order in orders {
                    let held = json(&Catalogue::of(entries.clone(), order));
                    for most in [1, 2, 5] {
                        let listed = match found(most, order) {
                            Matching::Few(_) => panic!("{text}: {most} hold all"),
                            Matching::Many(groups) => json(&Streamed(&groups)),
                            Matching::Apart(store) => {
                                let (bugs, _) = store.bugs(&all.folder, order).expect("read");
                                json(&Streamed(&store.of(&all.folder, &bugs)))
                            }
                        };
                        assert_eq!(listed, held, "{text} by {order:?}, log {with_log}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_shown_of_a_group_that_a_filter_leaves_is_the_beginning_of_all_of_it() {
        let (all, none) = (all(false), Wanted::default());
        let filter = Filter::parse("source:kernel", FIELDS).expect("a filter");
        let Matching::Many(groups) = matching(&all, (&none, &filter), Order::Count, 1).expect("found") else {
            panic!("held, or apart")
        };
        for at in 0..groups.len() {
            let (whole, dumps) = groups.group(at, usize::MAX).expect("read");
            assert_eq!(whole.dumps.len(), dumps);
            for most in [1, 3] {
                let (shown, of) = groups.group(at, most).expect("read");
                let first = whole.dumps.len().min(most);
                assert_eq!((json(&shown.dumps[..first].to_vec()), of), (json(&whole.dumps[..first].to_vec()), dumps));
                let last = kwab::report::catalogue::last_of(whole.dumps.iter()).map(json);
                let of_shown = kwab::report::catalogue::last_of(shown.dumps.iter()).map(json);
                assert_eq!(of_shown, last, "{most}");
            }
        }
    }
}
