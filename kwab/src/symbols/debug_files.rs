//! Debug files that lie apart from their image: by build-id in a debug directory, or by the name and checksum that the
//! image has in `.gnu_debuglink`.
//!
//! A name is only a hint. A file counts when its own build-id is the wanted one or, where there is none, when its CRC32
//! is the image's (gdb's manual, "Separate Debug Files").

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::bytes::ImageBytes;
use super::elf::{Elf, ElfTask, Headers, ReadHeaders, with_elf};
use super::{BuildId, regular};

/// Where an image lies below a debug directory: with line tables, or the image itself.
pub(super) fn name(id: &[u8], has_lines: bool) -> String {
    let (first, rest) = id.split_first().map_or((0, id), |(first, rest)| (*first, rest));
    let end = if has_lines { ".debug" } else { "" };
    format!(".build-id/{first:02x}/{}{end}", BuildId(rest.to_vec()))
}

/// The file for a build-id in these directories: the first with line tables, else an image without, if that is wanted.
pub(super) fn by_id(folders: &[PathBuf], id: &[u8], only_lines: bool) -> Option<PathBuf> {
    let lines: &[bool] = if only_lines { &[true] } else { &[true, false] };
    let paths = lines.iter().flat_map(|lines| folders.iter().map(|folder| folder.join(name(id, *lines))));
    paths.into_iter().find(|path| is_image(path, id))
}

/// Whether a file is an image with this build-id.
pub(super) fn is_image(path: &Path, id: &[u8]) -> bool {
    headers(path).is_some_and(|headers| headers.build_id == id)
}

/// The debug file that an image names, beside it, in `.debug` there, or below one of the debug directories.
pub(super) fn by_link(image: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    let bytes = ImageBytes::File(image.to_path_buf());
    let (name, crc) = with_elf(&bytes, ReadLink).ok()??;
    // A name that leads elsewhere is not a name.
    let name = String::from_utf8(name).ok().filter(|name| !name.is_empty() && !name.contains('/'))?;
    let own = headers(image)?.build_id;
    let beside = crate::output::folder_of(image);
    let below = std::fs::canonicalize(beside).ok();
    let below = below.as_deref().and_then(|path| path.strip_prefix("/").ok());
    let apart = folders.iter().filter_map(|folder| Some(folder.join(below?).join(&name)));
    let fits = |path: &PathBuf| {
        let is_image = |found: &Headers| found.has_debug_info && !found.relocatable && !found.loads.is_empty();
        let Some(found) = headers(path).filter(is_image) else { return false };
        let same = if own.is_empty() { found.build_id.is_empty() } else { found.build_id == own };
        same && path != image && checksum(path) == Some(crc)
    };
    [beside.join(&name), beside.join(".debug").join(&name)].into_iter().chain(apart).find(fits)
}

fn headers(path: &Path) -> Option<Headers> {
    with_elf(&ImageBytes::File(path.to_path_buf()), ReadHeaders).ok()
}

fn checksum(path: &Path) -> Option<u32> {
    let (mut file, mut sum, mut piece) = (regular::open(path).ok()?, crc32fast::Hasher::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(sum.finalize()),
            read => sum.update(&piece[..read]),
        }
    }
}

struct ReadLink;

impl ElfTask for ReadLink {
    type Output = Option<(Vec<u8>, u32)>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Self::Output> {
        use object::Object as _;
        Ok(elf.gnu_debuglink()?.map(|(name, crc)| (name.to_vec(), crc)))
    }
}
