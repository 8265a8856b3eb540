//! Finds the circles of files inside top-level modules, by Tarjan's algorithm.

use super::imports::Graph;

/// The circles of more than one file, each as sorted paths. An import between a module and its own child does not
/// count.
pub(super) fn within_modules(graph: &Graph) -> Vec<Vec<String>> {
    let mut edges = vec![Vec::new(); graph.len()];
    for import in graph.imports() {
        let same_top = graph.top_of(import.from).is_some() && graph.top_of(import.from) == graph.top_of(import.to);
        if same_top && !graph.is_parent_of(import.from, import.to) && !graph.is_parent_of(import.to, import.from) {
            edges[import.from].push(import.to);
        }
    }
    let mut search = Search::new(&edges);
    (0..graph.len()).for_each(|node| search.visit(node));
    let paths = |circle: Vec<usize>| {
        let mut names: Vec<String> = circle.into_iter().map(|node| graph.path(node).to_owned()).collect();
        names.sort_unstable();
        names
    };
    let mut circles: Vec<Vec<String>> = search.found.into_iter().filter(|circle| circle.len() > 1).map(paths).collect();
    circles.sort_unstable();
    circles
}

/// Tarjan's search for strongly connected components. The recursion is as deep as the longest chain of imports.
struct Search<'a> {
    edges: &'a [Vec<usize>],
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    stack: Vec<usize>,
    on_stack: Vec<bool>,
    next: usize,
    found: Vec<Vec<usize>>,
}

impl<'a> Search<'a> {
    fn new(edges: &'a [Vec<usize>]) -> Self {
        let nodes = edges.len();
        Self {
            edges,
            order: vec![None; nodes],
            low: vec![0; nodes],
            stack: Vec::new(),
            on_stack: vec![false; nodes],
            next: 0,
            found: Vec::new(),
        }
    }

    fn visit(&mut self, node: usize) {
        if self.order[node].is_some() {
            return;
        }
        self.order[node] = Some(self.next);
        self.low[node] = self.next;
        self.next += 1;
        self.stack.push(node);
        self.on_stack[node] = true;
        for &to in &self.edges[node] {
            if self.order[to].is_none() {
                self.visit(to);
                self.low[node] = self.low[node].min(self.low[to]);
            } else if self.on_stack[to] {
                self.low[node] = self.low[node].min(self.order[to].unwrap_or(usize::MAX));
            }
        }
        if self.order[node] == Some(self.low[node]) {
            let start = self.stack.iter().rposition(|&on| on == node).unwrap_or(0);
            let circle = self.stack.split_off(start);
            circle.iter().for_each(|&member| self.on_stack[member] = false);
            self.found.push(circle);
        }
    }
}
