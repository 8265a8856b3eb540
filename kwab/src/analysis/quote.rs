//! Texts of records as conclusions quote them, and what the state of a listed task means.

use kwab_format::record::{Task, TaskState};

/// Whether a task sleeps until its child executes or ends. Kernels of the clone family have three names for that.
pub(super) fn waits_in_vfork(task: &Task<'_>) -> bool {
    let asleep = matches!(task.state, Some(TaskState::BLOCKED | TaskState::SLEEPING));
    let reason = text(task.wait_reason);
    reason.contains("vfork") || (asleep && matches!(reason.as_str(), "clone" | "clone3"))
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
