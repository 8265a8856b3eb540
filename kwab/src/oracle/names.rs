//! Which process and which descriptor of one run is which of the other.

use std::collections::HashMap;

use super::operand::Same;

/// Numbers of one run beside those of the other: each stands for one of the other side.
#[derive(Debug, Default, Clone)]
pub(super) struct Names {
    there: HashMap<i64, i64>,
    back: HashMap<i64, i64>,
}

impl Names {
    /// Whether two numbers may stand for each other; new ones do from now on.
    pub(super) fn same(&mut self, good: i64, bad: i64) -> Same {
        match (self.there.get(&good), self.back.get(&bad)) {
            (None, None) => {
                self.set(good, bad);
                Same::Yes
            }
            (known, back) => (known == Some(&bad) && back == Some(&good)).into(),
        }
    }

    /// Makes two numbers stand for each other, whatever they stood for.
    pub(super) fn set(&mut self, good: i64, bad: i64) {
        if let Some(old) = self.there.insert(good, bad) {
            self.back.remove(&old);
        }
        if let Some(old) = self.back.insert(bad, good)
            && old != good
        {
            self.there.remove(&old);
        }
    }
}
