//! Looks for the smallest sequence of calls that still fails: first which programs it takes, then which of their steps.
//!
//! Programs and steps are left out by delta debugging; each attempt is a boot of its own in which the rest runs again
//! and again. A step does the same whatever else is left out, so what remains is a part of the original run. A failure
//! that depends on timing may not come back; an attempt without a failure proves nothing, it only keeps what it would
//! have left out.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{Answer, Bench, Case, Finding};

/// What is left of a failing run.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// `NUMBER=STEPS` words that still fail; those of the whole window if the failure did not come back.
    pub only: Vec<String>,
    /// Whether the last of them was seen failing.
    pub again: bool,
    /// Boots it took.
    pub boots: u32,
    /// The programs as text.
    pub text: String,
}

/// Boots that a shrinking may take.
const BOOTS: u32 = 48;
/// Boots until a failure counts as gone.
const TRIES: u32 = 3;
/// How often an attempt runs its programs, at least.
const ROUNDS: u32 = 6;
/// Seconds of an attempt.
const SECONDS: u64 = 25;

/// One step of one thread of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    program: u32,
    thread: u32,
    at: u32,
}

/// Shrinks a finding of a case.
pub fn shrink(bench: &Bench, case: &Case, finding: &Finding) -> Result<Shrunk> {
    let mut boots = 0;
    let programs = finding.programs.clone();
    let words = |programs: &[u32]| programs.iter().map(|number| format!("{number}=all")).collect::<Vec<_>>();
    let mut attempt = |only: Vec<String>, tries: u32| -> Result<bool> {
        for _ in 0..tries {
            if boots >= BOOTS {
                return Ok(false);
            }
            boots += 1;
            if is_same(&bench.run(&again(case, only.clone()))?, finding) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let again = !programs.is_empty() && attempt(words(&programs), TRIES)?;
    let mut only = words(&programs);
    if again {
        let programs = smallest(programs, &mut |part| attempt(words(part), 1))?;
        let mut steps = Vec::new();
        for program in &programs {
            steps.extend(steps_of(*program, &bench.print(case.seed, &format!("{program}=all"))?));
        }
        only = spelled(&smallest(steps, &mut |part| attempt(spelled(part), 1))?);
    }
    let mut text = String::new();
    for word in &only {
        text.push_str(&bench.print(case.seed, word)?);
    }
    Ok(Shrunk { only, again, boots, text })
}

/// The same machine with only these programs.
fn again(case: &Case, only: Vec<String>) -> Case {
    let programs = u32::try_from(only.len()).unwrap_or(u32::MAX).saturating_mul(ROUNDS);
    Case { only, programs, seconds: SECONDS, ..case.clone() }
}

/// Whether an answer has the same finding, whatever numbers are in it.
fn is_same(answer: &Answer, finding: &Finding) -> bool {
    answer.report.findings.iter().any(|other| signature(other) == signature(finding))
}

/// A finding's kind, and its text without what differs from run to run.
#[must_use]
pub fn signature(finding: &Finding) -> String {
    let text = finding.text.split(']').next_back().unwrap_or_default();
    let words = text.split_whitespace().filter(|word| !word.bytes().any(|byte| byte.is_ascii_digit()));
    format!("{}: {}", finding.kind, words.collect::<Vec<_>>().join(" "))
}

/// Delta debugging: the smallest part found that `fails`, which the whole does.
fn smallest<T: Copy>(mut items: Vec<T>, fails: &mut dyn FnMut(&[T]) -> Result<bool>) -> Result<Vec<T>> {
    let mut pieces = 2;
    while items.len() > 1 {
        let size = items.len().div_ceil(pieces);
        let mut smaller = None;
        for start in (0..items.len()).step_by(size) {
            let end = (start + size).min(items.len());
            let rest: Vec<T> = items[..start].iter().chain(&items[end..]).copied().collect();
            if fails(&rest)? {
                smaller = Some(rest);
                break;
            }
        }
        match smaller {
            Some(rest) => {
                items = rest;
                pieces = pieces.saturating_sub(1).max(2);
            }
            None if pieces >= items.len() => break,
            None => pieces = (pieces * 2).min(items.len()),
        }
    }
    Ok(items)
}

/// The steps of a program that was written down: lines `THREAD:STEP call(…)`.
fn steps_of(program: u32, text: &str) -> Vec<Step> {
    let lines = text.lines().filter_map(|line| line.split_once(' ')?.0.split_once(':'));
    let numbers = lines.filter_map(|(thread, at)| Some((thread.parse().ok()?, at.parse().ok()?)));
    numbers.map(|(thread, at)| Step { program, thread, at }).collect()
}

/// Steps as the guest takes them: `NUMBER=THREAD:FROM-TO,…` for each program.
fn spelled(steps: &[Step]) -> Vec<String> {
    let mut sorted = steps.to_vec();
    sorted.sort_unstable();
    let mut programs: BTreeMap<u32, Vec<(u32, u32, u32)>> = BTreeMap::new();
    for step in sorted {
        let ranges = programs.entry(step.program).or_default();
        match ranges.last_mut() {
            Some((thread, _, to)) if *thread == step.thread && *to + 1 == step.at => *to = step.at,
            _ => ranges.push((step.thread, step.at, step.at)),
        }
    }
    let range = |(thread, from, to): &(u32, u32, u32)| format!("{thread}:{from}-{to}");
    let word = |(program, ranges): (u32, Vec<_>)| {
        format!("{program}={}", ranges.iter().map(range).collect::<Vec<_>>().join(","))
    };
    programs.into_iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_that_fail_only_together_are_found_among_many() {
        let mut boots = 0;
        let found = smallest((0..200).collect(), &mut |part: &[u32]| {
            boots += 1;
            Ok(part.contains(&17) && part.contains(&150))
        });
        assert_eq!(found.unwrap(), [17, 150]);
        assert!(boots < 100, "{boots}");
    }

    #[test]
    fn written_steps_are_read_and_spelled_as_ranges() {
        let steps =
            steps_of(7, "program 7: 2 threads of 9 steps\n0:3 read(fd_file)\n0:4 close(1)\n1:0 fork()\n0:9 x()\n");
        assert_eq!(spelled(&steps), ["7=0:3-4,0:9-9,1:0-0"]);
    }

    #[test]
    fn numbers_and_times_do_not_make_another_finding() {
        let panic = |text: &str| Finding { kind: "panic".into(), text: text.into(), programs: Vec::new() };
        let (one, other) =
            (panic("[    3.1] kernel panic: lock 0x12 taken"), panic("[   99.0] kernel panic: lock 0x99 taken"));
        assert_eq!(signature(&one), signature(&other));
        assert_ne!(signature(&one), signature(&panic("kernel panic: stack")));
    }
}
