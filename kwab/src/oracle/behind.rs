//! Which functions of the kernel the first difference can come from.
//!
//! A call that was answered otherwise is made of its handler and what that calls; an error, in whichever run, of those
//! that make it. When the program itself did something else, the calls before it that write to its memory come first,
//! and the signals that it handled. Functions that had a part in calls that were answered alike come later.

use std::sync::Arc;

use linux_abi::{Errno, syscalls};

use super::report::{Divergence, OracleReport};
use crate::analysis::Spectrum;
use crate::symbols::{Image, LoadedImage, Symbols};

/// Functions that are named.
const MOST: usize = 16;
/// Calls that may have misled the program which are looked at.
const SUSPECTS: usize = 3;
/// Calls that were answered alike whose functions are looked at.
const RIGHT: usize = 48;

impl OracleReport {
    /// Names the functions behind the first difference, from the image of the kernel that is judged.
    pub fn name_functions(&mut self, kernel: Arc<Image>) {
        let Some(first) = &self.first else { return };
        let mut symbols = Symbols::new();
        symbols.add(LoadedImage::new(kernel, 0, None));
        let misled: Vec<&str> = self.suspects.iter().take(SUSPECTS).map(|row| called(row)).collect();
        let right = self.alike.iter().filter(|name| **name != first.name && !misled.contains(&&***name));
        let right = right.take(RIGHT).filter_map(|name| Some(i64::from(syscalls::by_name(name)?.nr)));
        let mut spectrum = Spectrum::of(&symbols, right);
        let mut found: Vec<String> = Vec::new();
        let mut take = |name: &str, errno: Option<Errno>| {
            let functions = match syscalls::by_name(name) {
                Some(call) => spectrum.behind_call(i64::from(call.nr), errno),
                None if name.starts_with("SIG") => spectrum.behind_signal(),
                None => Vec::new(),
            };
            for function in functions {
                if !found.contains(&function) {
                    found.push(function);
                }
            }
        };
        if first.kind.is_of_answer() || self.suspects.is_empty() {
            take(&first.name, error(first));
        }
        misled.iter().for_each(|name| take(name, None));
        found.truncate(MOST);
        self.behind = found;
    }
}

/// What a row calls; of a signal its name.
fn called(row: &str) -> &str {
    row.split(['(', ' ']).next().unwrap_or_default()
}

/// The error that one of the runs was answered.
fn error(first: &Divergence) -> Option<Errno> {
    let answered = |row: &Option<String>| {
        let (_, answer) = row.as_deref()?.rsplit_once(" = -1 ")?;
        Errno::from_name(answer.split(' ').next()?)
    };
    answered(&first.bad).or_else(|| answered(&first.good))
}
