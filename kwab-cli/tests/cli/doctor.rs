//! `kwab doctor` on a machine that has everything and on one that has nothing; completions that know words of dumps.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::{folder, kwab, stdout_of, text};
use serde_json::Value;

/// What doctor says in `at` with these programs in its PATH.
fn asked(at: &Path, programs: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, Value) {
    let bin = at.join("bin");
    std::fs::create_dir_all(&bin).expect("made");
    for name in programs {
        std::fs::write(bin.join(name), "").expect("written");
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).expect("set");
    }
    let mut command = kwab(at);
    command.args(["doctor", "--json"]).env("PATH", &bin).env_remove("BROWSER").env_remove("XDG_CACHE_HOME");
    command
        .env_remove("LC_ALL")
        .env_remove("LC_CTYPE")
        .env_remove("LANG")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("DEBUGINFOD_URLS");
    let output = command.env("HOME", at).envs(environment.iter().copied()).output().expect("runs");
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn state<'v>(health: &'v Value, name: &str) -> &'v Value {
    health["checks"].as_array().expect("a list").iter().find(|check| check["name"] == name).expect(name)
}

#[test]
fn what_is_lacking_is_named_with_the_command_that_mends_it() {
    let folder = folder();
    let (status, bare) = asked(folder.path(), &[], &[]);
    assert_eq!(status, Some(1));
    for name in ["qemu", "browser", "debuginfod", "box drawing", "symbols"] {
        let check = state(&bare, name);
        assert_eq!(check["state"], "lacking", "{check}");
        assert!(check["mend"].as_str().is_some_and(|mend| !mend.is_empty()) && check["purpose"] != "", "{check}");
    }
    let programs = ["qemu-system-x86_64", "firefox", "debuginfod-find"];
    let environment = [("LANG", "C.UTF-8"), ("DEBUGINFOD_URLS", "http://localhost:1")];
    let (_, full) = asked(folder.path(), &programs, &environment);
    for name in ["qemu", "browser", "debuginfod", "box drawing", "cache", "temporary files"] {
        assert_eq!(state(&full, name)["state"], "good", "{}", state(&full, name));
    }
    for name in ["colours", "width", "index"] {
        assert_eq!(state(&full, name)["state"], "unused", "{}", state(&full, name));
    }
}

#[test]
fn an_index_that_cannot_be_read_is_lacking_and_a_cache_is_not_made() {
    let folder = folder();
    std::fs::write(folder.path().join("not.db"), "not an index").expect("written");
    let output = kwab(folder.path()).args(["doctor", "--index", "not.db"]).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let page = text(&output.stdout);
    assert!(page.contains("lacks  index") && page.contains("not an index of kwab"), "{page}");
    asked(folder.path(), &[], &[]);
    assert!(!folder.path().join(".cache").exists(), "doctor changes nothing");
}

#[test]
fn completions_know_kinds_of_sections_and_rules_and_take_other_words() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout_of(folder.path(), &["completions", shell]);
        for word in ["page-table", "memory-map", "structure", "VM-COUNT-LOW"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn fish_offers_kinds_of_sections_as_the_operand_of_cat_and_commands_as_that_of_schema() {
    let script = stdout_of(folder().path(), &["completions", "fish"]);
    for (command, word) in [("cat", "page-table"), ("schema", "audit-vm"), ("completions", "zsh")] {
        let head = format!("complete -c kwab -n \"__fish_kwab_using_subcommand {command}\" -a \"");
        let line = script.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or_default();
        assert!(line.trim_end_matches('"').split(' ').any(|one| one == word), "{command}: {line}");
    }
}

/// What bash offers for the last of these words.
fn offered(script: &Path, words: &[&str]) -> Vec<String> {
    let ask = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
               call=$(complete -p kwab); call=${call#*-F }; ${call%% *} kwab \"${COMP_WORDS[COMP_CWORD]}\" \
               \"${COMP_WORDS[COMP_CWORD - 1]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output =
        std::process::Command::new("bash").args(["--norc", "-c", ask, "bash"]).arg(script).args(words).output();
    let output = output.expect("bash is where cargo is");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_offers_sections_rules_and_forms_where_they_are_asked_for() {
    let folder = folder();
    let script = folder.path().join("kwab.bash");
    std::fs::write(&script, stdout_of(folder.path(), &["completions", "bash"])).expect("written");
    let offers: [(&[&str], &[&str]); 5] = [
        (&["kwab", "inspect", "d.kwab", "--section", ""], &["triage", "bt", "completeness"]),
        (&["kwab", "inspect", "d.kwab", "--section", "comp"], &["completeness"]),
        (&["kwab", "export", "d.kwab", "--section", ""], &["identity", "page-table"]),
        (&["kwab", "audit-vm", "d.kwab", "--rule", "VM-COUNT"], &["VM-COUNT-LOW"]),
        (&["kwab", "export", "d.kwab", "--to", "mini"], &["minidump"]),
    ];
    for (words, wanted) in offers {
        let found = offered(&script, words);
        assert!(wanted.iter().all(|word| found.iter().any(|one| one == word)), "{words:?}: {found:?}");
    }
    assert_eq!(offered(&script, &["kwab", "export", "d.kwab", "--to", "mini"]), ["minidump"]);
}
