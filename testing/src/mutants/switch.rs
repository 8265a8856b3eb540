//! Puts many mutations into one text, each behind a switch: the mutated kernel is built once and not once per mutation.
//!
//! Mutation `n` of `a < b` into `a > b` becomes `(if on(n) { a > b } else { a < b })`, a body returns its replacement
//! at once, an arm that is deleted gets a guard that never holds. All of it stays on its line, so that the debugging
//! information names the same lines as without. An operator is replaced in the syntax tree: it keeps the operands that
//! it has.
//!
//! Left out is what no switch can be put into: constants, `const fn`, conditions with a `let`, patterns.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::Context as _;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::list::{Mutant, offset};

/// The path of the function that asks for a switch, and of the module that [`module`] is the text of.
const ON: &str = "::linux_abi::mutant::on";

/// What stands before the switches in memory and in the image.
pub const MAGIC: &[u8; 16] = b"kwab's switches:";

/// The value of a kernel in which no mutation is on.
pub const NONE: u32 = u32::MAX;

/// A file with its mutations in it.
#[derive(Clone, Debug, Default)]
pub struct Switched {
    /// The text of the file, with as many lines as before.
    pub text: String,
    /// What was put in for each mutation: its number, and the bytes in the text.
    pub pieces: Vec<(u32, Range<usize>)>,
    /// The bytes of the text that each mutation is about, with all that was put in there.
    pub around: Vec<(u32, Range<usize>)>,
    /// The mutations that are not in it, each with the reason.
    pub left_out: Vec<(u32, &'static str)>,
}

/// The text of a file with these of its mutants in it, each by its number.
pub fn switched(text: &str, mutants: &[(u32, &Mutant)]) -> anyhow::Result<Switched> {
    let file = syn::parse_file(text)?;
    let lines = Lines::of(text);
    let mut sites = Sites { lines: &lines, sites: BTreeMap::new(), expressions: Vec::new() };
    sites.visit_file(&file);
    let mut inserts = Vec::new();
    let mut left_out = Vec::new();
    for (number, mutant) in mutants {
        match inserts_of(text, mutant, *number, &sites)? {
            Ok(own) => inserts.extend(own),
            Err(reason) => left_out.push((*number, reason)),
        }
    }
    Ok(Switched { left_out, ..put(text, inserts) })
}

/// The module that holds the switches, with room for `count`: the magic, the number of the one that is on, and which
/// were asked for.
#[must_use]
pub fn module(count: usize) -> String {
    let magic = std::str::from_utf8(MAGIC).unwrap_or_default();
    format!(
        "//! The switches of mutations.\n\
         use core::sync::atomic::{{AtomicU8, AtomicU32, Ordering::Relaxed}};\n\
         #[repr(C, align(64))]\n\
         pub struct Switches {{ pub magic: [u8; 16], pub active: AtomicU32, pub asked: [AtomicU8; {count}] }}\n\
         pub static SWITCHES: Switches = Switches {{\n\
         magic: *b\"{magic}\",\n\
         active: AtomicU32::new({NONE}),\n\
         asked: [const {{ AtomicU8::new(0) }}; {count}],\n\
         }};\n\
         /// Whether mutation `number` is on.\n\
         #[inline]\n\
         pub fn on(number: u32) -> bool {{\n\
         SWITCHES.asked[number as usize].store(1, Relaxed);\n\
         SWITCHES.active.load(Relaxed) == number\n\
         }}\n"
    )
}

/// Bytes of the switches before those that say what was asked for.
pub const HEAD: usize = MAGIC.len() + size_of::<u32>();

/// Something to be put in at a byte of the text.
#[derive(Clone, Debug)]
struct Insert {
    at: usize,
    /// Whether it opens what it is put around; else it closes it.
    opens: bool,
    /// Bytes of the text that it is put around.
    length: usize,
    number: u32,
    text: String,
}

/// Where a mutation can be: what the bytes of its span belong to.
#[derive(Clone, Debug)]
enum Site {
    /// An operator: the expression, and whether a `let` is in it.
    Operator { whole: Range<usize>, has_let: bool },
    /// A unary operator: the expression and its operand.
    Unary { whole: Range<usize>, operand: Range<usize> },
    /// A field of a structure: the whole expression.
    Field { whole: Range<usize> },
    /// An arm: the end of its pattern and its guard.
    Arm { pattern: usize, guard: Option<(Range<usize>, bool)> },
    /// The guard of an arm.
    Guard { whole: Range<usize>, has_let: bool },
    /// The body of a function.
    Body,
}

/// Sites by genre and the first byte of the mutated text.
type SiteTable = BTreeMap<(&'static str, usize), Site>;

/// What to put in for a mutation, or the reason why nothing can be.
type Inserts = Result<Vec<Insert>, &'static str>;

/// The pieces of one mutation. An error when its span is not in the text.
fn inserts_of(text: &str, mutant: &Mutant, number: u32, sites: &Sites<'_>) -> anyhow::Result<Inserts> {
    let place = || format!("{}: its span is not in the text", mutant.name);
    let start = offset(text, mutant.span.start).with_context(place)?;
    let end = offset(text, mutant.span.end).with_context(place)?;
    let genre = GENRES.iter().find(|genre| **genre == mutant.genre).copied().unwrap_or_default();
    let around = |range: &Range<usize>, before: String, after: &str| {
        let insert = |at, opens, text| Insert { at, opens, length: range.len(), number, text };
        vec![insert(range.start, true, before), insert(range.end, false, after.to_owned())]
    };
    let instead = |range: &Range<usize>, new: String| match tokens(&new) {
        Some(new) => Ok(around(range, format!("(if {ON}({number}) {{ {new} }} else {{ "), " })")),
        None => Err("does not parse or takes several lines"),
    };
    let mutated =
        |whole: &Range<usize>| [&text[whole.start..start], mutant.replacement.as_str(), &text[end..whole.end]].concat();
    let site = match genre {
        // A change that is described in words is made in the smallest expression that holds it.
        "" => sites.smallest(start..end).map(|whole| Site::Field { whole }),
        _ => sites.sites.get(&(genre, start)).cloned(),
    };
    Ok(match &site {
        None => Err("in a constant, a pattern or a macro"),
        Some(Site::Operator { has_let: true, .. } | Site::Guard { has_let: true, .. }) => Err("a condition with a let"),
        Some(Site::Operator { whole, .. } | Site::Field { whole }) => instead(whole, mutated(whole)),
        Some(Site::Unary { whole, operand }) => instead(whole, text[operand.clone()].to_owned()),
        Some(Site::Guard { whole, .. }) => instead(whole, mutant.replacement.clone()),
        Some(Site::Arm { guard: Some((_, true)), .. }) => Err("a condition with a let"),
        Some(Site::Arm { guard: Some((whole, _)), .. }) => Ok(around(whole, format!("!{ON}({number}) && ("), ")")),
        Some(Site::Arm { pattern, guard: None }) => {
            let text = format!(" if !{ON}({number})");
            Ok(vec![Insert { at: *pattern, opens: false, length: 0, number, text }])
        }
        Some(Site::Body) => match tokens(&mutant.replacement) {
            Some(new) => {
                let text = format!("if {ON}({number}) {{ return {new}; }} ");
                Ok(vec![Insert { at: start, opens: true, length: usize::MAX, number, text }])
            }
            None => Err("does not parse or takes several lines"),
        },
    })
}

/// An expression on one line, without comments.
fn tokens(text: &str) -> Option<String> {
    syn::parse_str::<syn::Expr>(text).ok()?;
    let text = text.parse::<proc_macro2::TokenStream>().ok()?.to_string();
    (!text.contains('\n')).then_some(text)
}

/// Puts everything in. At one byte what closes comes before what opens, inner before outer there, outer before inner
/// here.
fn put(text: &str, mut inserts: Vec<Insert>) -> Switched {
    let order = |insert: &Insert| {
        let depth = if insert.opens { usize::MAX - insert.length } else { insert.length };
        // Of two around the same bytes, the one that opens first closes last.
        let turn = if insert.opens { i64::from(insert.number) } else { -i64::from(insert.number) };
        (insert.at, insert.opens, depth, turn)
    };
    inserts.sort_by_key(order);
    let mut result = Switched::default();
    let mut opened: BTreeMap<u32, usize> = BTreeMap::new();
    let mut copied = 0;
    for insert in inserts {
        result.text.push_str(&text[copied..insert.at]);
        copied = insert.at;
        let begin = result.text.len();
        result.text.push_str(&insert.text);
        let end = result.text.len();
        result.pieces.push((insert.number, begin..end));
        if insert.opens {
            opened.insert(insert.number, begin);
        } else if let Some(begin) = opened.get(&insert.number) {
            result.around.push((insert.number, *begin..end));
        }
    }
    result.text.push_str(&text[copied..]);
    result
}

/// The kinds of mutations, as `cargo-mutants` calls them.
const GENRES: [&str; 6] = [BINARY, UNARY, FIELD, ARM, GUARD, BODY];
const BINARY: &str = "BinaryOperator";
const UNARY: &str = "UnaryOperator";
const FIELD: &str = "StructField";
const ARM: &str = "MatchArm";
const GUARD: &str = "MatchArmGuard";
const BODY: &str = "FnValue";

/// Where each line of a text begins.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: [0].into_iter().chain(ends).collect() }
    }

    /// The byte of a position; columns of `proc_macro2` are characters from 0.
    fn byte(&self, at: proc_macro2::LineColumn) -> usize {
        let start = self.starts.get(at.line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let characters = self.text[start..].char_indices().map(|(index, _)| index).chain([self.text.len() - start]);
        start + characters.into_iter().nth(at.column).unwrap_or_default()
    }

    fn range(&self, span: proc_macro2::Span) -> Range<usize> {
        self.byte(span.start())..self.byte(span.end())
    }
}

/// Collects the sites of a file by genre and the first byte of the mutated text.
struct Sites<'a> {
    lines: &'a Lines<'a>,
    sites: SiteTable,
    /// The bytes of all expressions that a switch can be put around.
    expressions: Vec<Range<usize>>,
}

impl Sites<'_> {
    /// The smallest expression with these bytes in it.
    fn smallest(&self, bytes: Range<usize>) -> Option<Range<usize>> {
        let holds = |whole: &&Range<usize>| whole.start <= bytes.start && bytes.end <= whole.end;
        self.expressions.iter().filter(holds).min_by_key(|whole| whole.len()).cloned()
    }

    fn body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() {
            return;
        }
        if let Some(first) = block.stmts.first() {
            let at = self.lines.range(first.span()).start;
            self.sites.insert((BODY, at), Site::Body);
        }
        self.visit_block(block);
    }
}

/// Whether an expression has a `let` among its conditions.
fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Sites<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.body(&node.sig, &node.block);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.body(&node.sig, &node.block);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.body(&node.sig, block);
        }
    }

    fn visit_expr(&mut self, node: &'ast syn::Expr) {
        if !has_let(node) {
            self.expressions.push(self.lines.range(node.span()));
        }
        visit::visit_expr(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let has_let = has_let(&node.left) || has_let(&node.right);
        let site = Site::Operator { whole: self.lines.range(node.span()), has_let };
        self.sites.insert((BINARY, self.lines.range(node.op.span()).start), site);
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let site = Site::Unary { whole: self.lines.range(node.span()), operand: self.lines.range(node.expr.span()) };
        self.sites.insert((UNARY, self.lines.range(node.op.span()).start), site);
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        for field in &node.fields {
            let site = Site::Field { whole: self.lines.range(node.span()) };
            self.sites.insert((FIELD, self.lines.range(field.span()).start), site);
        }
        visit::visit_expr_struct(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        let whole = self.lines.range(node.span());
        let guard = if let syn::Pat::Guard(guarded) = &node.pat { Some(&guarded.guard) } else { None };
        let site = guard.map(|guard| (self.lines.range(guard.span()), has_let(guard)));
        if let Some((whole, has_let)) = site.clone() {
            self.sites.insert((GUARD, whole.start), Site::Guard { whole, has_let });
        }
        let pattern = self.lines.range(node.pat.span()).end;
        self.sites.insert((ARM, whole.start), Site::Arm { pattern, guard: site });
        if let Some(guard) = guard {
            self.visit_expr(guard);
        }
        self.visit_expr(&node.body);
    }

    // What is evaluated by the compiler has no switches.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_variant(&mut self, _: &'ast syn::Variant) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::{Position, Span};
    use super::*;

    const TEXT: &str = "fn f(a: u32, b: u32) -> bool {\n    let c = a < b && // why\n        !g();\n    \
                        match a {\n        1 => c,\n        2 if b == 3 => true,\n        _ => false,\n    }\n}\n";

    /// A mutant of `TEXT` whose mutated text is the first `from` in line `line`.
    fn mutant(genre: &str, line: usize, from: &str, to: &str) -> Mutant {
        let column = 1 + TEXT.lines().nth(line - 1).unwrap().find(from).unwrap();
        let start = Position { line, column };
        let span = Span { start, end: Position { line, column: column + from.len() } };
        Mutant {
            name: format!("{genre} {line} {from}"),
            package: String::new(),
            file: String::new(),
            function: None,
            span,
            replacement: to.to_owned(),
            genre: genre.to_owned(),
            diff: String::new(),
        }
    }

    fn of(mutants: &[Mutant]) -> Switched {
        let numbered: Vec<(u32, &Mutant)> = (0..).zip(mutants).collect();
        let switched = switched(TEXT, &numbered).unwrap();
        syn::parse_file(&switched.text).unwrap_or_else(|error| panic!("{error}: {}", switched.text));
        assert_eq!(switched.text.lines().count(), TEXT.lines().count(), "{}", switched.text);
        switched
    }

    #[test]
    fn mutations_of_one_expression_and_of_what_is_around_it_stand_in_each_other() {
        let text = of(&[
            mutant(BINARY, 2, "<", ">"),
            mutant(BINARY, 2, "<", "=="),
            mutant(BINARY, 2, "&&", "||"),
            mutant(UNARY, 3, "!", ""),
        ])
        .text;
        assert!(text.contains(&format!(
            "let c = (if {ON}(2) {{ a < b || ! g () }} else {{ (if {ON}(0) {{ a > b }} else {{ \
             (if {ON}(1) {{ a == b }} else {{ a < b }}) }}) && // why\n        \
             (if {ON}(3) {{ g () }} else {{ !g() }}) }});"
        )));
    }

    #[test]
    fn arms_guards_and_bodies_have_switches_of_their_own() {
        let switched = of(&[
            mutant(ARM, 5, "1 => c", ""),
            mutant(ARM, 6, "2 if b == 3 => true", ""),
            mutant(GUARD, 6, "b == 3", "true"),
            mutant(BINARY, 6, "==", "!="),
            mutant(BODY, 2, "let", "true"),
        ]);
        let text = &switched.text;
        assert!(text.contains(&format!("1 if !{ON}(0) => c,")), "{text}");
        let inner = format!("(if {ON}(3) {{ b != 3 }} else {{ b == 3 }})");
        let guard = format!("(if {ON}(2) {{ true }} else {{ {inner} }})");
        assert!(text.contains(&format!("2 if !{ON}(1) && ({guard}) => true,")), "{text}");
        assert!(text.contains(&format!("    if {ON}(4) {{ return true; }} let c")), "{text}");
        assert_eq!(switched.left_out, []);
        for (number, piece) in &switched.pieces {
            let piece = &text[piece.clone()];
            assert!(piece.contains(&format!("({number})")) || piece == " })" || piece == ")", "{piece}");
        }
    }

    #[test]
    fn a_described_change_is_made_in_the_smallest_expression_around_it() {
        let text = of(&[mutant("Described", 2, "a < ", "a > "), mutant("Described", 3, "g()", "g().not()")]).text;
        assert!(text.contains(&format!("let c = (if {ON}(0) {{ a > b }} else {{ a < b }}) &&")), "{text}");
        assert!(text.contains(&format!("!(if {ON}(1) {{ g () . not () }} else {{ g() }});")), "{text}");
    }

    #[test]
    fn constants_conditions_with_let_and_patterns_are_left_out_with_their_reason() {
        let text =
            "const A: usize = 1 + 2;\nconst fn f() -> u32 { 1 + 2 }\nfn g() { if let Some(_) = h() && 1 < 2 {} }\n";
        let at = |line, column, genre: &str| {
            let start = Position { line, column };
            let span = Span { start, end: Position { line, column: column + 1 } };
            Mutant { span, ..mutant(genre, 2, "<", ">") }
        };
        let mutants = [at(1, 20, BINARY), at(2, 25, BINARY), at(3, 31, BINARY), at(3, 36, BINARY)];
        let numbered: Vec<(u32, &Mutant)> = (0..).zip(&mutants).collect();
        let switched = switched(text, &numbered).unwrap();
        let left_out: Vec<u32> = switched.left_out.iter().map(|(number, _)| *number).collect();
        assert_eq!(left_out, [0, 1, 2], "{:?}", switched.left_out);
        assert!(
            switched.text.contains(&format!("&& (if {ON}(3) {{ 1 > 2 }} else {{ 1 < 2 }}) {{}}")),
            "{}",
            switched.text
        );
    }
}
