//! `kwab export DUMP|DIR --to parquet [--table TABLE] [--index FILE] [-o FILE] [--force]`
//! `kwab export DIR --to parquet --partition signature|day|build -o DIR`
//!
//! A table as a Parquet file (`docs/parquet.md` has the columns): of a directory its catalogue, a row per dump, from
//! the index where there is one; of a dump, or of all dumps in a directory, `events`, `calls`, `mappings`, `tasks`, or
//! the records of any type. With `--partition` the catalogue becomes a new directory with a file per value, in folders
//! that are named `key=value`, as object stores and Spark have tables.
//! Status 0: whole; 3: dumps are damaged or not in the table; 2: nothing was written.

use std::fs::{File, Permissions};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use kwab::model::DumpFile;
use kwab::output::folder_of;
use kwab::tables::{CatalogueRow, CatalogueWriter, DumpTable, Origin, TableWriter};
use kwab::units::count;

use crate::catalogue::store::Sequence;
use crate::catalogue::{self, Opened};
use crate::cli::{Export, Form};
use crate::failure::{DAMAGED, about, say, shown, system};
use crate::fleet::Partition;
use crate::inputs;
use crate::output::Output;
use crate::since::day_of;

/// The first bytes of a Parquet file.
const MAGIC: &[u8] = b"PAR1";
/// The table with a row per dump.
const CATALOGUE: &str = "catalogue";

/// Whether this module writes a form.
pub(super) const fn writes(form: Form) -> bool {
    matches!(form, Form::Parquet)
}

/// Runs the command.
pub(crate) fn run(arguments: &Export) -> Result<ExitCode> {
    if !arguments.section.is_empty() || !arguments.symbols.is_empty() {
        bail!("--section and --symbols do not apply to parquet; --table chooses what is written");
    }
    let is_folder = inputs::is_dir(&arguments.dump);
    let options = &arguments.tables;
    let name = match options.table.as_deref() {
        Some(name) => name,
        None if is_folder => CATALOGUE,
        None => bail!("--table: name one of {}; a directory has {CATALOGUE} too", tables()),
    };
    if name == CATALOGUE && is_folder {
        return match options.partition {
            None => whole(arguments),
            Some(partition) => parts(arguments, partition),
        };
    }
    if name == CATALOGUE || options.partition.is_some() || options.index.is_some() {
        bail!("{CATALOGUE}, --partition and --index are for the catalogue of a directory");
    }
    let Some(table) = DumpTable::named(name) else { bail!("unknown table {name}; expected one of {}", tables()) };
    records(arguments, table, is_folder)
}

/// The names of tables, for messages.
fn tables() -> String {
    "events, calls, mappings, tasks, or a type of records as kwab export --to jsonl names it".to_string()
}

/// Writes the catalogue of a directory as one file.
fn whole(arguments: &Export) -> Result<ExitCode> {
    let output = destination(arguments)?;
    let opened = open(arguments)?;
    let mut rows = CatalogueWriter::new(tempfile::tempfile().context("a temporary file")?, None)?;
    opened.store.exported(&arguments.dump, Sequence::Path, |row| rows.put(row))??;
    put(&output, rows.finish()?)?;
    Ok(status(&opened))
}

/// Writes the catalogue of a directory as a directory of files, which has its name when it is complete.
fn parts(arguments: &Export, partition: Partition) -> Result<ExitCode> {
    let Some(to) = arguments.output.as_deref().filter(|path| *path != Path::new("-")) else {
        bail!("--partition writes a directory: name it with -o");
    };
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(about(to, "exists; --partition makes a new directory"));
    }
    let opened = open(arguments)?;
    let mut parts = tempfile::Builder::new();
    let folder = parts.prefix(".kwab-").permissions(Permissions::from_mode(0o777)).tempdir_in(folder_of(to));
    let folder = folder.map_err(|error| about(to, system(&error)))?;
    let mut open: Option<(String, CatalogueWriter<File>)> = None;
    // Long values that have one folder have a file each.
    let mut number = 0_u32;
    opened.store.exported(&arguments.dump, partition.sequence(), |row| {
        let value = partition.value(&row);
        if open.as_ref().is_none_or(|(at, _)| *at != value) {
            if let Some((_, before)) = open.take() {
                before.finish()?;
            }
            let inside = folder.path().join(format!("{}={}", partition.key(), folder_name(&value)));
            std::fs::create_dir_all(&inside).map_err(|error| about(to, system(&error)))?;
            let file = File::create_new(inside.join(format!("part-{number}.parquet")));
            let file = file.map_err(|error| about(to, system(&error)))?;
            number += 1;
            open = Some((value, CatalogueWriter::new(file, Some(partition.key()))?));
        }
        open.as_mut().map_or(Ok(()), |(_, rows)| Ok::<_, anyhow::Error>(rows.put(row)?))
    })??;
    if let Some((_, last)) = open {
        last.finish()?;
    }
    kwab::output::name_folder(folder, to).map_err(|error| about(to, system(&error)))?;
    Ok(status(&opened))
}

/// Writes a table of a dump, or of all dumps in a directory.
fn records(arguments: &Export, table: DumpTable, is_folder: bool) -> Result<ExitCode> {
    let output = destination(arguments)?;
    let mut out = TableWriter::new(tempfile::tempfile().context("a temporary file")?, table)?;
    let (mut defects, mut unreadable) = (0, 0);
    if is_folder {
        for path in super::list::files_in(&arguments.dump, &["kwab"]) {
            for dump in super::open_all(&path) {
                match dump {
                    Ok(file) => defects += put_dump(&mut out, file, &path)?,
                    Err(_) => unreadable += 1,
                }
            }
        }
    } else {
        let file = super::open_file(&arguments.dump, arguments.which.number)?;
        super::tell_others(&file, &arguments.dump);
        defects += put_dump(&mut out, file, &arguments.dump)?;
    }
    put(&output, out.finish()?)?;
    if defects + unreadable == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let files = (unreadable > 0).then(|| format!("{} not readable", count(unreadable, "file is", "files are")));
    let defects = (defects > 0).then(|| count(defects, "defect", "defects"));
    let told = files.into_iter().chain(defects).collect::<Vec<_>>().join(", ");
    say(&about(&arguments.dump, format_args!("{told}; what is sound was exported (see kwab check)")));
    Ok(ExitCode::from(DAMAGED))
}

/// Puts the rows of a dump; gives how many defects it has.
fn put_dump(out: &mut TableWriter<File>, file: DumpFile, path: &Path) -> Result<u64> {
    let dump = (file.dumps > 1).then_some(file.number).and_then(|number| u32::try_from(number).ok());
    let defects = file.defects.len();
    let lost = out.put(Arc::new(file), &Origin { file: shown(path), dump })?;
    Ok((defects + lost.len()) as u64)
}

/// The store of a directory.
fn open(arguments: &Export) -> Result<Opened> {
    super::list::opened(&arguments.dump, arguments.tables.index.as_deref(), None)
}

fn status(opened: &Opened) -> ExitCode {
    ExitCode::from(if opened.is_partial { DAMAGED } else { 0 })
}

/// Where the table goes. Of a directory any file may be an input, so only a Parquet file is replaced.
fn destination(arguments: &Export) -> Result<Output> {
    let index = catalogue::index_of(&arguments.dump, arguments.tables.index.as_deref());
    let inputs = [arguments.dump.as_path(), &index].map(Path::to_path_buf);
    let output = Output::of(arguments.output.as_deref(), arguments.force, inputs.iter().map(PathBuf::as_path))?;
    output.only_over(MAGIC, "is not a Parquet file")?.of_binary()
}

/// Copies a complete file to where it goes: nothing of a table that cannot be written gets there.
fn put(output: &Output, mut file: File) -> Result<()> {
    file.seek(SeekFrom::Start(0)).context("a temporary file")?;
    output.write(|out: &mut dyn Write| io::copy(&mut file, out).map(drop))
}

impl Partition {
    /// The column that becomes a folder.
    const fn key(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Day => "day",
            Self::Build => "build",
        }
    }

    const fn sequence(self) -> Sequence {
        match self {
            Self::Signature => Sequence::Signature,
            Self::Day => Sequence::Time,
            Self::Build => Sequence::Build,
        }
    }

    fn value(self, row: &CatalogueRow) -> String {
        match self {
            Self::Signature => row.entry.signature.clone(),
            Self::Day => day_of(row.happened_ns),
            Self::Build => row.build.clone(),
        }
    }
}

/// A value as Hive names its folder: letters, digits and `-_.` stand for themselves, every other byte is `%XX`.
fn folder_name(value: &str) -> String {
    /// Names of files have at most 255 bytes.
    const LONGEST: usize = 200;
    if value.is_empty() {
        return "__HIVE_DEFAULT_PARTITION__".to_string();
    }
    let mut name = String::new();
    for byte in value.bytes() {
        if name.len() >= LONGEST {
            // What is cut is told apart by its sum.
            name += &format!("-{:08x}", crc32fast::hash(value.as_bytes()));
            break;
        }
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            name.push(char::from(byte));
        } else {
            name += &format!("%{byte:02X}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn a_folder_is_named_so_that_it_stays_in_its_place_and_tells_its_value() {
        assert_eq!(folder_name("2026-11-20"), "2026-11-20");
        assert_eq!(folder_name(""), "__HIVE_DEFAULT_PARTITION__");
        assert_eq!(folder_name("Linux 6.1/x=\u{e9}\n"), "Linux%206.1%2Fx%3D%C3%A9%0A");
        assert_eq!((folder_name("../a"), folder_name("a%2Fb")), ("..%2Fa".into(), "a%252Fb".into()));
        for length in 190..300 {
            let (a, b) = (format!("{}a", "/".repeat(length)), format!("{}b", "/".repeat(length)));
            let name = folder_name(&a);
            assert!(name.len() < 255 && name != folder_name(&b), "{name}");
            assert!(name.split('%').skip(1).all(|part| part.starts_with("2F")), "{name}");
        }
    }
}
