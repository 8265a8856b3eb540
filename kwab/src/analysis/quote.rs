//! Texts of records as conclusions quote them, and what the state of a listed task means.

use kwab_format::record::{Task, TaskState};

/// Whether a task sleeps until its child executes or ends. Kernels of the clone family have three names for that.
pub(super) fn waits_in_vfork(task: &Task<'_>) -> bool {
    let asleep = matches!(task.state, Some(TaskState::BLOCKED | TaskState::SLEEPING));
    let reason = text(task.wait_reason);
    reason.contains("vfork") || (asleep && matches!(reason.as_str(), "clone" | "clone3"))
}

/// Whether a message in lower case has these words, and not only as a part of longer ones or of a name: `serror` is not
/// in `nfs_fserror`.
pub(super) fn says(message: &str, words: &str) -> bool {
    let in_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = message.as_bytes();
    message.match_indices(words).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        !in_name(before) && !in_name(bytes.get(at + words.len()))
    })
}

/// Bytes of a text that conclusions quote: one name of a megabyte may be quoted a thousand times.
const QUOTED: usize = 4096;

/// Bytes of a record as text, at most as many as a conclusion quotes (4096).
#[must_use]
pub fn text(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let Some((quoted, _)) = bytes.split_at_checked(QUOTED).filter(|(_, rest)| !rest.is_empty()) else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    format!("{}…", String::from_utf8_lossy(quoted))
}

/// A line of a kernel's log without the level that it begins with: `<3>`.
pub(super) fn without_level(line: &str) -> &str {
    let levelled = line.split_once('>').filter(|(level, _)| level.len() == 2 && level.starts_with('<'));
    levelled.map_or(line, |(_, line)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_level_is_taken_from_the_front_of_a_line() {
        for (line, rest) in [("<3>[ 1.0] x", "[ 1.0] x"), ("<13>x", "<13>x"), ("x <3>y", "x <3>y"), ("", "")] {
            assert_eq!(without_level(line), rest);
        }
    }

    #[test]
    fn words_are_found_whole_and_not_in_names() {
        assert!(says("serror interrupt on cpu 2", "serror") && says("internal error: serror", "serror"));
        assert!(!says("null pointer dereference in nfs_fserror", "serror"));
        assert!(says("capability abort at 0x18", "capability") && !says("in get_capability", "capability"));
    }
}
