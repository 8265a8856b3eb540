//! A dump of a small program whose statics have known values, for what prints by types.

use std::path::{Path, PathBuf};

use kwab::format::record::{Cause, CauseKind, Identity, Image as ImageRecord, Memory};
use kwab::format::{BootId, DumpId, FileHeader, SectionKind};
use kwab::model::emit::DumpWriter;
use kwab::symbols::{Image, IndexCache};

/// The program, an ELF file with debug information.
pub(crate) fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/typed/values.elf")
}

/// A dump with the program's memory; without the parts that begin below `from`.
pub(crate) fn dump(folder: &Path, from: u64) {
    let image = Image::open(&program(), &IndexCache::none()).expect("the program");
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(2), BootId([1; 16])));
    // A kernel of its own, which is not at hand.
    writer.put(SectionKind::IDENTITY, &Identity { kernel_build_id: Some(&[1; 20]), ..Identity::default() });
    let kind = Some(CauseKind::FATAL_SIGNAL);
    writer.put(SectionKind::CAUSE, &Cause { kind, pid: Some(4), signal: Some(11), ..Cause::default() });
    let id = image.build_id().expect("a build-id");
    let (start, end) = image.link_range();
    let record = ImageRecord {
        path: Some(b"/bin/values"),
        build_id: Some(&id.0),
        load_bias: Some(0),
        start: Some(start),
        end: Some(end),
        pid: Some(4),
        ..ImageRecord::default()
    };
    writer.put(SectionKind::IMAGES, &record);
    for (start, _, length) in image.loaded().filter(|(start, ..)| *start >= from) {
        let mut bytes = vec![0; length as usize];
        assert_eq!(image.read(start, &mut bytes), bytes.len());
        let piece = Memory { pid: Some(4), vaddr: Some(start), bytes: Some(&bytes), ..Memory::default() };
        writer.put(SectionKind::MEMORY, &piece);
    }
    std::fs::write(folder.join("p.kwab"), writer.finish().expect("memory")).expect("written");
}
