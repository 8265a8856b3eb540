//! `kwab diff`: what differs between two dumps is shown, what varies from run to run is not.

use crate::common::{folder, kwab, run, text};
use serde_json::Value;

/// A committed dump.
fn dump(name: &str) -> String {
    format!("{}/../testing/dumps/{name}.kwab", env!("CARGO_MANIFEST_DIR"))
}

/// An oops of Linux on one boot: where its kernel and its data lie, and who died when.
fn oops(text: u64, data: u64, pid: u32, second: u32) -> String {
    let stamp = format!("[  {second:3}.125000][ T{pid}] ");
    let lines = [
        "Linux version 6.1.0 (a@b) #1 SMP".to_string(),
        "Command line: console=ttyS0 quiet".to_string(),
        "demo: loaded".to_string(),
        "BUG: kernel NULL pointer dereference, address: 0000000000000018".to_string(),
        "#PF: supervisor read access in kernel mode".to_string(),
        "#PF: error_code(0x0000) - not-present page".to_string(),
        "Oops: 0000 [#1] PREEMPT SMP".to_string(),
        format!("CPU: 1 PID: {pid} Comm: demo Not tainted 6.1.0 #1"),
        "RIP: 0010:demo_read+0x1c/0x40 [demo]".to_string(),
        format!("RSP: 0018:{:016x} EFLAGS: 00010246", data + 0xe08),
        format!("RAX: 0000000000000000 RBX: {data:016x} RCX: 0000000000000001"),
        format!("RDX: 0000000000000010 RSI: {:016x} RDI: 0000000000000000", text + 0x1000),
        // The flags of the program, of which one depends on its addresses.
        format!("R10: 0000000000000001 R11: {:016x} R12: 0000000000000002", 0x202 | (pid & 4)),
        "Call Trace:".to_string(),
        " vfs_read+0x9f/0x1a0".to_string(),
        " ksys_read+0x63/0xe0".to_string(),
        " do_syscall_64+0x3b/0x90".to_string(),
        "---[ end trace 0000000000000000 ]---".to_string(),
    ];
    lines.iter().map(|line| format!("{stamp}{line}\n")).collect()
}

const FIRST: (u64, u64) = (0xffff_ffff_8100_0000, 0xffff_c900_0012_3000);
const SECOND: (u64, u64) = (0xffff_ffff_9a20_0000, 0xffff_a1c0_0405_6000);

/// The differences between two logs, as `part fate name: left → right`, and the exit status.
fn differences(left: &str, right: &str) -> (Vec<String>, Option<i32>) {
    let folder = folder();
    std::fs::write(folder.path().join("a.log"), left).expect("written");
    std::fs::write(folder.path().join("b.log"), right).expect("written");
    let output = run(folder.path(), &["diff", "a.log", "b.log", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let word = |value: &Value| value.as_str().unwrap_or("–").to_string();
    let parts = found["parts"].as_array().expect("parts").iter();
    let told = parts.flat_map(|part| {
        part["changes"].as_array().expect("changes").iter().map(move |change| {
            let [name, left, right] = ["name", "left", "right"].map(|field| word(&change[field]));
            format!("{} {} {name}: {left} → {right}", word(&part["name"]), word(&change["fate"]))
        })
    });
    (told.collect(), output.status.code())
}

#[test]
fn two_boots_of_one_oops_differ_in_nothing() {
    let (told, status) = differences(&oops(FIRST.0, FIRST.1, 412, 17), &oops(SECOND.0, SECOND.1, 98, 231));
    assert_eq!((told, status), (vec![], Some(0)));
}

#[test]
fn each_difference_that_is_no_ones_address_is_shown_and_nothing_else() {
    let first = oops(FIRST.0, FIRST.1, 412, 17);
    let second = oops(SECOND.0, SECOND.1, 98, 231);
    let planted = [
        ("quiet", "quiet slub_debug=FZPU", "option new slub_debug: – → slub_debug=FZPU"),
        ("RDX: 0000000000000010", "RDX: 0000000000000020", "register changed rdx: 0x10 → 0x20"),
        ("RDI: 0000000000000000", "RDI: 6b6b6b6b6b6b6b6b", "register changed rdi: 0 → 0x6b6b6b6b6b6b6b6b"),
        ("address: 0000000000000018", "address: 0000000000000028", "cause changed fault address: 0x18 → 0x28"),
        (" ksys_read+0x63/0xe0", " ksys_pread64+0x63/0xe0", "backtrace gone : ksys_read+0x63/0xe0 → –"),
        (" ksys_read+0x63/0xe0", " ksys_pread64+0x63/0xe0", "backtrace new : – → ksys_pread64+0x63/0xe0"),
        ("demo: loaded", "demo: loaded with checks", "log new : – → "),
    ];
    for (from, to, wanted) in planted {
        assert!(second.contains(from), "{from}");
        let (told, status) = differences(&first, &second.replace(from, to));
        assert!(told.iter().any(|line| line.starts_with(wanted)), "{wanted}: {told:#?}");
        assert_eq!(status, Some(1));
        assert!(told.len() <= 4, "{wanted}: {told:#?}");
    }
}

#[test]
fn dumps_of_two_bugs_are_told_apart_and_those_of_one_are_not() {
    let folder = folder();
    let page = |left: &str, right: &str| text(&run(folder.path(), &["diff", &dump(left), &dump(right)]).stdout);
    let differ = page("null-dereference", "user-pointer");
    assert!(differ.starts_with("different bugs: A NULL, "), "{differ}");
    assert!(differ.contains("new in B\n  finding     USER-PTR"), "{differ}");
    let same = page("leak", "leak");
    assert!(same.starts_with("the same bug: "), "{same}");
    assert!(!same.contains("new in B") && !same.contains("only in A"), "{same}");
    let one = page("leak", "clean");
    assert!(one.contains("only in A"), "{one}");
}

#[test]
fn pages_keep_to_the_width_and_the_number_of_rows() {
    let folder = folder();
    for width in [40, 80, 200] {
        let mut command = kwab(folder.path());
        command.env("COLUMNS", width.to_string()).args(["diff", &dump("null-dereference"), &dump("leak"), "-n", "2"]);
        let page = text(&command.output().expect("it runs").stdout);
        let wide = page.lines().filter(|line| line.chars().count() > width);
        assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new());
        let calls =
            page.lines().filter(|line| line.starts_with("  system call ") && !line.contains("more (-n")).count();
        assert!(calls <= 4, "{page}");
    }
}

#[test]
fn directories_are_compared_by_their_bugs() {
    let folder = folder();
    for (place, names) in [("old", &["leak", "null-dereference"]), ("new", &["leak", "user-pointer"])] {
        std::fs::create_dir(folder.path().join(place)).expect("made");
        for name in names {
            std::fs::copy(dump(name), folder.path().join(place).join(format!("{name}.kwab"))).expect("copied");
        }
    }
    let output = run(folder.path(), &["diff", "old", "new", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let told = found["bugs"].as_array().expect("bugs").iter();
    let told: Vec<_> = told
        .map(|bug| {
            format!("{} {} {} {}", bug["fate"], bug["finding"]["rule"], bug["left"], bug["right"]).replace('"', "")
        })
        .collect();
    assert_eq!(told, ["new USER-PTR 0 1", "changed OOM 1 1", "gone NULL 1 0"]);
    let page = text(&run(folder.path(), &["diff", "old", "new"]).stdout);
    assert!(page.contains("only in B") && page.contains("new/user-pointer.kwab"), "{page}");
    assert_eq!(run(folder.path(), &["diff", "new", "new"]).status.code(), Some(0));
    let mixed = run(folder.path(), &["diff", "old", "new/leak.kwab"]);
    assert_eq!(mixed.status.code(), Some(2));
    assert!(text(&mixed.stderr).contains("old is a directory"), "{}", text(&mixed.stderr));
}

/// Two boots of our kernel with KASLR that died of one planted bug, with registers that its faulting code used.
#[test]
fn one_page_fault_at_two_slides_differs_in_nothing() {
    let folder = folder();
    let at = |name: &str| format!("{}/../testing/data/kaslr/{name}.kwab", env!("CARGO_MANIFEST_DIR"));
    let output = run(folder.path(), &["diff", &at("fault-first"), &at("fault-second"), "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let parts = found["parts"].as_array().expect("parts");
    let changes = parts.iter().flat_map(|part| part["changes"].as_array().expect("changes"));
    assert_eq!(changes.collect::<Vec<_>>(), Vec::<&Value>::new());
    assert_eq!((output.status.code(), &found["same_bug"]), (Some(0), &true.into()));
    let noise = |name: &str| parts.iter().find(|part| part["name"] == name).expect("compared")["noise"].as_u64();
    assert!(noise("register") >= Some(5) && noise("backtrace") >= Some(1), "{found}");
}

/// Two boots of our kernel with KASLR that died alike, as `kwab follow` kept them.
#[test]
fn two_slides_of_one_kernel_differ_in_nothing() {
    let folder = folder();
    let at = |name: &str| format!("{}/../testing/data/kaslr/{name}.kwab", env!("CARGO_MANIFEST_DIR"));
    let inspected = |name: &str| -> Value {
        serde_json::from_slice(&run(folder.path(), &["inspect", &at(name), "--json"]).stdout).expect("JSON")
    };
    let (first, second) = (inspected("first"), inspected("second"));
    let slide = |report: &Value| {
        let meta = report["meta"].as_array().expect("facts").iter();
        meta.clone().find(|fact| fact["name"] == "load offset").expect("a slide")["value"].clone()
    };
    assert_ne!(slide(&first), slide(&second));
    let register = |report: &Value, name: &str| {
        let rows = report["registers"][0]["registers"].as_array().expect("registers").iter();
        rows.clone().find(|row| row["name"] == name).expect("a register")["value"].clone()
    };
    for moved in ["rip", "rsp", "rbp", "r15", "gs_base"] {
        assert_ne!(register(&first, moved), register(&second, moved), "{moved}");
    }
    let output = run(folder.path(), &["diff", &at("first"), &at("second"), "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let changes = found["parts"].as_array().expect("parts").iter().flat_map(|part| part["changes"].as_array().unwrap());
    assert_eq!(changes.collect::<Vec<_>>(), Vec::<&Value>::new());
    assert_eq!((output.status.code(), &found["same_bug"]), (Some(0), &true.into()));
    let noise = |name: &str| {
        let part = found["parts"].as_array().unwrap().iter().find(|part| part["name"] == name);
        part.expect("compared")["noise"].as_u64().expect("a count")
    };
    assert!(noise("register") >= 8, "{found}");
}
