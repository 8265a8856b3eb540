//! Walks a `BTreeMap` of the kernel's in captured memory.
//!
//! Memory that lies may make a circle of nodes: every value that is visited is a step, and so is every node.

use super::super::space::Space;
use super::table::Table;

/// Values of a node (`alloc::collections::btree::node::CAPACITY`), and the height of a tree with 2^32 of them.
const CAPACITY: u16 = 11;
const MOST_HEIGHT: u64 = 16;

/// Where a node has what.
#[derive(Debug)]
pub(super) struct Nodes<'s> {
    space: &'s Space<'s>,
    /// Of the map: its first node and that one's height.
    root: u64,
    height: u64,
    /// Of a node: how many values it has, the first of them and their distance, the nodes between them.
    length: u64,
    values: u64,
    size: u64,
    edges: u64,
}

impl<'s> Nodes<'s> {
    /// The map of this name in the table.
    pub(super) fn of(space: &'s Space<'s>, table: &Table, name: &str) -> Option<Self> {
        let map = table.get(name)?.checked_add(table.get(&format!("{name}.map"))?)?;
        let of_node = |what: &str| table.get(&format!("{name}.node.{what}"));
        let is_empty = space.word(map.checked_add(table.get("map.count")?)?)? == 0;
        let root = space.word(map.checked_add(table.get("map.root")?)?)?;
        Some(Self {
            space,
            root: if is_empty { 0 } else { root },
            height: if is_empty { 0 } else { space.word(map.checked_add(table.get("map.height")?)?)? },
            length: of_node("length")?,
            values: of_node("values")?,
            size: of_node("size")?,
            edges: of_node("edges")?,
        })
    }

    /// Calls `visit` with the address of each value, in order of their keys; `None` when the tree is broken or `steps`
    /// are used up.
    pub(super) fn walk(&self, steps: &mut u32, visit: &mut dyn FnMut(u64)) -> Option<()> {
        if self.root == 0 {
            return Some(());
        }
        if self.height > MOST_HEIGHT { None } else { self.node(self.root, self.height, steps, visit) }
    }

    fn node(&self, at: u64, height: u64, steps: &mut u32, visit: &mut dyn FnMut(u64)) -> Option<()> {
        let mut length = [0; 2];
        self.space.fill(at.checked_add(self.length)?, &mut length)?;
        let length = u16::from_le_bytes(length);
        if length > CAPACITY {
            return None;
        }
        for number in 0..=u64::from(length) {
            *steps = steps.checked_sub(1)?;
            if height > 0 {
                let edge = self.space.word(at.checked_add(self.edges)?.checked_add(8 * number)?)?;
                self.node(edge, height - 1, steps, visit)?;
            }
            if number < u64::from(length) {
                visit(at.checked_add(self.values)?.checked_add(self.size.checked_mul(number)?)?);
            }
        }
        Some(())
    }
}
