//! The section of loaded images: the kernel, the program, its libraries, each with its build-id.

use alloc::sync::Arc;

use kernel_logic::elf::notes::{self, Found};
use kwab_format::List;
use kwab_format::record::{Image, ImageKind, Segment};
use machine::crash;

use super::memory::with_map;
use super::{Dump, Scope, Stop, Subject};
use crate::mm::{Backing, Map, Vma};

/// Segments of one image.
const MAX_SEGMENTS: usize = 8;

pub(super) fn images(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    if subject.scope != Scope::Process {
        kernel(dump)?;
    }
    let pid = subject.pid();
    with_map(dump, subject, |dump, map, _| of_map(dump, pid, map, &mut crash::probe_read))
}

/// Copies from an address as far as it can, and says how much.
type Read<'r> = &'r mut dyn FnMut(u64, &mut [u8]) -> usize;

/// The images of a program, whose memory `read` reads.
pub(super) fn of_map(dump: &mut Dump<'_>, pid: Option<u32>, map: &Map, read: Read<'_>) -> Result<(), Stop> {
    let mut before: Option<&Vma> = None;
    for vma in map.vmas.iter() {
        // An image begins where its file does.
        let again = before.is_some_and(|before| same_file(before, vma));
        if matches!(&vma.backing, Backing::File { offset: 0, .. }) && !again {
            program(dump, pid, map, vma, read)?;
        }
        before = Some(vma);
    }
    Ok(())
}

fn kernel(dump: &mut Dump<'_>) -> Result<(), Stop> {
    let [start, text, rodata, end] = machine::boot::image_addresses();
    let segment = |from: u64, to: u64, prot| Segment {
        start: Some(from),
        length: Some(to - from),
        prot: Some(prot),
        ..Segment::default()
    };
    let segments = [segment(start, text, 5), segment(text, rodata, 1), segment(rodata, end, 3)];
    dump.put(&Image {
        path: Some(b"kernel"),
        build_id: Some(machine::boot::build_id()),
        load_bias: Some(machine::boot::image_slide()),
        start: Some(start),
        end: Some(end),
        kind: Some(ImageKind::KERNEL),
        entry: Some(machine::boot::image_entry()),
        segments: Some(List::new(&segments)),
        ..Image::default()
    })
}

fn same_file(a: &Vma, b: &Vma) -> bool {
    match (&a.backing, &b.backing) {
        (Backing::File { file: a, .. }, Backing::File { file: b, .. }) => Arc::ptr_eq(a.inode(), b.inode()),
        _ => false,
    }
}

fn program(dump: &mut Dump<'_>, pid: Option<u32>, map: &Map, first: &Vma, read: Read<'_>) -> Result<(), Stop> {
    let Backing::File { file, .. } = &first.backing else { return Ok(()) };
    let last =
        map.vmas.iter().filter(|vma| vma.start >= first.start && same_file(vma, first)).take(MAX_SEGMENTS).last();
    let end = last.map_or(first.end, |vma| vma.end);
    let mut room = [0; 256];
    let own = map.exe.as_ref().is_some_and(|exe| Arc::ptr_eq(exe.inode(), file.inode()));
    let found = notes::find(first.start, &mut *read);
    let Found { bias, entry, ref build_id, build_id_len } = found.unwrap_or_default();
    let mut segments = [Segment::default(); MAX_SEGMENTS];
    let mut count = 0;
    // What the image asked for, not what it was given: comparing the two is the reader's business.
    notes::segments(first.start, bias, &mut *read, |loadable| {
        if let Some(segment) = segments.get_mut(count) {
            *segment = Segment {
                start: Some(loadable.start),
                length: Some(loadable.length),
                file_offset: Some(loadable.offset),
                prot: Some(loadable.prot),
                ..Segment::default()
            };
            count += 1;
        }
    });
    dump.put(&Image {
        path: Some(file.path.try_name(&mut room)),
        build_id: Some(&build_id[..build_id_len]).filter(|id| !id.is_empty()),
        load_bias: Some(bias),
        start: Some(first.start),
        end: Some(end),
        pid,
        kind: Some(if own { ImageKind::EXECUTABLE } else { ImageKind::LIBRARY }),
        entry: Some(entry).filter(|entry| *entry != 0),
        segments: Some(List::new(&segments[..count])),
        ..Image::default()
    })
}
