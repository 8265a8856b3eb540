//! `kwab pack DUMP -o PACK.zip [--symbols PATH]… [--input FILE]… [--qemu COMMAND] [--redact POLICY] [-f] [--json]`
//!
//! Puts a dump, the images that it names, what the machine was given and how it was run into one archive, with the
//! length and the SHA-256 of each. `kwab open` restores it, and everything works there without a network. Images are
//! found by build-id, as by `kwab triage`. With `--redact` the dump goes in redacted, no command line, and of the
//! images only the kernel's: with its names and source paths, but not under the name of its file.
//! Status 0: packed; 2: usage or I/O; 3: packed, but the dump is damaged or an image was not found.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::model::{Depth, Dump, DumpFile};
use kwab::pack::{DUMP, Manifest, PackError, PackRole, Part, SCHEMA, write};
use kwab::redact::redact;
use kwab::symbols::{BuildId, Finder, ImageBytes, Wanted};

use super::{analyse, open_file, redact as redacted};
use crate::analyses::SymbolOptions;
use crate::failure::{DAMAGED, about, is_stdio, shown, system};
use crate::output::{self, Output};
use crate::sharing::Pack;
use crate::{inputs, render};

/// The content of a part.
enum Content {
    File(File),
    Memory(Cursor<Vec<u8>>),
}

impl Read for Content {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(into),
            Self::Memory(bytes) => bytes.read(into),
        }
    }
}

impl Seek for Content {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Memory(bytes) => bytes.seek(to),
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Pack) -> Result<ExitCode> {
    let inputs = std::iter::once(&arguments.dump).chain(&arguments.inputs).chain(&arguments.symbols);
    let inputs = inputs.map(PathBuf::as_path);
    let output = Output::of(Some(&arguments.output), arguments.force, inputs)?.of_binary()?;
    if output.is_stdout() && arguments.json {
        bail!("--json and the pack would both go to stdout; name a file with -o");
    }
    let mut file = open_file(&arguments.dump, arguments.which.number)?;
    file.verify_all();
    let damaged = !file.defects.is_empty();
    let (content, file) = dump_of(arguments, file, &output)?;
    let (manifest, mut parts) = parts_of(arguments, content, file)?;
    // A redacted dump shares its position with the file that was just looked at.
    parts.iter_mut().try_for_each(|part| part.content.rewind())?;
    let complete = manifest.missing.is_empty();
    let failed = |error: PackError| match error {
        PackError::Io(error) => about(output.path(), system(&error)),
        error => about(output.path(), error),
    };
    let mut archive = tempfile::tempfile_in(output.folder()).map_err(|error| about(output.path(), system(&error)))?;
    let manifest = write(manifest, &mut parts, &mut archive).map_err(failed)?;
    output.write(|out| {
        archive.rewind()?;
        io::copy(&mut archive, out).map(drop)
    })?;
    output::beside(&manifest)?;
    let text = render::pack::packed(&manifest, &shown(output.path()));
    match (arguments.json, output.is_stdout()) {
        (true, _) => output::json(&manifest)?,
        (false, true) => output::remark(&text),
        (false, false) => output::text(&text)?,
    }
    Ok(ExitCode::from(if complete && !damaged { 0 } else { DAMAGED }))
}

/// The dump as it goes into the pack, redacted or as it is, and opened.
fn dump_of(arguments: &Pack, file: DumpFile, output: &Output) -> Result<(Content, DumpFile)> {
    if let Some(keep) = arguments.redact {
        // A short dump can be a long one when its sections are not compressed: it is not kept in memory.
        let write = || {
            let mut made = tempfile::tempfile_in(output.folder())?;
            let mut out = BufWriter::new(&made);
            redact(&file, &shown(&arguments.dump), redacted::policy(keep), &mut out)?;
            out.flush()?;
            drop(out);
            made.rewind()?;
            io::Result::Ok((made.try_clone()?, made))
        };
        let (again, made) = write().map_err(|error| about(output.path(), system(&error)))?;
        drop(file);
        return Ok((Content::File(again), DumpFile::of_file(made, 1)?));
    }
    if is_stdio(&arguments.dump) || file.dumps > 1 {
        bail!("{}: name a file with one dump; kwab salvage makes one of each", shown(&arguments.dump));
    }
    if DumpFile::of_file(opened(&arguments.dump)?, 1).is_err() {
        let name = shown(&arguments.dump);
        bail!("{name}: is a log; kwab import makes dumps of it, and --redact takes it as it is");
    }
    Ok((Content::File(opened(&arguments.dump)?), file))
}

/// Everything else, by what the dump that is packed says.
fn parts_of(arguments: &Pack, dump: Content, file: DumpFile) -> Result<(Manifest, Vec<Part<Content>>)> {
    // No policy keeps images but the kernel's, which the identity names.
    let model = Dump::load(file, if arguments.redact.is_some() { Depth::Catalogue } else { Depth::Rules });
    let text = |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let case = model.case();
    let identity = case.identities.first().map(|found| found.record).unwrap_or_default();
    let words = [text(identity.kernel_name), text(identity.kernel_version)].into_iter().flatten().collect::<Vec<_>>();
    let mut manifest = Manifest {
        schema: SCHEMA,
        producer: format!("kwab {}", env!("CARGO_PKG_VERSION")),
        kernel: words.join(" "),
        redacted: arguments.redact.map(|keep| redacted::policy(keep).name().to_owned()),
        missing: Vec::new(),
        files: Vec::new(),
    };
    let part = |path: String, role, build_id, content| Part { path, role, build_id, content };
    let memory = |bytes: Vec<u8>| Content::Memory(Cursor::new(bytes));
    let mut parts = vec![part(DUMP.to_owned(), PackRole::Dump, None, dump)];
    let ids = case.images.iter().filter_map(|image| image.build_id).chain(identity.kernel_build_id);
    analyse::check_sources(&SymbolOptions { paths: arguments.symbols.clone(), force: false, source: Vec::new() })?;
    let mut finder = Finder::new(arguments.symbols.clone(), false).and_by_id(analyse::built());
    for id in ids.map(<[u8]>::to_vec).collect::<BTreeSet<_>>() {
        let name = BuildId(id.clone()).to_string();
        match finder.find(Wanted { build_id: Some(&id), name: None }) {
            Ok(image) => {
                let file = match arguments.redact {
                    // A file's name is its user's.
                    Some(_) => "kernel".to_owned(),
                    None => plain_name(Path::new(&image.name())),
                };
                let path = format!("images/{name}-{file}");
                let content = match image {
                    ImageBytes::File(path) => Content::File(opened(&path)?),
                    ImageBytes::Memory { bytes, .. } => memory(bytes.to_vec()),
                };
                parts.push(part(path, PackRole::Image, Some(name), content));
            }
            Err(_) => manifest.missing.push(name),
        }
    }
    inputs::were_read(finder.taken().iter().map(PathBuf::as_path));
    for input in &arguments.inputs {
        let path = format!("inputs/{}", plain_name(input));
        parts.push(part(path, PackRole::Input, None, Content::File(opened(input)?)));
    }
    let note = |path: &str, text: String| part(path.to_owned(), PackRole::Note, None, memory(text.into_bytes()));
    if let Some(line) = text(identity.command_line).filter(|line| !line.is_empty()) {
        parts.push(note("notes/kernel-command-line.txt", line + "\n"));
    }
    if let Some(command) = &arguments.qemu {
        parts.push(note(render::pack::QEMU_COMMAND, format!("{command}\n")));
    }
    Ok((manifest, parts))
}

fn opened(path: &Path) -> Result<File> {
    let file = inputs::open(path).map_err(|error| about(path, system(&error)))?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(about(path, "is not a regular file"));
    }
    Ok(file)
}

/// The last part of a path, with the characters that names in a pack may have.
fn plain_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = |sign: char| if sign.is_ascii_alphanumeric() || "._+-".contains(sign) { sign } else { '_' };
    let name: String = name.trim_start_matches('.').chars().map(plain).take(80).collect();
    if name.is_empty() { "file".to_owned() } else { name }
}
