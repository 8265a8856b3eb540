//! What happens on a console, a line or two for each event.

use std::path::Path;

use kwab::follow::{CrashFound, FollowEvent};
use kwab::plain;
use kwab::report::command;

use super::{bytes, count, grouped};

/// The lines about an event; of those that tell nothing to a person, none.
pub(crate) fn line(event: &FollowEvent) -> String {
    match event {
        FollowEvent::Begins { line, path } => {
            format!("line {}: a crash begins{}\n", grouped(*line), path.as_deref().map_or(String::new(), into))
        }
        FollowEvent::Crash(found) => {
            let next = format!("next: kwab triage {}", plain::line(&named(&found.path)));
            format!("{}\n{next}\n", crash("crash", found))
        }
        FollowEvent::Grew(found) => format!("{}\n", crash("more of it", found)),
        FollowEvent::Withdrawn => "it was no crash: a program printed it\n".to_string(),
        FollowEvent::Silent { seconds, line, path } => {
            let after = count(*line, "line", "lines");
            let kept = path.as_deref().map_or(String::new(), into);
            format!("silent for {seconds} s after {after}; a hang, or the end{kept}\n")
        }
        FollowEvent::Resumed => "the console speaks again\n".to_string(),
        FollowEvent::Skipped { files } => {
            format!("{} rotated away unread\n", count(*files, "file was", "files were"))
        }
        FollowEvent::Orphaned => "the command has ended; a process that it left still holds its output\n".to_string(),
        FollowEvent::Ended { lines, bytes: length } => {
            format!("ended after {}, {}\n", count(*lines, "line", "lines"), bytes(*length))
        }
    }
}

fn crash(what: &str, found: &CrashFound) -> String {
    let CrashFound { kind, subject, cause, signature, .. } = found;
    let cut = if found.missing.is_empty() { "" } else { "  partial" };
    plain::line(&format!("{what}: {kind}  {subject}  {cause}  {signature}{}{cut}", into(&found.path))).into_owned()
}

fn into(path: &Path) -> String {
    format!("  {}", plain::line(&path.display().to_string()))
}

/// The dump as an argument.
fn named(path: &Path) -> String {
    command::arguments(path, 1)
}
