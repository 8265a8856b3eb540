//! Which functions of the kernel the first difference can come from.
//!
//! A call that was answered otherwise is made of its handler and what that calls; an error, in whichever run, of those
//! that make it. When the program itself did something else, the calls before it that write to its memory come first.

use std::sync::Arc;

use linux_abi::{Errno, syscalls};

use super::report::{Divergence, OracleReport};
use crate::analysis;
use crate::symbols::{Image, LoadedImage, Symbols};

/// Functions that are named.
const MOST: usize = 16;
/// Calls that may have misled the program which are looked at.
const SUSPECTS: usize = 3;

impl OracleReport {
    /// Names the functions behind the first difference, from the image of the kernel that is judged.
    pub fn name_functions(&mut self, kernel: Arc<Image>) {
        let Some(first) = &self.first else { return };
        let mut symbols = Symbols::new();
        symbols.add(LoadedImage::new(kernel, 0, None));
        let mut found = Vec::new();
        let mut take = |call: &str, errno: Option<Errno>| {
            let Some(call) = syscalls::by_name(call) else { return };
            for function in analysis::functions_behind(&symbols, i64::from(call.nr), errno) {
                if !found.contains(&function) {
                    found.push(function);
                }
            }
        };
        if first.kind.is_of_answer() || self.suspects.is_empty() {
            take(&first.name, error(first));
        }
        for row in self.suspects.iter().take(SUSPECTS) {
            take(row.split('(').next().unwrap_or_default(), None);
        }
        found.truncate(MOST);
        self.behind = found;
    }
}

/// The error that one of the runs was answered.
fn error(first: &Divergence) -> Option<Errno> {
    let answered = |row: &Option<String>| {
        let (_, answer) = row.as_deref()?.rsplit_once(" = -1 ")?;
        Errno::from_name(answer.split(' ').next()?)
    };
    answered(&first.bad).or_else(|| answered(&first.good))
}
