//! Where the source of a crash is: file and line, from triage, a backtrace with symbols, or the kernel's own words.

use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::is_of_library;
use crate::report::inspect::{FrameRow, Report};

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Location {
    /// Path of the file, with `/`; relative to the directory of the run when it lies in that.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Location {
    /// Reads `file:line` or `file:line:column`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u32>().ok().filter(|line| *line > 0);
        let (rest, last) = text.trim().rsplit_once(':')?;
        let last = number(last)?;
        let (file, line) = match rest.rsplit_once(':').and_then(|(file, line)| Some((file, number(line)?))) {
            Some(with_column) => with_column,
            None => (rest, last),
        };
        let is_file = !file.is_empty() && !file.contains(['\n', '\r', '\0']);
        is_file.then(|| Self { file: file.to_string(), line })
    }

    /// Where to look first in an inspected dump: what triage blames, the innermost frame that is not machinery, the
    /// place that the kernel printed.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        let blamed = report.hypotheses.iter().find_map(|found| {
            let function = found.function.as_ref()?;
            Some(Self { file: function.file.clone()?, line: function.line? })
        });
        let frames = || {
            let own = report.backtraces.first().map(|trace| trace.frames.as_slice()).unwrap_or_default();
            let walked = report.stacks.first().map(|stack| stack.frames.as_slice()).unwrap_or_default();
            walked.iter().chain(own).filter(|frame| !frame.machinery).find_map(of_frame)
        };
        let printed = || report.cause.as_ref()?.place.as_deref().and_then(Self::parse);
        blamed.filter(Self::is_own).or_else(frames).or_else(|| printed().filter(Self::is_own))
    }

    /// Whether it is not in the standard library or a downloaded package, of which a project has no file.
    fn is_own(&self) -> bool {
        !is_of_library(&self.file)
    }

    /// The same, relative to `folder` when the file lies in it.
    #[must_use]
    pub fn within(self, folder: &Path) -> Self {
        let relative = Path::new(&self.file).strip_prefix(folder).ok().and_then(Path::to_str).map(str::to_string);
        Self { file: relative.unwrap_or(self.file), line: self.line }
    }
}

/// The innermost location of a frame.
fn of_frame(frame: &FrameRow) -> Option<Location> {
    let inlined = frame.inlined.iter().rev().filter(|one| !one.machinery);
    let mut places = inlined.map(|one| one.place.as_deref()).chain([frame.place.as_deref()]);
    places.find_map(|place| Location::parse(place?).filter(Location::is_own))
}
