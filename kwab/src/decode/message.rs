//! Tidies messages: what Rust prints of a source location for debugging becomes `file:line:column`.

use std::borrow::Cow;

/// The message with Rust's `Some(Location { file: "a.rs", line: 3, col: 5 })` written as `a.rs:3:5`.
pub fn without_debug_location(message: &str) -> Cow<'_, str> {
    let read = |from: usize| -> Option<(usize, String)> {
        let rest = &message[from..];
        let body = rest.strip_prefix("Some(").unwrap_or(rest).strip_prefix("Location {")?;
        let (body, tail) = body.split_once('}')?;
        let value = |name: &str| {
            let text = body.split(name).nth(1)?.split_once(": ")?.1.trim_start_matches('"');
            Some(text.split(['"', ',', ' ']).next().unwrap_or_default())
        };
        let location = format!("{}:{}:{}", value("file")?, value(", line")?, value(", col")?);
        let tail = if rest.starts_with("Some(") { tail.strip_prefix(')')? } else { tail };
        Some((message.len() - tail.len(), location))
    };
    let at = message.find("Some(Location {").or_else(|| message.find("Location {"));
    match at.and_then(|at| Some((at, read(at)?))) {
        Some((at, (end, location))) => format!("{}{location}{}", &message[..at], &message[end..]).into(),
        None => message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_printed_for_debugging_becomes_file_line_and_column() {
        let message = "panicked at Some(Location { file: \"mm/fault.rs\", line: 31, col: 9 }): no page";
        assert_eq!(without_debug_location(message), "panicked at mm/fault.rs:31:9: no page");
        assert_eq!(without_debug_location("at Location { file: \"a.rs\", line: 3, column: 5 }"), "at a.rs:3:5");
        for other in ["Some(Location {", "Location { file: 7 }", "Some(Location { file: \"a\", line: 1, col: 2 }", ""] {
            assert_eq!(without_debug_location(other), other);
        }
    }
}
