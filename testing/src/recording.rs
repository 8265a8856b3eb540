//! Records a session of the real program: keys typed into a shell in tmux, and the screen after each, as an asciicast
//! and as an animated picture.
//!
//! The times are those of the script, not of the machine, so that the same program gives the same recording. An
//! asciicast (version 2) is a line of JSON for the terminal and one for each piece of output; `asciinema play` shows
//! it. The picture is SVG whose screens are switched by SMIL animation, which browsers play in an image too.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use crate::screens::{self, Terminal};

/// What is typed, and how long the screen after it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Keys, as tmux names them; one with a blank is typed as text.
    pub keys: &'static [&'static str],
    /// How long, in seconds.
    pub seconds: f64,
}

/// The screens of a session, each with the second at which it begins, and when the last one ends.
#[derive(Debug, Default)]
pub struct Recording {
    size: (u16, u16),
    screens: Vec<(f64, String)>,
    end: f64,
}

impl Recording {
    /// Runs the shell's command line in `folder` and types the steps.
    ///
    /// # Errors
    /// When tmux cannot be used, or the screen stays empty.
    pub fn of(command: &str, steps: &[Scene], size: (u16, u16), folder: &Path) -> Result<Self> {
        let terminal = Terminal::start(command, size, folder)?;
        let mut recording = Self { size, ..Self::default() };
        recording.add(terminal.finished()?, 1.0);
        for step in steps {
            let mut screen = String::new();
            for key in step.keys {
                terminal.press(key)?;
                screen = terminal.finished()?;
            }
            recording.add(screen, step.seconds);
        }
        Ok(recording)
    }

    fn add(&mut self, screen: String, seconds: f64) {
        self.screens.push((self.end, screen));
        self.end += seconds;
    }

    /// The asciicast: each screen is drawn from an empty one.
    #[must_use]
    pub fn cast(&self) -> String {
        let mut text = json!({ "version": 2, "width": self.size.0, "height": self.size.1 }).to_string() + "\n";
        for (at, screen) in &self.screens {
            let drawn = format!("\x1b[0m\x1b[H\x1b[2J{}", screen.trim_end_matches('\n').replace('\n', "\r\n"));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", json!([at, "o", drawn]));
        }
        let _ = writeln!(text, "{}", json!([self.end, "o", "\u{1b}[0m"]));
        text
    }

    /// The animated picture.
    #[must_use]
    pub fn svg(&self) -> String {
        let frames = self.screens.iter().enumerate().map(|(at, (from, screen))| {
            let to = self.screens.get(at + 1).map_or(self.end, |next| next.0);
            // What does not play animations shows the last screen.
            let resting = if at + 1 == self.screens.len() { "visible" } else { "hidden" };
            let values = if at == 0 { "visible;hidden" } else { "hidden;visible;hidden" };
            let times = if at == 0 {
                format!("0;{:.4}", to / self.end)
            } else {
                format!("0;{:.4};{:.4}", from / self.end, to / self.end)
            };
            format!(
                "<g visibility=\"{resting}\">\n<animate attributeName=\"visibility\" values=\"{values}\" \
                 keyTimes=\"{times}\" dur=\"{:.1}s\" calcMode=\"discrete\" repeatCount=\"indefinite\"/>\n{}</g>\n",
                self.end,
                screens::cells(screen, self.size)
            )
        });
        screens::framed(&frames.collect::<String>(), self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_shows_each_screen_for_its_time() {
        let mut recording = Recording { size: (10, 2), ..Recording::default() };
        recording.add("one\n\n".into(), 1.0);
        recording.add("two\x1b[1mx\n".into(), 3.0);
        let cast = recording.cast();
        let lines: Vec<serde_json::Value> = cast.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], json!({ "version": 2, "width": 10, "height": 2 }));
        assert_eq!(lines[2], json!([1.0, "o", "\u{1b}[0m\u{1b}[H\u{1b}[2Jtwo\u{1b}[1mx"]));
        assert_eq!((lines.len(), &lines[3][0]), (4, &json!(4.0)));
        let svg = recording.svg();
        assert!(svg.contains("keyTimes=\"0;0.2500\"") && svg.contains("keyTimes=\"0;0.2500;1.0000\""), "{svg}");
        assert!(svg.contains(">one</text>") && svg.contains(">two</text>") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
