//! Which events of a timeline caused which: the partners of an event, and the words that say what they have to do with
//! each other.

use std::collections::HashMap;

use kwab::causes::Causes;
use kwab::model::index::EventIndex;

/// Causes and effects by the numbers that events have in their index.
pub struct Partners {
    causes: Causes,
    moments: HashMap<u32, u32>,
    events: HashMap<u32, u32>,
}

/// The other end of a flow.
pub(super) struct Partner {
    /// Its number in the index.
    pub(super) event: usize,
    /// What the two have to do with each other, as the event at which one stands has it.
    pub(super) words: String,
}

impl Partners {
    /// Finds the events of the index that are ends of flows.
    #[must_use]
    pub fn new(causes: Causes, index: &EventIndex) -> Self {
        let ends = causes.flows.iter().flat_map(|flow| [flow.from, flow.to]);
        let moments = ends.filter_map(|number| {
            let moment = causes.moments.get(number as usize)?;
            Some(((moment.section, moment.offset), number))
        });
        let by_record: HashMap<(u32, u32), u32> = moments.collect();
        let (mut moments, mut events) = (HashMap::new(), HashMap::new());
        for (number, event) in (0..).zip(&index.events) {
            if let Some(moment) = by_record.get(&(event.section, event.offset)) {
                moments.insert(number, *moment);
                events.insert(*moment, number);
            }
        }
        Self { causes, moments, events }
    }

    /// What caused an event, the most telling first.
    pub(super) fn causes(&self, event: usize) -> Vec<Partner> {
        let flows = self.moment(event).into_iter().flat_map(|moment| self.causes.causes_of(moment));
        flows.filter_map(|(_, flow)| self.partner(flow.from, self.causes.cause_words(flow))).collect()
    }

    /// What an event caused, in the order of its effects.
    pub(super) fn effects(&self, event: usize) -> Vec<Partner> {
        let flows = self.moment(event).into_iter().flat_map(|moment| self.causes.effects_of(moment));
        flows.filter_map(|(_, flow)| self.partner(flow.to, self.causes.effect_words(flow))).collect()
    }

    fn moment(&self, event: usize) -> Option<u32> {
        self.moments.get(&u32::try_from(event).ok()?).copied()
    }

    fn partner(&self, moment: u32, words: String) -> Option<Partner> {
        Some(Partner { event: *self.events.get(&moment)? as usize, words })
    }
}
