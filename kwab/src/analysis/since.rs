//! What was changed since a build that worked, and what of it a death has to do with.
//!
//! The functions that differ between the builds are found by [`crate::builds`]. [`since`] puts those first that stand
//! on the stack of the death, then those that decided it, then those that the calls in progress or the calls before
//! are made of. It gives no weight: that a function was changed and ran does not prove that it is wrong.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::context::Context;
use super::evidence::{ListedFunction, Statement};
use super::reach;
use super::trail::Decider;
use super::{answers, blame};
use crate::builds::ChangedFunction;

/// Changed functions that are listed.
const MOST: usize = 12;
/// Calls of the dead process before its end that are looked at.
const RECENT: usize = 24;

/// What differs from a build that worked.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Since {
    /// Build-id of the build that worked.
    pub good: String,
    /// Functions whose change explains what differs, those first that the death has most to do with.
    pub functions: Vec<ListedFunction>,
    /// Changed functions that are not listed.
    pub more: usize,
}

impl Since {
    /// What the functions have in common, in words.
    #[must_use]
    pub fn title(&self) -> String {
        let good: String = self.good.chars().take(8).collect();
        format!("changed since build {good}…, which worked")
    }

    /// The changed functions, each in a line with what the death has to do with it, at most `most`, and how many more
    /// there are; one line that says so when none was changed.
    #[must_use]
    pub fn lines(&self, most: usize) -> Vec<String> {
        if self.functions.is_empty() {
            return vec!["the code of no function".to_owned()];
        }
        let shown = if self.functions.len() > most + 1 { most } else { self.functions.len() };
        let mut lines: Vec<String> = self.functions[..shown].iter().map(ListedFunction::in_words).collect();
        match self.functions.len() - shown + self.more {
            0 => {}
            rest => lines.push(format!("{rest} more: kwab diff shows all")),
        }
        lines
    }

    /// The changed functions as a fact; `None` when none was changed.
    pub(super) fn statement(&self) -> Option<Statement> {
        Statement::listing(self.title(), self.functions.clone())
    }
}

/// What of the changes the death has to do with; `None` when no build is known that worked.
pub(super) fn since(ctx: &Context<'_, '_>, suspects: &[Decider]) -> Option<Since> {
    let changes = ctx.changes?;
    let connections = Connections::of(ctx, suspects);
    let mut ranked: Vec<((usize, usize), &ChangedFunction, Option<String>)> = changes
        .functions
        .iter()
        .filter(|function| function.explains > 0)
        .map(|function| {
            let found = connections.find(function);
            let (rank, connection) = found.map_or((UNCONNECTED, None), |(rank, words)| (rank, Some(words)));
            (rank, function, connection)
        })
        .collect();
    // The sort is stable: between equals the one that was changed more comes first.
    ranked.sort_by_key(|(rank, ..)| *rank);
    let more = ranked.len().saturating_sub(MOST);
    let listed = ranked.into_iter().take(MOST).map(|(_, function, connection)| {
        let connection = connection.map(|words| format!(", {words}")).unwrap_or_default();
        let why = Some(format!("{}{connection}", function.in_words()));
        ListedFunction { name: function.name.clone(), place: function.place(), why }
    });
    Some(Since { good: changes.old.clone(), functions: listed.collect(), more })
}

/// Behind everything that the death has to do with.
const UNCONNECTED: (usize, usize) = (usize::MAX, 0);

/// The functions that the death has to do with: how closely, and how that is said.
struct Connections {
    found: HashMap<String, ((usize, usize), String)>,
    modules: HashMap<String, String>,
}

impl Connections {
    fn of(ctx: &Context<'_, '_>, suspects: &[Decider]) -> Self {
        let mut all = Self { found: HashMap::new(), modules: HashMap::new() };
        let stack = if ctx.is_stack_of_death() { ctx.trace.as_slice() } else { &[] };
        for (at, function) in stack.iter().flat_map(blame::functions).enumerate() {
            let name = blame::owner(function.name);
            all.modules.entry(reach::module(&name).to_owned()).or_insert_with(|| name.clone());
            all.add(name, (0, at), || "on the stack of the death".to_owned());
        }
        for (at, suspect) in suspects.iter().enumerate() {
            all.add(blame::owner(&suspect.name), (1, at), || format!("it {} before the death", suspect.how));
        }
        let mut graph = reach::CallGraph::of(ctx.symbols);
        for (at, call) in answers::calls_of_the_death(ctx, RECENT).into_iter().enumerate() {
            let words = if call.is_in_progress { "the call in progress" } else { "which was called before" };
            let rank = if call.is_in_progress { 2 } else { 3 };
            for (depth, name) in graph.call(call.nr).into_iter().enumerate() {
                all.add(name, (rank, at * DEEPER + depth), || format!("run by {}, {words}", call.name));
            }
        }
        all
    }

    fn add(&mut self, name: String, rank: (usize, usize), words: impl FnOnce() -> String) {
        self.found.entry(name).or_insert_with(|| (rank, words()));
    }

    fn find(&self, function: &ChangedFunction) -> Option<((usize, usize), String)> {
        let own = blame::owner(&function.name);
        if let Some(found) = self.found.get(&own) {
            return Some(found.clone());
        }
        let inside = function.inside.iter().find_map(|name| self.found.get(&blame::owner(name)));
        if let Some(((rank, at), words)) = inside {
            return Some(((*rank, at + 1), words.clone()));
        }
        let beside = self.modules.get(reach::module(&own))?;
        Some(((4, 0), format!("in the module of {beside} on the stack")))
    }
}

/// More than the functions that one call is made of.
const DEEPER: usize = 1024;
