//! Programs whose DWARF lies apart: each is judged by the same program with its DWARF in it.
//!
//! GNU's dwp 2.40 dies of gcc's objects in DWARF 5, and llvm-dwp 14 and 16 do not end for them: their packages are of
//! DWARF 4. Those of rustc, which packs by itself, are of both.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

const MAIN: &str = "
int count(int n);
static inline __attribute__((always_inline)) int twice(int n) { return n * count(n); }
int main(int argc, char **argv) { volatile int sum = twice(argc); (void)argv; return sum + twice(sum); }
";
const COUNT: &str = "
struct point { int x; long y; };
struct point origin = { 3, 4 };
static inline __attribute__((always_inline)) int bits(int n) { return __builtin_popcount(n) + origin.x; }
__attribute__((noinline)) int count(int n) { volatile int found = bits(n); return found; }
";

/// Builds the program in a folder, with DWARF of a version.
fn program(folder: &Path, version: u8, apart: bool) -> PathBuf {
    let mut objects = Vec::new();
    for (name, text) in [("main", MAIN), ("count", COUNT)] {
        std::fs::write(folder.join(name).with_extension("c"), text).expect("written");
        let debug = format!("-gdwarf-{version}");
        let mut call = Command::new("gcc");
        call.current_dir(folder).args(["-O2", &debug, "-c", &format!("{name}.c"), "-o", &format!("{name}.o")]);
        call.args(apart.then_some("-gsplit-dwarf"));
        assert!(call.status().expect("gcc").success());
        objects.push(format!("{name}.o"));
    }
    let mut link = Command::new("gcc");
    link.current_dir(folder).args(["-no-pie", "-o", "prog"]).args(objects);
    assert!(link.status().expect("gcc").success());
    folder.join("prog")
}

/// Puts the objects of the program into a package.
fn pack(folder: &Path) {
    let packed = Command::new("dwp").current_dir(folder).args(["-e", "prog", "-o", "prog.dwp"]).status();
    assert!(packed.expect("dwp").success());
}

fn open(path: &Path) -> Image {
    Image::open(path, &IndexCache::none()).expect("an image")
}

type Chain = Vec<(Option<Arc<str>>, Option<Arc<str>>, Option<u32>)>;

/// Functions, files and lines of every address of both functions, the file's folder left out.
fn chains(image: &Image) -> Vec<Chain> {
    chains_of(image, ["main", "count"])
}

fn chains_of(image: &Image, functions: [&str; 2]) -> Vec<Chain> {
    let name = |file: &Arc<str>| file.rsplit('/').next().unwrap_or_default().into();
    let at = |link: u64| {
        let frames = image.locate(link, Probe::Exact).expect("an index").frames;
        frames.into_iter().map(|frame| (frame.function, frame.file.as_ref().map(name), frame.line)).collect()
    };
    let functions = functions.map(|name| image.find_symbol(name).expect(name));
    functions.into_iter().flat_map(|(start, size)| (start..start + size).map(at)).collect()
}

#[test]
fn units_in_objects_and_in_a_package_say_what_whole_ones_say() {
    for version in [4, 5] {
        let [whole, apart] = [false, true].map(|apart| {
            let folder = tempfile::tempdir().expect("a folder");
            (program(folder.path(), version, apart), folder)
        });
        let wanted = chains(&open(&whole.0));
        assert!(wanted.iter().any(|chain| chain.len() == 2), "nothing is inlined: {wanted:?}");
        let image = open(&apart.0);
        assert_eq!((chains(&image), image.remark()), (wanted.clone(), None), "DWARF {version}, objects");

        if version == 4 {
            pack(apart.1.path());
        }
        for object in ["main.dwo", "count.dwo"] {
            std::fs::remove_file(apart.1.path().join(object)).expect("an object");
        }
        if version == 4 {
            let image = open(&apart.0);
            assert_eq!((chains(&image), image.remark()), (wanted.clone(), None), "package");
            std::fs::remove_file(apart.1.path().join("prog.dwp")).expect("a package");
        }
        let image = open(&apart.0);
        let remark = image.remark().expect("a remark");
        assert!(remark.contains("DWARF of 2 units is in .dwo files that are not there"), "{remark}");
        let bare = chains(&image);
        let lines =
            |chains: &[Chain]| chains.iter().map(|chain| chain.first().map(|first| first.2)).collect::<Vec<_>>();
        assert_eq!(lines(&bare), lines(&wanted), "the skeleton has the lines");
        assert!(bare.iter().all(|chain| chain.len() <= 1));
    }
}

#[test]
fn an_object_of_another_program_is_not_used_and_a_package_that_comes_later_is() {
    let (folder, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let path = program(folder.path(), 5, true);
    program(other.path(), 4, true);
    // Its name is the same, its number is not.
    std::fs::copy(other.path().join("main.dwo"), folder.path().join("main.dwo")).expect("copied");
    let remark = open(&path).remark().expect("a remark");
    assert!(remark.contains("DWARF of 1 unit is"), "{remark}");

    // The index of an image whose units were not all there is not kept.
    let (cache, moved) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let cache = IndexCache::in_dir(cache.path().to_owned());
    let path = program(folder.path(), 4, true);
    let alone = moved.path().join("prog");
    std::fs::copy(&path, &alone).expect("copied");
    pack(folder.path());
    for object in ["main.dwo", "count.dwo"] {
        std::fs::remove_file(folder.path().join(object)).expect("an object");
    }
    let remark = |path: &Path| Image::open(path, &cache).expect("an image").remark();
    assert!(remark(&alone).is_some());
    std::fs::copy(folder.path().join("prog.dwp"), moved.path().join("prog.dwp")).expect("copied");
    assert_eq!(remark(&alone), None);
    let image = Image::open(&alone, &cache).expect("an image");
    assert_eq!(chains(&image), chains(&open(&path)), "from the cache");
}

#[test]
fn skeletons_that_name_devices_and_each_other_are_harmless() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = program(folder.path(), 5, true);
    for name in ["main.dwo", "count.dwo"] {
        std::fs::remove_file(folder.path().join(name)).expect("an object");
        std::os::unix::fs::symlink("/dev/zero", folder.path().join(name)).expect("a link");
    }
    std::os::unix::fs::symlink("prog", folder.path().join("prog.dwp")).expect("a link");
    assert!(open(&path).remark().is_some_and(|remark| remark.contains("2 units")));
}

const RUST: &str = "
#[inline(always)]
fn bits(n: u32) -> u32 { n.count_ones() + unsafe { core::ptr::read_volatile(&ORIGIN.0) } }
#[inline(never)]
fn count(n: u32) -> u32 { bits(n) }
pub struct Point(pub u32, pub u64);
pub static ORIGIN: Point = Point(3, 4);
fn main() { let n = std::env::args().count() as u32; println!(\"{}\", count(n) * n); }
";

#[test]
fn a_package_that_rustc_made_says_what_the_whole_program_says() {
    for version in [4, 5] {
        let [whole, apart] = ["off", "packed"].map(|split| {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join("prog.rs"), RUST).expect("written");
            let mut build = Command::new("rustc");
            build.current_dir(&folder).args(["-g", "-O", "--edition=2024", "prog.rs", "-o", "prog"]);
            build.arg("-C").arg(format!("dwarf-version={version}"));
            build.arg("-C").arg(format!("split-debuginfo={split}"));
            assert!(build.status().expect("rustc").success());
            folder
        });
        assert!(apart.path().join("prog.dwp").is_file(), "rustc packed nothing");
        let names = ["prog::main", "prog::count"];
        let [wanted, found] = [&whole, &apart].map(|folder| {
            let image = open(&folder.path().join("prog"));
            assert_eq!(image.remark(), None);
            chains_of(&image, names)
        });
        assert!(wanted.iter().any(|chain| chain.len() > 1), "nothing is inlined: {wanted:?}");
        assert_eq!(found, wanted, "DWARF {version}");
        // Without the package its units are missed.
        std::fs::remove_file(apart.path().join("prog.dwp")).expect("the package");
        assert!(open(&apart.path().join("prog")).remark().is_some());
    }
}
