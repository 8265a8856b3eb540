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
use crate::units;

/// Images that are tried for one kernel or module.
pub(super) const MOST_CANDIDATES: usize = 8;

/// Addresses of one log that are compared with an image.
const MOST_ADDRESSES: usize = 128;
/// Load biases that are tried besides the one that the log says and none.
const MOST_BIASES: usize = 4;
/// Callers behind calls that prove an image.
const PROOF: usize = 3;

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
    /// How many callers are behind calls, of those in code; `None` where nothing can be compared.
    callers: Option<(usize, usize)>,
}

/// From the address that a log shows of a caller to the one that its call returns to: some kernels print the address of
/// the call, or the last byte of it.
const SHIFTS: [u64; 5] = [0, 1, 4, 5, 8];

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
            problems.extend(fit.doubt(&image));
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
    for (bias, _) in votes.into_iter().take(MOST_BIASES) {
        if !all.contains(&bias) {
            all.push(bias);
        }
    }
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
        let shifted: Vec<u64> =
            SHIFTS.iter().flat_map(|shift| returns.iter().map(|link| link.wrapping_add(*shift))).collect();
        let mut fit = Fit { in_code: exact + returns.len(), all: self.exact.len() + self.returns.len(), callers: None };
        // One of another place needs no look at its code.
        if fit.is_in_code() && !returns.is_empty() {
            let behind = |found: &[bool]| found.iter().filter(|behind| **behind).count();
            let best = |found: Vec<bool>| found.chunks(returns.len()).map(behind).max();
            fit.callers = image.behind_calls(&shifted).and_then(best).zip(Some(returns.len()));
        }
        fit
    }
}

impl Fit {
    /// Three quarters of the addresses lie in code, and three quarters of the callers behind calls.
    fn is_enough(&self) -> bool {
        self.is_in_code() && self.callers.is_none_or(|(behind, of)| behind * 4 >= of * 3)
    }

    fn is_in_code(&self) -> bool {
        self.in_code * 4 >= self.all * 3
    }

    fn merit(&self) -> (usize, usize) {
        (self.in_code, self.callers.map_or(0, |(behind, _)| behind))
    }

    /// That the addresses are too few to prove the image, or of an architecture whose calls are not known here.
    fn doubt(&self, image: &Image) -> Option<String> {
        let behind = self.callers.map_or(0, |(behind, _)| behind);
        let proof = || {
            format!("{} behind calls of it, {PROOF} would be a proof", units::count(behind as u64, "caller", "callers"))
        };
        (behind < PROOF).then(|| format!("{} may not be the image of this log: {}", image.name(), proof()))
    }

    fn in_words(&self) -> String {
        match self.callers {
            Some((behind, of)) => {
                format!("{behind} of {of} callers are behind a call of it")
            }
            _ => format!("{} of {} addresses lie in its code", self.in_code, self.all),
        }
    }
}
