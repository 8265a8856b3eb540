//! Runs the binary to its end and says the most memory it ever had, as the kernel counted it (`ru_maxrss` of `wait4`).
//!
//! The count of a process begins with that of the process it was started from, because both share memory until `exec`.
//! A test that has held a hundred megabytes would see them in every child. So the test program starts itself once more,
//! and that fresh process starts `kwab` and reports.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use wait4::Wait4 as _;

/// The name of [`the_peak_of_a_child_is_its_own`], which the fresh process runs.
const MEASURER: &str = "common::peak::the_peak_of_a_child_is_its_own";
/// What the fresh process is to run: arguments, separated by newlines.
const WANTED: &str = "KWAB_TEST_MEASURED_ARGUMENTS";

/// How a run ended: its status, and the peak of its memory in bytes.
pub(crate) type Peak = (Option<i32>, u64);

/// Starts the binary in `folder`, under a process that measures it. What is written to its stdin reaches the binary.
pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", MEASURER, "--nocapture", "--test-threads", "1"]);
    command.current_dir(folder).env(WANTED, arguments.join("\n"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs")
}

/// Waits for what [`start`] gave.
pub(crate) fn end(mut child: Child) -> Peak {
    drop(child.stdin.take());
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("it is text");
    child.wait().expect("it ends");
    let words: Vec<&str> = said.split_whitespace().skip_while(|word| *word != "measured").take(3).collect();
    let [_, status, peak] = words[..] else { panic!("the measuring process said: {said}") };
    (status.parse().ok(), peak.parse().expect("a number of bytes"))
}

/// Runs the binary to its end without input.
pub(crate) fn of(folder: &Path, arguments: &[&str]) -> Peak {
    end(start(folder, arguments))
}

/// In the fresh process: runs the binary and says its status and its peak.
fn measure(arguments: &str) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    command.args(arguments.split('\n')).stdout(Stdio::null()).stderr(Stdio::null());
    let used = command.spawn().expect("the binary runs").wait4().expect("it ends");
    let status = used.status.code().map_or_else(|| "killed".to_owned(), |code| code.to_string());
    println!("\nmeasured {status} {}", used.rusage.maxrss);
}

#[test]
fn the_peak_of_a_child_is_its_own() {
    if let Ok(arguments) = std::env::var(WANTED) {
        return measure(&arguments);
    }
    // Twice the promise, held and touched by this process.
    let held = vec![1_u8; 128 << 20];
    let folder = crate::common::folder();
    let (status, peak) = of(folder.path(), &["--version"]);
    assert_eq!((status, held.len()), (Some(0), 128 << 20));
    assert!((1 << 20..64 << 20).contains(&peak), "{peak} bytes");
}
