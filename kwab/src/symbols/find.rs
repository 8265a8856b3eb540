//! Finds the image that a dump was made with: by build-id, in files, directories, initramfs archives and debug
//! directories.
//!
//! A file with another build-id is never used unless the caller forces it: wrong symbols are worse than none. When the
//! dump does not say a build-id, the name decides, and a file that merely has the right name is taken.

use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use super::bytes::ImageBytes;
use super::elf::{ReadHeaders, with_elf};
use super::{BuildId, Store, cpio, debug_files, debuginfod, regular};
use crate::units;

/// Files looked at below one directory; a build tree has fewer, a whole disk has more.
const MAX_FILES: usize = 50_000;
/// Directories and all that lies in them, files or not, gone through below one directory.
const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// Directories of the system in which no images lie; they are looked into only when they are named.
const OF_KERNEL: &[&str] = &["/proc", "/sys", "/dev"];
/// Directory levels looked at.
const MAX_DEPTH: usize = 12;

/// The image that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Its build-id, when the dump says one.
    pub build_id: Option<&'a [u8]>,
    /// Its path or name, when the dump says one.
    pub name: Option<&'a str>,
}

/// Why no image was found.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FindError {
    /// The only candidate was built from something else.
    #[error(
        "{path} has build-id {found}, the dump was made by {wanted}; symbols would be wrong. --force to use them anyway"
    )]
    WrongBuildId {
        /// Path of the only candidate.
        path: String,
        /// Its build-id, or `none`.
        found: String,
        /// The build-id in the dump.
        wanted: BuildId,
    },
    /// There is no candidate.
    #[error("no image for {wanted} in {searched} search paths; give its file or directory with --symbols")]
    NotFound {
        /// Build-id or name.
        wanted: String,
        /// Files and directories that were looked into.
        searched: usize,
    },
}

/// Looks for images.
#[derive(Debug)]
pub struct Finder {
    search_paths: Vec<SearchPath>,
    debug_dirs: Vec<PathBuf>,
    force: bool,
    /// Servers that may have debug files; `None` when none is to be asked.
    servers: Option<debuginfod::Servers>,
    taken: Vec<PathBuf>,
    took_beside: bool,
}

#[derive(Debug)]
struct SearchPath {
    path: PathBuf,
    looked: Option<Looked>,
    /// Named by the caller itself, rather than met in a directory.
    direct: bool,
    /// The user did not name it: only the right build-id counts there, never a file name.
    by_id_only: bool,
    /// Its images came with a dump.
    beside: bool,
}

/// What a search path holds.
#[derive(Debug, Default)]
struct Looked {
    candidates: Vec<Candidate>,
    /// What was not looked at, or why nothing is there.
    remark: Option<String>,
}

#[derive(Clone, Debug)]
struct Candidate {
    bytes: ImageBytes,
    name: String,
    build_id: Vec<u8>,
    debug_info: bool,
    relocatable: bool,
}

impl Finder {
    /// Looks into these files, directories and archives, in this order, then into the user's store and the system's
    /// debug directory. `force` takes an image with another build-id when there is no better one.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>, force: bool) -> Self {
        let search =
            |path: PathBuf| SearchPath { direct: path.is_file(), path, looked: None, by_id_only: false, beside: false };
        let store = Store::of_user().folder().filter(|folder| folder.is_dir()).map(Path::to_path_buf);
        let debug_dirs = store.into_iter().chain([PathBuf::from("/usr/lib/debug")]).collect();
        Self {
            search_paths: paths.into_iter().map(search).collect(),
            debug_dirs,
            force,
            servers: Some(debuginfod::Servers::default()),
            taken: Vec::new(),
            took_beside: false,
        }
    }

    /// Looks into the paths that the user named now, not when an image is wanted. Before each file `told` learns how
    /// many of how many files at most were looked at in a directory, and says whether to go on; what was found until
    /// then stays known.
    pub fn look(&mut self, told: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> ControlFlow<()> {
        self.search_paths.iter_mut().filter(|search| !search.by_id_only).try_for_each(|search| search.look(told))
    }

    /// The files that were given out: inputs of whatever is made of them.
    #[must_use]
    pub fn taken(&self) -> &[PathBuf] {
        &self.taken
    }

    /// Whether an image was given out that came with a dump and that the user did not name.
    #[must_use]
    pub const fn took_beside(&self) -> bool {
        self.took_beside
    }

    /// Looks into these too, when nothing better was found: likely paths that the user did not name. Only an image
    /// with the right build-id is taken from them.
    #[must_use]
    pub fn and_by_id(mut self, paths: Vec<PathBuf>) -> Self {
        let search = |path: PathBuf| SearchPath { direct: false, path, looked: None, by_id_only: true, beside: false };
        self.search_paths.extend(paths.into_iter().map(search));
        self
    }

    /// The same for folders that lie beside a dump: what their images say is the word of the dump's maker.
    #[must_use]
    pub fn and_beside(self, paths: Vec<PathBuf>) -> Self {
        let before = self.search_paths.len();
        let mut finder = self.and_by_id(paths);
        finder.search_paths[before..].iter_mut().for_each(|search| search.beside = true);
        finder
    }

    /// Looks into these too, which the dump itself carries, before what lies beside it or was built here: only an image
    /// with the right build-id is taken, and what it says is the word of the dump's maker.
    pub fn add_inside(&mut self, images: Vec<ImageBytes>) {
        let candidates = images.into_iter().filter_map(|bytes| {
            let name = bytes.name();
            candidate(bytes, name)
        });
        let looked = Some(Looked { candidates: candidates.collect(), remark: None });
        let inside = SearchPath { path: PathBuf::new(), looked, direct: false, by_id_only: true, beside: true };
        let named = self.search_paths.iter().take_while(|search| !search.by_id_only).count();
        self.search_paths.insert(named, inside);
    }

    /// Asks no server, whatever `DEBUGINFOD_URLS` says.
    #[must_use]
    pub fn offline(mut self) -> Self {
        self.servers = None;
        self
    }

    /// Every image with a build-id below the paths that the user named.
    pub fn images(&mut self) -> Vec<ImageBytes> {
        let named = self.search_paths.iter_mut().filter(|search| !search.by_id_only);
        let with_id = |candidate: &&Candidate| !candidate.build_id.is_empty() && !candidate.relocatable;
        named.flat_map(|search| search.candidates().iter().filter(with_id)).map(|one| one.bytes.clone()).collect()
    }

    /// Uses these debug directories (each with a `.build-id` below) instead of the user's store and the system's, and
    /// asks no server.
    #[must_use]
    pub fn with_debug_dirs(mut self, dirs: Vec<PathBuf>) -> Self {
        self.debug_dirs = dirs;
        self.offline()
    }

    /// The best image: the right build-id and, among those, the one with line tables.
    ///
    /// # Errors
    /// [`FindError`] when there is none, or only a wrong one.
    pub fn find(&mut self, wanted: Wanted<'_>) -> Result<ImageBytes, FindError> {
        let found = self.best(wanted)?;
        self.take(&found);
        Ok(found)
    }

    fn take(&mut self, image: &ImageBytes) {
        if let ImageBytes::Memory { bytes, .. } = image {
            self.took_beside |= self.search_paths.iter().any(|search| search.beside && search.carries(bytes));
        }
        if let ImageBytes::File(path) = image {
            // A debug file that an image beside a dump names came with the dump too.
            let holds = |search: &&SearchPath| search.has(path) || search.beside && search.is_above(path);
            let first = self.search_paths.iter().find(holds);
            self.took_beside |= first.is_some_and(|search| search.beside);
            self.taken.push(path.clone());
        }
    }

    fn best(&mut self, wanted: Wanted<'_>) -> Result<ImageBytes, FindError> {
        let mut named: Option<Candidate> = None;
        let mut right: Option<Candidate> = None;
        for search in &mut self.search_paths {
            let (direct, by_name) = (search.direct, !search.by_id_only);
            if !by_name && (wanted.build_id.is_none() || right.as_ref().is_some_and(|best| best.debug_info)) {
                continue;
            }
            for candidate in search.candidates().iter().filter(|candidate| !candidate.relocatable) {
                let same_id = wanted.build_id.is_some_and(|id| id == candidate.build_id);
                if same_id && right.as_ref().is_none_or(|best| candidate.debug_info && !best.debug_info) {
                    right = Some(candidate.clone());
                }
                let same_name = wanted.name.is_some_and(|name| file_name(name) == file_name(&candidate.name));
                // A file given by hand is meant for the kernel even when it is called otherwise.
                if by_name && named.is_none() && (same_name || (direct && wanted.name.is_none())) {
                    named = Some(candidate.clone());
                }
            }
        }
        let Some(id) = wanted.build_id.filter(|id| !id.is_empty()) else {
            let named = named.ok_or_else(|| self.not_found(wanted))?;
            return Ok(self.linked(&named).map_or(named.bytes, ImageBytes::File));
        };
        if right.as_ref().is_none_or(|right| !right.debug_info)
            && let Some(path) = debug_files::by_id(&self.debug_dirs, id, right.is_some())
        {
            return Ok(ImageBytes::File(path));
        }
        if let Some(right) = right {
            let mut apart = None;
            if !right.debug_info {
                apart = self.linked(&right);
                apart = apart.or_else(|| self.fetched(id));
            }
            return Ok(apart.map_or(right.bytes, ImageBytes::File));
        }
        if let Some(path) = self.fetched(id) {
            return Ok(ImageBytes::File(path));
        }
        match named {
            Some(wrong) if self.force => Ok(wrong.bytes),
            Some(wrong) => {
                let none = || "none".to_owned();
                let found = if wrong.build_id.is_empty() { none() } else { BuildId(wrong.build_id).to_string() };
                Err(FindError::WrongBuildId { path: wrong.bytes.name(), found, wanted: BuildId(id.to_vec()) })
            }
            None => Err(self.not_found(wanted)),
        }
    }

    /// The files below the paths that the user named that may hold the kernel (`None`) or a module of a log that has no
    /// build-id: files given by hand, and those of a directory with the usual names.
    pub fn by_module(&mut self, module: Option<&str>) -> Vec<ImageBytes> {
        let named = |candidate: &Candidate| {
            let name = file_name(&candidate.name);
            let stem = name.strip_suffix(".debug").unwrap_or(name);
            match (module, stem.strip_suffix(".ko")) {
                (Some(module), Some(stem)) => stem.replace('-', "_") == module.replace('-', "_"),
                (None, None) => stem.starts_with("vmlinu") || stem.starts_with("kernel"),
                _ => false,
            }
        };
        let mut found = Vec::new();
        for search in self.search_paths.iter_mut().filter(|search| !search.by_id_only) {
            let direct = search.direct;
            let by_hand = |candidate: &Candidate| direct && module.is_none() && !candidate.relocatable;
            let fit = search.candidates().iter().filter(|candidate| named(candidate) || by_hand(candidate));
            found.extend(fit.map(|candidate| candidate.bytes.clone()));
        }
        found.iter().for_each(|image| self.take(image));
        found
    }

    /// Of each path that the user named and that was looked into: what was left out there, or that it holds no image.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let named = self.search_paths.iter().filter(|search| !search.by_id_only);
        let remark = |search: &SearchPath| {
            let remark = search.looked.as_ref()?.remark.as_ref()?;
            Some(format!("{}: {remark}", search.path.display()))
        };
        let unasked = self.servers.as_ref().and_then(debuginfod::Servers::remark);
        named.filter_map(remark).chain(unasked).collect()
    }

    /// The debug file that an image without line tables names.
    fn linked(&self, candidate: &Candidate) -> Option<PathBuf> {
        match &candidate.bytes {
            ImageBytes::File(path) if !candidate.debug_info => debug_files::by_link(path, &self.debug_dirs),
            _ => None,
        }
    }

    fn fetched(&mut self, id: &[u8]) -> Option<PathBuf> {
        self.servers.as_mut().and_then(|servers| servers.find(id))
    }

    fn not_found(&self, wanted: Wanted<'_>) -> FindError {
        let id = wanted.build_id.map(|id| format!("build-id {}", BuildId(id.to_vec())));
        let name = wanted.name.map(str::to_owned);
        let text = [name, id].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let wanted = if text.is_empty() { "the kernel".to_owned() } else { text };
        FindError::NotFound { wanted, searched: self.search_paths.len() + self.debug_dirs.len() }
    }
}

impl SearchPath {
    /// Whether it holds this file, as far as it was looked into.
    fn has(&self, path: &Path) -> bool {
        let is_it = |candidate: &Candidate| matches!(&candidate.bytes, ImageBytes::File(known) if known == path);
        self.looked.as_ref().is_some_and(|looked| looked.candidates.iter().any(is_it))
    }

    /// Whether a path lies below it; nothing lies below what the dump carries itself.
    fn is_above(&self, path: &Path) -> bool {
        !self.path.as_os_str().is_empty() && path.starts_with(&self.path)
    }

    /// Whether these very bytes are one of its images.
    fn carries(&self, bytes: &Arc<[u8]>) -> bool {
        let is_it =
            |one: &Candidate| matches!(&one.bytes, ImageBytes::Memory { bytes: own, .. } if Arc::ptr_eq(own, bytes));
        self.looked.as_ref().is_some_and(|looked| looked.candidates.iter().any(is_it))
    }

    fn candidates(&mut self) -> &[Candidate] {
        // Without an end there is nothing to say.
        let _ = self.look(&mut |_, _| ControlFlow::Continue(()));
        self.looked.as_ref().map_or(&[], |looked| &looked.candidates)
    }

    /// Looks into it, once.
    fn look(&mut self, told: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> ControlFlow<()> {
        if self.looked.is_some() {
            return ControlFlow::Continue(());
        }
        let path = &self.path;
        let mut ended = ControlFlow::Continue(());
        let mut looked = if path.is_dir() { in_directory(path, told, &mut ended) } else { in_file(path) };
        if looked.candidates.is_empty() && looked.remark.is_none() {
            looked.remark = Some("there is no ELF image in it".to_owned());
        }
        self.looked = Some(looked);
        ended
    }
}

fn in_directory(
    dir: &Path,
    told: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
    ended: &mut ControlFlow<()>,
) -> Looked {
    let mut looked = Looked::default();
    let is_of_kernel = |entry: &walkdir::DirEntry| OF_KERNEL.iter().any(|path| entry.path() == Path::new(path));
    let walk = WalkDir::new(dir).max_depth(MAX_DEPTH).into_iter();
    let walk = walk.filter_entry(|entry| entry.depth() == 0 || !is_of_kernel(entry));
    let mut files = 0;
    for (number, entry) in walk.enumerate() {
        *ended = told(files, MAX_FILES);
        if ended.is_break() {
            looked.remark = Some(format!("the search ended after {files} files"));
            break;
        }
        if files == MAX_FILES || number == MAX_ENTRIES {
            looked.remark = Some(format!("only its first {files} files were looked at; name the image's directory"));
            break;
        }
        let Some(file) = entry.ok().filter(|entry| entry.file_type().is_file()) else { continue };
        files += 1;
        // Archives are unpacked only when given by name: a build tree holds many that are none of ours.
        if magic(file.path()) == Some(*b"\x7fELF") {
            looked.candidates.extend(of_file(file.path()));
        }
    }
    looked
}

fn in_file(path: &Path) -> Looked {
    let nothing = |remark: &str| Looked { candidates: Vec::new(), remark: Some(remark.to_owned()) };
    let head = match cpio::head(path) {
        Ok(head) => head,
        Err(error) => return nothing(&error.to_string()),
    };
    if head.starts_with(b"\x7fELF") {
        return Looked { candidates: of_file(path).into_iter().collect(), remark: None };
    }
    if !cpio::is_archive(&head) {
        return nothing("neither an ELF image nor a cpio archive (newc, plain or gzip)");
    }
    let bytes = match regular::read(path, u64::MAX) {
        Ok(bytes) => bytes,
        Err(error) => return nothing(&error.to_string()),
    };
    let unpacked = cpio::unpack(&bytes);
    let most = cpio::most_unpacked(&bytes);
    let is_cut = unpacked.len() as u64 > most;
    let remark = is_cut.then(|| {
        let most = units::bytes(most);
        format!("unpacks to more than {most}, which is all that was looked at; give it unpacked, or the image itself")
    });
    let files = cpio::entries(&unpacked).filter(|entry| entry.is_file() && entry.data.starts_with(b"\x7fELF"));
    let archive = path.display();
    let candidates = files
        .filter_map(|entry| {
            let name = format!("{archive}:{}", entry.name);
            candidate(ImageBytes::Memory { name, bytes: Arc::from(entry.data) }, entry.name.to_owned())
        })
        .collect();
    Looked { candidates, remark }
}

fn of_file(path: &Path) -> Option<Candidate> {
    candidate(ImageBytes::File(path.to_path_buf()), path.display().to_string())
}

fn candidate(bytes: ImageBytes, name: String) -> Option<Candidate> {
    let headers = with_elf(&bytes, ReadHeaders).ok()?;
    // Objects of a build tree are not images; modules are the objects that a kernel loads.
    let is_image = !headers.relocatable || file_name(&name).contains(".ko");
    (is_image && !headers.loads.is_empty()).then_some(Candidate {
        bytes,
        name,
        build_id: headers.build_id,
        debug_info: headers.has_debug_info,
        relocatable: headers.relocatable,
    })
}

fn magic(path: &Path) -> Option<[u8; 4]> {
    let mut magic = [0; 4];
    regular::open(path).ok()?.read_exact(&mut magic).ok()?;
    Some(magic)
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
