//! What print prints: values as nested lines, each with its name, its type and its value.

use std::fmt::Write as _;

use kwab::plain;
use kwab::typed::{Missing, Node, PrintReport};

/// All values, fields below their owner.
pub(crate) fn values(report: &PrintReport) -> String {
    let mut out = String::new();
    if let Some(frame) = &report.frame {
        let _ = writeln!(out, "{}", plain::line(frame));
    }
    report.values.iter().for_each(|node| value(&mut out, node, 0));
    if report.values.is_empty() {
        out.push_str("no variables are known here\n");
    }
    out
}

fn value(out: &mut String, node: &Node, depth: usize) {
    let indent = "  ".repeat(depth);
    let name = node.name.as_deref().map(|name| format!("{}: ", plain::line(name))).unwrap_or_default();
    let _ = write!(out, "{indent}{name}{}", plain::line(&node.type_name));
    if let Some(value) = &node.value {
        let _ = write!(out, " = {}", plain::line(value));
    }
    if let Some(missing) = node.missing {
        let words = match missing {
            Missing::NotCaptured => "<not captured>",
            Missing::OptimizedOut => "<optimized out>",
            Missing::Limit => "…",
        };
        let at = node.address.as_deref().filter(|_| missing == Missing::NotCaptured);
        let _ = write!(out, " {words}{}", at.map(|at| format!(" at {at}")).unwrap_or_default());
    } else if depth == 0
        && let Some(at) = &node.address
    {
        let _ = write!(out, "  at {at}");
    }
    out.push('\n');
    node.fields.iter().for_each(|field| value(out, field, depth + 1));
    if node.more > 0 {
        let _ = writeln!(out, "{indent}  … and {} more", node.more);
    }
}
