//! What may have happened: claims with their scores, each with the evidence for and against it and what to run next.

use kwab::analysis::Triage;
use kwab::report::filter::FieldValue;

use super::overview::Overview;
use super::{Column, Link, Look, Row, Slot, Target, View, number, text};
use crate::text::Line;
use crate::theme::Tone;

/// The triage of a dump as rows.
pub struct TriageView {
    triage: Triage,
    /// What of a long recording was not looked at.
    skipped: Vec<String>,
    /// The functions that were changed since a build that worked, where no hypothesis lists them.
    changed: Vec<String>,
    overview: Overview,
    rows: Vec<Item>,
}

#[derive(Clone, Copy)]
enum Item {
    Headline,
    Skipped(usize),
    Nothing,
    Claim(usize),
    Evidence(usize, usize),
    /// A function that a piece of evidence lists.
    Function(usize, usize, usize),
    /// How many more functions it lists, which the detail shows.
    More(usize, usize),
    Against(usize, usize),
    Weakened(usize, usize),
    Next(usize, usize),
    /// What would decide it, when no hypothesis is likely.
    Advice(usize),
    /// What the functions below have in common: they were changed since a build that worked.
    Changes,
    Changed(usize),
    RuledOut(usize),
    Lacking(usize),
    Loss(usize),
}

impl TriageView {
    /// Lays out what triage concluded, with what it did not look at and what is known beside it.
    #[must_use]
    pub fn new(triage: Triage, skipped: Vec<String>, overview: Overview) -> Self {
        let mut rows = vec![Item::Headline];
        rows.extend((0..skipped.len()).map(Item::Skipped));
        if triage.hypotheses.is_empty() {
            rows.push(Item::Nothing);
        }
        for (at, found) in triage.hypotheses.iter().enumerate() {
            rows.push(Item::Claim(at));
            for (piece, fact) in found.evidence.iter().enumerate() {
                rows.push(Item::Evidence(at, piece));
                // A list that an earlier hypothesis has shown is in the detail only.
                let shown = triage.hypotheses[..at].iter().flat_map(|earlier| &earlier.evidence).any(|one| one == fact);
                if !shown {
                    rows.extend((0..fact.first_functions().len()).map(|one| Item::Function(at, piece, one)));
                    rows.extend((!fact.other_functions().is_empty()).then_some(Item::More(at, piece)));
                }
            }
            rows.extend((0..found.against.len()).map(|piece| Item::Against(at, piece)));
            rows.extend((0..found.weakened.len()).map(|piece| Item::Weakened(at, piece)));
            rows.extend((0..found.next.len()).map(|piece| Item::Next(at, piece)));
        }
        let advice = triage.undecided.as_ref().map_or(0, |undecided| undecided.advice().len());
        rows.extend((0..advice).map(Item::Advice));
        let changed: Option<Vec<String>> = triage.untold_changes().map(|since| since.lines(usize::MAX - 1));
        rows.extend(changed.iter().map(|_| Item::Changes));
        let changed = changed.unwrap_or_default();
        rows.extend((0..changed.len()).map(Item::Changed));
        rows.extend((0..triage.ruled_out.len()).map(Item::RuledOut));
        rows.extend((0..triage.lacking.len()).map(Item::Lacking));
        rows.extend((0..triage.losses.len()).map(Item::Loss));
        Self { triage, skipped, changed, overview, rows }
    }

    /// What died, in a line.
    #[must_use]
    pub fn headline(&self) -> &str {
        &self.triage.headline
    }

    /// Kind of row, its text, and how it is shown.
    fn told(&self, item: Item) -> (&'static str, String, Tone) {
        let hypothesis = |at: usize| &self.triage.hypotheses[at];
        match item {
            Item::Headline => ("", self.triage.headline.clone(), Tone::Head),
            Item::Skipped(at) => ("in part", self.skipped[at].clone(), Tone::Care),
            Item::Nothing => ("", "no hypothesis: no record of this dump points to a cause".to_string(), Tone::Care),
            Item::Claim(at) => ("", hypothesis(at).claim.clone(), Tone::Head),
            Item::Evidence(at, piece) => ("because", hypothesis(at).evidence[piece].head(), Tone::Plain),
            Item::Function(at, piece, one) => {
                ("", format!("- {}", hypothesis(at).evidence[piece].functions[one].in_words()), Tone::Plain)
            }
            Item::More(at, piece) => {
                ("", format!("- {} more", hypothesis(at).evidence[piece].other_functions().len()), Tone::Dim)
            }
            Item::Against(at, piece) => ("against", hypothesis(at).against[piece].text.clone(), Tone::Care),
            Item::Weakened(at, piece) => ("weaker", hypothesis(at).weakened[piece].clone(), Tone::Care),
            Item::Next(at, piece) => ("next", hypothesis(at).next[piece].clone(), Tone::Code),
            Item::Advice(at) => {
                let advice = self.triage.undecided.as_ref().map(|undecided| undecided.advice()).unwrap_or_default();
                let told = advice.get(at).map_or_else(String::new, |(label, text)| format!("{label}: {text}"));
                ("unknown", told, Tone::Plain)
            }
            Item::Changes => (
                "changed",
                self.triage.since.as_ref().map_or_else(String::new, |since| since.title() + ":"),
                Tone::Plain,
            ),
            Item::Changed(at) => ("", format!("- {}", self.changed[at]), Tone::Plain),
            Item::RuledOut(at) => ("excluded", self.triage.ruled_out[at].clone(), Tone::Dim),
            Item::Lacking(at) => ("lacking", self.triage.lacking[at].clone(), Tone::Dim),
            Item::Loss(at) => ("lost", self.triage.losses[at].clone(), Tone::Care),
        }
    }

    fn about_claim(&self, at: usize) -> Vec<Line> {
        let found = &self.triage.hypotheses[at];
        let mut lines = vec![
            Line::of(Tone::Head, found.claim.clone()),
            Line::field("score", format!("{:.2}", found.score))
                .and(Tone::Dim, "   1 minus what the evidence leaves open"),
            Line::field("rule", format!("{} ({})", found.rule, found.class)),
        ];
        lines.extend(found.function.iter().map(|guilty| Line::field("look at", guilty.in_words())));
        for piece in &found.evidence {
            lines.push(Line::of(Tone::Good, format!("+{:.2} ", piece.weight)).and(Tone::Plain, piece.in_words()));
        }
        for piece in &found.against {
            lines.push(Line::of(Tone::Care, format!("-{:.2} ", piece.weight)).and(Tone::Plain, piece.text.clone()));
        }
        lines.extend(
            found
                .weakened
                .iter()
                .map(|why| Line::of(Tone::Care, format!("×{:.1}  {why}", kwab::analysis::finding::WEAKENED))),
        );
        lines
    }
}

const COLUMNS: &[Column] =
    &[Column::number("score", 6, 2), Column::new("", 8, 3), Column::rest("what may have happened")];

impl View for TriageView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        let item = self.rows[index];
        let (kind, told, tone) = self.told(item);
        let score = match item {
            Item::Claim(at) => format!("{} {:.2}", at + 1, self.triage.hypotheses[at].score),
            _ => String::new(),
        };
        let told = match item {
            Item::Claim(at) => format!("{told}  [{}]", self.triage.hypotheses[at].rule),
            _ => told,
        };
        Row::of(tone, [score, kind.to_string(), told]).tone(1, Tone::Dim)
    }

    fn detail(&self, index: usize, look: &Look) -> Vec<Line> {
        let item = self.rows[index];
        let (kind, told, tone) = self.told(item);
        match item {
            Item::Headline => {
                let mut lines = vec![Line::of(Tone::Head, told), Line::field("kernel", self.triage.kernel.clone())];
                if self.triage.deliberate && !self.triage.has_findings() {
                    lines.push(Line::plain("the crash or the dump was requested: there is no bug to find"));
                }
                if !look.pictured {
                    lines.extend(self.overview.below());
                }
                lines
            }
            Item::Nothing => vec![
                Line::of(tone, told),
                Line::plain("what is missing is listed below; recording it lets triage say more"),
            ],
            Item::Skipped(_) => vec![
                Line::of(tone, told),
                Line::plain("timeline, system calls and console list all sections; W analyses all of them too"),
            ],
            Item::Claim(at) => self.about_claim(at),
            Item::Evidence(at, piece) | Item::Function(at, piece, _) | Item::More(at, piece) => {
                let evidence = &self.triage.hypotheses[at].evidence[piece];
                let mut lines = vec![Line::plain(evidence.head())];
                lines.extend(evidence.functions.iter().map(|one| Line::plain(format!("- {}", one.in_words()))));
                lines.push(Line::field("weight", format!("{:.2}", evidence.weight)));
                lines.extend(
                    evidence.at.map(|at| Line::field("record", at.to_string()).and(Tone::Link, "   ↵ shows it")),
                );
                lines
            }
            Item::Next(..) => vec![Line::of(Tone::Code, told), Line::of(Tone::Dim, "y copies it")],
            _ => vec![Line::of(Tone::Dim, format!("{kind}: ")).and(Tone::Plain, told)],
        }
    }

    fn links(&self, index: usize, _look: &Look) -> Vec<Link> {
        let piece = match self.rows[index] {
            Item::Evidence(at, piece) | Item::Function(at, piece, _) | Item::More(at, piece) => {
                &self.triage.hypotheses[at].evidence[piece]
            }
            Item::Against(at, piece) => &self.triage.hypotheses[at].against[piece],
            Item::Claim(at) => {
                let evidence = self.triage.hypotheses[at].evidence.iter();
                let links = evidence.filter_map(|piece| Some(Link::new(piece.text.clone(), Target::Record(piece.at?))));
                return links.collect();
            }
            _ => return Vec::new(),
        };
        piece.at.map(|at| Link::new(format!("record {at}"), Target::Record(at))).into_iter().collect()
    }

    fn target(&self, index: usize, _look: &Look) -> Option<Target> {
        Some(Target::Row(Slot::Triage, index))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Row(Slot::Triage, row) => Some(*row).filter(|row| *row < self.rows.len()),
            _ => None,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &["rule", "kind", "score"]
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        let item = self.rows[index];
        let of = match item {
            Item::Claim(at)
            | Item::Evidence(at, _)
            | Item::Function(at, ..)
            | Item::More(at, _)
            | Item::Against(at, _)
            | Item::Weakened(at, _)
            | Item::Next(at, _) => Some(&self.triage.hypotheses[at]),
            _ => None,
        };
        match name {
            "rule" => text(of?.rule),
            "kind" => text(if matches!(item, Item::Claim(_)) { "claim" } else { self.told(item).0 }),
            // In percent: a filter compares whole numbers.
            "score" => number((of?.score * 100.0) as u64),
            _ => None,
        }
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab triage {dump}")
    }

    fn when_empty(&self) -> String {
        "no data to analyse".to_string()
    }

    fn picture(&self, _selected: usize, _look: &Look, width: u16, height: u16) -> Vec<Line> {
        // A line of air above the list.
        self.overview.beside(width, height.saturating_sub(1))
    }

    fn picture_height(&self, width: u16) -> usize {
        match self.overview.height(width) {
            0 => 0,
            height => height + 1,
        }
    }

    fn most_picture_height(&self, width: u16) -> usize {
        match self.overview.most_height(width) {
            0 => 0,
            height => height + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use kwab::analysis::finding::{Evidence, ListedFunction, Statement};
    use kwab::analysis::verify::Backing;
    use kwab::model::Dump;
    use kwab::symbols::Symbols;

    use super::*;

    #[test]
    fn functions_of_evidence_are_rows_below_it_and_its_detail_lists_those_that_are_left_out() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testing/dumps/null-dereference.kwab");
        let dump = Dump::from_bytes(std::fs::read(path).unwrap()).unwrap();
        let mut triage = kwab::analysis::triage(&dump.case(), &Symbols::new(), &Backing::none(), "x");
        let functions = (0..10).map(|number| ListedFunction::plain(format!("f{number}"))).collect();
        triage.hypotheses[0].evidence = vec![Evidence::context(Statement::listing("made of", functions).unwrap())];
        triage.hypotheses.truncate(1);
        triage.hypotheses.push(triage.hypotheses[0].clone());
        let view = TriageView::new(triage, Vec::new(), Overview::default());
        let look = Look::default();
        let rows: Vec<String> = (2..7).map(|at| view.told(view.rows[at]).1).collect();
        assert_eq!(rows, ["made of:", "- f0", "- f1", "- f2", "- 7 more"]);
        let folded = view.rows.iter().filter(|row| matches!(row, Item::Evidence(1, _) | Item::Function(1, ..))).count();
        assert_eq!(folded, 1, "the second hypothesis names the list and does not repeat it");
        for at in 2..7 {
            let detail: Vec<String> = view.detail(at, &look).iter().map(Line::text).collect();
            assert_eq!((detail[0].as_str(), detail[10].as_str()), ("made of:", "- f9"), "row {at}");
        }
    }
}
