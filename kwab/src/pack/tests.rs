//! A pack comes back as it was, and an archive that a stranger made leaves nothing behind.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;

fn part(path: &str, role: PackRole, bytes: &[u8]) -> Part<Cursor<Vec<u8>>> {
    Part { path: path.to_owned(), role, build_id: None, content: Cursor::new(bytes.to_vec()) }
}

fn empty() -> Manifest {
    let (producer, kernel) = ("test".to_owned(), "kwab".to_owned());
    Manifest { schema: SCHEMA, producer, kernel, redacted: None, missing: Vec::new(), files: Vec::new() }
}

fn listed(path: &str, role: PackRole, bytes: &[u8]) -> PackedFile {
    let sha256 = hex(&Sha256::digest(bytes));
    PackedFile { path: path.to_owned(), role, bytes: bytes.len() as u64, sha256, build_id: None }
}

/// An archive of entries as they are given, with this list in front.
fn archive(manifest: &Manifest, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).unix_permissions(0o644);
    out.start_file(MANIFEST, options).unwrap();
    out.write_all(&serde_json::to_vec(manifest).unwrap()).unwrap();
    for (name, bytes) in entries {
        out.start_file(*name, options).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

/// Refused with these words, and nothing is left of it: neither in the directory nor beside it.
fn refuses(bytes: &[u8], words: &str) {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let error = unpack(Cursor::new(bytes), &inner.join("out")).expect_err(words).to_string();
    assert!(error.contains(words), "{error}, not {words}");
    let left = |path: &Path| fs::read_dir(path).unwrap().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>();
    assert_eq!((left(&inner), left(folder.path())), (Vec::new(), vec!["inner".into()]), "{words}");
}

#[test]
fn a_pack_is_restored_as_it_was_and_made_the_same_twice() {
    let make = || {
        let mut parts = [
            part(DUMP, PackRole::Dump, b"dump"),
            part("images/ab12-kernel", PackRole::Image, &[7; 100_000]),
            part("notes/qemu-command.txt", PackRole::Note, b"qemu"),
        ];
        let mut out = Cursor::new(Vec::new());
        let manifest = write(empty(), &mut parts, &mut out).unwrap();
        (manifest, out.into_inner())
    };
    let (manifest, bytes) = make();
    assert_eq!(make().1, bytes);
    assert!(bytes.len() < 4096, "{}", bytes.len());
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("pack");
    assert_eq!(unpack(Cursor::new(&bytes), &to).unwrap(), manifest);
    assert_eq!(fs::read(to.join("images/ab12-kernel")).unwrap(), [7; 100_000]);
    assert_eq!(fs::read(to.join(DUMP)).unwrap(), b"dump");
    let kept: Manifest = serde_json::from_slice(&fs::read(to.join(MANIFEST)).unwrap()).unwrap();
    assert_eq!(kept, manifest);
    assert!(matches!(unpack(Cursor::new(&bytes), &to), Err(UnpackError::Exists)));
    let mut twice = [part(DUMP, PackRole::Dump, b"a"), part(DUMP, PackRole::Dump, b"b")];
    assert!(matches!(write(empty(), &mut twice, &mut Cursor::new(Vec::new())), Err(PackError::Name(_))));
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in
        ["../dump.kwab", "/etc/passwd", "images/../../x", "images/a/b", "images/.x", "images\\x", "x", "images/"]
    {
        let mut manifest = empty();
        manifest.files = vec![listed(DUMP, PackRole::Dump, b"d"), listed(name, PackRole::Image, b"x")];
        refuses(&archive(&manifest, &[(DUMP, b"d"), (name, b"x")]), "refused");
        // In the archive only.
        manifest.files.pop();
        refuses(&archive(&manifest, &[(DUMP, b"d"), (name, b"x")]), "");
    }
}

#[test]
fn links_devices_and_names_that_come_twice_are_refused() {
    let mut manifest = empty();
    manifest.files = vec![listed(DUMP, PackRole::Dump, b"d"), listed("images/a", PackRole::Image, b"x")];
    let sound = archive(&manifest, &[(DUMP, b"d"), ("images/a", b"x")]);
    // The mode of the last entry in the central directory: the upper half of its external attributes.
    let directory = memchr::memmem::rfind(&sound, b"PK\x01\x02").unwrap();
    for kind in [0o120_777_u16, 0o020_644, 0o060_644, 0o010_644, 0o140_644, 0o040_755] {
        let mut changed = sound.clone();
        changed[directory + 40..directory + 42].copy_from_slice(&kind.to_le_bytes());
        refuses(&changed, "not a regular file");
    }
    let both = archive(&manifest, &[(DUMP, b"d"), ("images/a", b"x"), ("images/b", b"y")]);
    let mut twice = both.clone();
    for at in memchr::memmem::find_iter(&both, b"images/b") {
        twice[at + 7] = b'a';
    }
    refuses(&twice, "one name");
    manifest.files.push(listed("images/a", PackRole::Image, b"x"));
    refuses(&archive(&manifest, &[(DUMP, b"d"), ("images/a", b"x")]), "listed twice");
}

#[test]
fn what_differs_from_the_list_is_refused() {
    let mut manifest = empty();
    manifest.files = vec![listed(DUMP, PackRole::Dump, b"dump")];
    refuses(&archive(&manifest, &[(DUMP, b"duMp")]), "not what the list says");
    refuses(&archive(&manifest, &[(DUMP, b"dump and more")]), "not what the list says");
    refuses(&archive(&manifest, &[]), "not in it");
    refuses(&archive(&manifest, &[(DUMP, b"dump"), ("notes/x", b"x")]), "not in the list");
    refuses(&archive(&Manifest { schema: 2, ..manifest.clone() }, &[(DUMP, b"dump")]), "version 2");
    refuses(&archive(&empty(), &[]), "no dump");
    refuses(b"PK not an archive", "too short");
    refuses(&[b'x'; 100], "does not end");
    let sound = archive(&manifest, &[(DUMP, b"dump")]);
    refuses(&[b"x", &sound[..]].concat(), "does not lie at its end");
    let mut many = sound.clone();
    many[sound.len() - 14..sound.len() - 10].copy_from_slice(&[0xff; 4]);
    refuses(&many, "too many entries");
    for length in 0..sound.len() {
        refuses(&sound[..length], "");
    }
}

/// An end record behind an archive: what it says of entries here and in all, and where its directory begins.
fn behind(archive: &[u8], here: u16, entries: u16, start: usize) -> Vec<u8> {
    let size = (archive.len() - start) as u32;
    let sizes = [size.to_le_bytes(), (start as u32).to_le_bytes()].concat();
    let counts = [here.to_le_bytes(), entries.to_le_bytes()].concat();
    [archive, b"PK\x05\x06\0\0\0\0", &counts, &sizes, &[0, 0]].concat()
}

#[test]
fn an_end_record_that_hides_another_one_is_refused() {
    let mut manifest = empty();
    manifest.files = vec![listed(DUMP, PackRole::Dump, b"dump")];
    let sound = archive(&manifest, &[(DUMP, b"dump")]);
    let directory = memchr::memmem::find(&sound, b"PK\x01\x02").unwrap();
    refuses(&behind(&sound, 2, 2, sound.len()), "its directory is not one of so many entries");
    refuses(&behind(&sound, 2, 2, directory), "its directory is not one of so many entries");
    refuses(&behind(&sound, 1, 2, directory), "on other disks");
    let mut many = sound.clone();
    many[sound.len() - 14..sound.len() - 10].copy_from_slice(&[3, 0, 3, 0]);
    refuses(&many, "its directory is not one of so many entries");
}

#[test]
fn a_dump_under_another_name_is_refused() {
    let mut manifest = empty();
    manifest.files = vec![listed("notes/x", PackRole::Dump, b"dump")];
    refuses(&archive(&manifest, &[("notes/x", b"dump")]), "another name");
    manifest.files.push(listed(DUMP, PackRole::Note, b"note"));
    refuses(&archive(&manifest, &[("notes/x", b"dump"), (DUMP, b"note")]), "another name");
}

#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    let zeros = vec![0; 80 << 20];
    let mut manifest = empty();
    manifest.files = vec![listed(DUMP, PackRole::Dump, &zeros)];
    let bomb = archive(&manifest, &[(DUMP, &zeros)]);
    assert!(bomb.len() < 1 << 20);
    refuses(&bomb, "more than");
    // A list that lies about it: no more is written than it says.
    manifest.files = vec![PackedFile { bytes: 10, ..manifest.files.remove(0) }];
    refuses(&archive(&manifest, &[(DUMP, &zeros)]), "not what the list says");
}
