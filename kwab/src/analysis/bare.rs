//! Finds the kernel's image for a log of bare addresses, by a kernel that prints no build-id.
//!
//! Nothing in such a log names its image, so the addresses have to prove it: they lie in its code, and those of callers
//! behind calls. A file that the user names counts when they do; otherwise it is said how many did not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kwab_format::record::Frame;

use super::death::Postmortem;
use super::frame::printed_function;
use crate::model::{Case, Located};
use crate::symbols::{Finder, Image, IndexCache, LoadedImage};

/// Images that are tried for one kernel or module.
pub(super) const MOST_CANDIDATES: usize = 8;

/// Addresses of one log that are compared with an image.
const MOST_ADDRESSES: usize = 512;
/// Load biases that are tried.
const MOST_BIASES: usize = 16;

/// The addresses of a log that are of its kernel's code.
struct Addresses {
    /// Of instructions that ran.
    exact: BTreeSet<u64>,
    /// To which calls return.
    returns: BTreeSet<u64>,
}

/// How many of the addresses fit an image at one load bias.
struct Fit {
    in_code: usize,
    all: usize,
    /// Behind calls, of the callers in code; `None` where nothing can be compared.
    behind_calls: Option<(usize, usize)>,
}

/// The image below what the user named that the addresses fit, where they fit it; `problems` says why others do not.
pub(super) fn find(
    case: &Case<'_>,
    finder: &mut Finder,
    cache: &IndexCache,
    problems: &mut Vec<String>,
) -> Option<LoadedImage> {
    let frames = || case.frames.iter().filter(|frame| frame.addr.is_some_and(|addr| addr != 0));
    let nameless = frames().any(|frame| printed_function(frame).is_none());
    let death = Postmortem::of(case);
    let addresses = Addresses::of(case, &death);
    let of_program = !death.in_kernel && death.kind.is_some();
    if of_program || addresses.is_empty() || !(nameless || case.frames.is_empty()) {
        return None;
    }
    let mut refused = Vec::new();
    for bytes in finder.by_module(None).into_iter().take(MOST_CANDIDATES) {
        let image = match Image::from_bytes(bytes, cache) {
            Ok(image) => image,
            Err(error) => {
                refused.push(error.to_string());
                continue;
            }
        };
        let fits = biases(case, &image).into_iter().map(|bias| (bias, addresses.fit(&image, bias)));
        let Some((bias, fit)) = fits.max_by_key(|(_, fit)| fit.merit()) else { continue };
        if fit.is_enough() {
            problems.extend(image.remark());
            return Some(LoadedImage::new(Arc::new(image), bias, None));
        }
        refused.push(format!("{} is not the image of this log: {}", image.name(), fit.in_words()));
    }
    problems.extend(refused);
    None
}

/// Where the image may have been loaded: as the log says, as linked, and as functions that were printed with their
/// addresses say.
fn biases(case: &Case<'_>, image: &Image) -> Vec<u64> {
    let mut all: Vec<u64> = case.identities.first().and_then(|identity| identity.kernel_offset).into_iter().collect();
    all.push(0);
    let told = case.frames.iter().filter_map(|frame| Some((frame, printed_function(frame)?))).take(MOST_ADDRESSES);
    let (frames, functions): (Vec<&Located<Frame<'_>>>, Vec<_>) =
        told.filter(|(frame, _)| frame.addr.is_some_and(|addr| addr != 0)).unzip();
    let mut votes: BTreeMap<u64, usize> = BTreeMap::new();
    for (frame, link) in frames.into_iter().zip(image.find_printed(&functions)) {
        let Some(((link, addr), offset)) = link.zip(frame.addr).zip(frame.symbol_offset) else { continue };
        *votes.entry(addr.wrapping_sub(offset).wrapping_sub(link)).or_default() += 1;
    }
    let mut votes: Vec<(u64, usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all.extend(votes.into_iter().map(|(bias, _)| bias).take(MOST_BIASES));
    all.dedup();
    all
}

impl Addresses {
    /// Those of the backtraces, and where it stopped.
    fn of(case: &Case<'_>, death: &Postmortem) -> Self {
        let mut found = Self { exact: BTreeSet::new(), returns: BTreeSet::new() };
        found.exact.extend(death.ip.filter(|ip| *ip != 0 && case.frames.is_empty()));
        for frame in case.frames.iter().take(MOST_ADDRESSES) {
            let Some(addr) = frame.addr.filter(|addr| *addr != 0) else { continue };
            let set = if frame.index.unwrap_or(0) == 0 { &mut found.exact } else { &mut found.returns };
            set.insert(addr);
        }
        found
    }

    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.returns.is_empty()
    }

    fn fit(&self, image: &Image, bias: u64) -> Fit {
        let link = |addr: &u64| addr.wrapping_sub(bias);
        let exact = self.exact.iter().map(link).filter(|link| image.is_code(*link)).count();
        // Behind the last instruction of its code there may be a function that does not return.
        let returns = self.returns.iter().map(link).filter(|link| image.is_code(link.wrapping_sub(1)));
        let returns: Vec<u64> = returns.collect();
        // Some kernels print the address of the call, or the last byte of it, not the one it returns to.
        let shifts = [0_u64, 1, 4, 5, 8];
        let behind = |shift: u64| {
            let links: Vec<u64> = returns.iter().map(|link| link.wrapping_add(shift)).collect();
            image.behind_calls(&links).map(|found| found.into_iter().filter(|behind| *behind).count())
        };
        let behind_calls = shifts.into_iter().filter_map(behind).max().zip(Some(returns.len()));
        Fit { in_code: exact + returns.len(), all: self.exact.len() + self.returns.len(), behind_calls }
    }
}

impl Fit {
    /// Three quarters of the addresses lie in code, and three quarters of the callers behind calls.
    fn is_enough(&self) -> bool {
        self.in_code * 4 >= self.all * 3 && self.behind_calls.is_none_or(|(behind, of)| behind * 4 >= of * 3)
    }

    fn merit(&self) -> (usize, usize) {
        (self.in_code, self.behind_calls.map_or(0, |(behind, _)| behind))
    }

    fn in_words(&self) -> String {
        match self.behind_calls {
            Some((behind, of)) if self.in_code * 4 >= self.all * 3 => {
                format!("{behind} of {of} callers are behind a call of it")
            }
            _ => format!("{} of {} addresses lie in its code", self.in_code, self.all),
        }
    }
}
