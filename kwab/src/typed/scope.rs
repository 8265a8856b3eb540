//! Which variables there are: those of a frame, innermost scope first, and statics by their path.

use crate::symbols::info::{Entry, Info};

/// Variables of a frame.
const MOST_VARIABLES: usize = 512;
/// Statics of the same name.
const MOST_STATICS: usize = 16;

/// A variable and what it is called.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    /// Its name; of a static with its path.
    pub(super) name: String,
    /// Its entry in DWARF.
    pub(super) entry: Entry,
}

/// The variables at an instruction.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// The function that holds the instruction, not inlined.
    pub(super) function: Entry,
    /// Its variables, those of inner scopes and inlined functions first.
    pub(super) variables: Vec<Variable>,
}

impl Scope {
    /// The scope of a link address; `None` when no function of DWARF covers it.
    pub(super) fn at(info: &Info, link: u64) -> Option<Self> {
        (0..info.len()).filter(|unit| info.unit_covers(*unit, link)).find_map(|unit| Self::in_unit(info, unit, link))
    }

    fn in_unit(info: &Info, unit: usize, link: u64) -> Option<Self> {
        let mut function: Option<(isize, Entry)> = None;
        // Scopes around the entry at hand: depth, and whether the instruction is in them.
        let mut around: Vec<(isize, bool)> = Vec::new();
        let mut found: Vec<(usize, Variable)> = Vec::new();
        info.each(unit, None, &mut |depth, entry| {
            if function.as_ref().is_some_and(|(own, _)| depth <= *own) {
                return false;
            }
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            match entry.tag {
                gimli::DW_TAG_subprogram => {
                    let inside = function.is_none() && info.covers(&entry, link);
                    around.push((depth, inside));
                    if inside {
                        function = Some((depth, entry));
                    }
                }
                gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block => {
                    let inside = around.last().is_some_and(|(_, inside)| *inside) && info.covers(&entry, link);
                    around.push((depth, inside));
                }
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter
                    if function.is_some() && around.last().is_some_and(|(_, inside)| *inside) =>
                {
                    let name = info.name(&entry).unwrap_or_default();
                    if !name.is_empty() && found.len() < MOST_VARIABLES {
                        found.push((around.len(), Variable { name, entry }));
                    }
                }
                _ => {}
            }
            true
        });
        // The innermost first; in a scope what was declared last hides what was declared before.
        found.reverse();
        found.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        let variables = found.into_iter().map(|(_, variable)| variable).collect();
        function.map(|(_, function)| Self { function, variables })
    }
}

/// Statics whose path is `path` or ends with it.
pub(super) fn statics(info: &Info, path: &str) -> Vec<Variable> {
    let last = path.rsplit("::").next().unwrap_or(path);
    let mut found: Vec<Variable> = Vec::new();
    for unit in 0..info.len() {
        // Names of the namespaces and functions around the entry at hand.
        let mut around: Vec<(isize, String)> = Vec::new();
        info.each(unit, None, &mut |depth, entry| {
            while around.last().is_some_and(|(outer, _)| *outer >= depth) {
                around.pop();
            }
            let spaces = [gimli::DW_TAG_namespace, gimli::DW_TAG_subprogram, gimli::DW_TAG_structure_type];
            if spaces.contains(&entry.tag) {
                around.push((depth, info.name(&entry).unwrap_or_default()));
            } else if entry.tag == gimli::DW_TAG_variable
                && entry.get(gimli::DW_AT_location).is_some()
                && info.name(&entry).is_some_and(|name| name == last)
            {
                let own: Vec<&str> = around.iter().map(|(_, name)| name.as_str()).filter(|n| !n.is_empty()).collect();
                let short = [own.as_slice(), &[last]].concat().join("::");
                let name = info.linkage(&entry).unwrap_or(short.clone());
                let ends = |name: &str| name == path || name.ends_with(&format!("::{path}"));
                if ends(&name) || ends(&short) {
                    found.push(Variable { name, entry });
                }
            }
            found.len() < MOST_STATICS
        });
    }
    found
}
