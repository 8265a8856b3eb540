//! What an operation on the state leaves to the coordinator: effects, a sentence, a menu.

use super::{Effect, MenuAction, Overlay};
use crate::load::Job;
use crate::theme::Tone;

/// The result of an operation that knows neither the status line nor the overlay.
#[derive(Default)]
pub(super) struct Outcome {
    /// Work for the caller of `update`.
    pub(super) effects: Vec<Effect>,
    /// A sentence for the status line.
    pub(super) said: Option<(Tone, String)>,
    /// An overlay to open.
    pub(super) overlay: Option<Overlay>,
}

impl Outcome {
    /// Only a sentence.
    pub(super) fn say(tone: Tone, text: impl Into<String>) -> Self {
        Self { said: Some((tone, text.into())), ..Self::default() }
    }

    /// Only jobs for the threads.
    pub(super) fn jobs(jobs: impl IntoIterator<Item = Job>) -> Self {
        Self { effects: jobs.into_iter().map(Effect::Job).collect(), ..Self::default() }
    }

    /// Only a menu, its first choice selected.
    pub(super) fn menu(title: &str, items: Vec<(String, MenuAction)>) -> Self {
        Self { overlay: Some(Overlay::Menu { title: title.to_string(), items, selected: 0 }), ..Self::default() }
    }

    /// The same with one effect more.
    pub(super) fn with(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }
}
