//! The search: every state that can be reached, breadth first, so that what is convicted is shown
//! by a shortest history.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{Hash as _, Hasher as _};

use headgate_core::trap;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::invariants::Look;
use super::machine::Machine;
use super::plan::{Model, Seen};
use super::state::{State, Step};
use super::wrong::{Promise, Wrong};

/// How a search ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Every state was looked at, and each is right.
    AllRight,
    /// There are more states than the model may have: not all were looked at.
    BoundReached,
    /// Something is wrong, after these steps.
    Convicted(Wrong, Vec<String>),
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The model.
    pub name: &'static str,
    /// Different states.
    pub states: usize,
    /// Steps from one to another.
    pub transitions: u64,
    /// Steps of the longest of the shortest ways to a state.
    pub depth: usize,
    /// More states would have been a failure.
    pub states_max: usize,
    /// What it came across, and how often.
    pub seen: BTreeMap<Seen, u64>,
    /// What it had to come across and did not.
    pub missed: Vec<Seen>,
    /// How it ended.
    pub ending: Ending,
}

impl Found {
    /// Whether all was looked at, something happened, and nothing is wrong.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.ending == Ending::AllRight && self.missed.is_empty()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            states,
            transitions,
            depth,
            states_max,
            ..
        } = self;
        let result = match &self.ending {
            Ending::AllRight if self.missed.is_empty() => "all right".to_owned(),
            Ending::AllRight => format!("never seen: {:?}", self.missed),
            Ending::BoundReached => format!("more than {states_max} states"),
            Ending::Convicted(wrong, _) => format!("wrong: {wrong}"),
        };
        write!(
            formatter,
            "{name:24} {states:>10} {transitions:>12} {depth:>6}  {result}"
        )
    }
}

/// Which state a state was reached from first, and how.
type Way = (usize, Step);

struct Search {
    machine: Machine,
    known: HashSet<u128>,
    ways: Vec<Way>,
    frontier: VecDeque<(State, usize)>,
    transitions: u64,
}

/// Looks at every state of a model.
#[must_use]
pub fn run(model: &Model) -> Found {
    let mut found = Found {
        name: model.name,
        states: 0,
        transitions: 0,
        depth: 0,
        states_max: model.states_max,
        seen: BTreeMap::new(),
        missed: Vec::new(),
        ending: Ending::AllRight,
    };
    let machine = match Machine::new(model.clone()) {
        Ok(machine) => machine,
        Err(wrong) => {
            found.ending = Ending::Convicted(wrong, Vec::new());
            return found;
        }
    };
    let mut search = Search {
        machine,
        known: HashSet::new(),
        ways: Vec::new(),
        frontier: VecDeque::new(),
        transitions: 0,
    };
    found.ending = match search.go(&mut found.depth) {
        Ok(true) => Ending::AllRight,
        Ok(false) => Ending::BoundReached,
        Err((wrong, steps)) => Ending::Convicted(wrong, steps),
    };
    found.states = search.known.len();
    found.transitions = search.transitions;
    found.seen = std::mem::take(&mut search.machine.seen);
    let missed = model
        .must_see
        .iter()
        .filter(|what| !found.seen.contains_key(what));
    found.missed = missed.copied().collect();
    found
}

/// 128 bits of hash stand for a state. Of 10^7 states, two different ones share them with a
/// probability of less than 10^-24.
fn digest(state: &State) -> u128 {
    let mut hasher = SipHasher13::new();
    state.hash(&mut hasher);
    let _ = hasher.finish();
    hasher.finish128().as_u128()
}

impl Search {
    /// Whether all states were looked at; else what is wrong, and the steps that lead there.
    fn go(&mut self, depth: &mut usize) -> Result<bool, (Wrong, Vec<String>)> {
        let start = self.machine.begin().map_err(|wrong| (wrong, Vec::new()))?;
        let _rule = trap::turn_off(self.machine.model.rule_off());
        self.known.insert(digest(&start));
        self.ways.push((usize::MAX, Step::Pass));
        self.frontier.push_back((start, 0));
        while !self.frontier.is_empty() {
            for (state, way) in std::mem::take(&mut self.frontier) {
                if self.known.len() > self.machine.model.states_max {
                    return Ok(false);
                }
                let next = self.expand(&state, way);
                next.map_err(|(wrong, step)| (wrong, self.trace(way, step)))?;
            }
            if !self.frontier.is_empty() {
                *depth = depth.saturating_add(1);
            }
        }
        Ok(true)
    }

    fn expand(&mut self, state: &State, way: usize) -> Result<(), (Wrong, Option<Step>)> {
        let look = self.machine.look(state).map_err(|wrong| (wrong, None))?;
        let mut is_end = true;
        for step in self.machine.enabled(state) {
            let mut next = state.clone();
            let checked = self.take(&look, &mut next, step);
            checked.map_err(|wrong| (wrong, Some(step)))?;
            if next == *state {
                continue;
            }
            is_end = false;
            self.transitions = self.transitions.saturating_add(1);
            if self.known.insert(digest(&next)) {
                self.frontier.push_back((next, self.ways.len()));
                self.ways.push((way, step));
            }
        }
        let book = self.machine.pools.books.get(state.book);
        if is_end && book.is_some_and(|book| book.some_wait()) {
            let wrong = Wrong::new(Promise::NobodyWaitsForEver, "a request has no answer");
            return Err((wrong, None));
        }
        Ok(())
    }

    fn take(&mut self, before: &Look, state: &mut State, step: Step) -> Result<(), Wrong> {
        self.machine.step(state, step)?;
        let after = self.machine.look(state)?;
        after.check_after(before)
    }

    /// The steps to a state, and one more.
    fn trace(&self, mut way: usize, last: Option<Step>) -> Vec<String> {
        let mut steps: Vec<Step> = last.into_iter().collect();
        while let Some((from, step)) = self.ways.get(way) {
            if *from == usize::MAX {
                break;
            }
            steps.push(*step);
            way = *from;
        }
        steps
            .iter()
            .rev()
            .map(|step| self.machine.describe(*step))
            .collect()
    }
}

impl Machine {
    fn describe(&self, step: Step) -> String {
        let message = |part| format!("{:?}", self.pools.messages.get(part));
        match step {
            Step::Deliver(part) | Step::Duplicate(part) => format!("{step:?} {}", message(part)),
            Step::GiveUp(part) | Step::BreakOff(part) => {
                format!("{step:?} {:?}", self.pools.calls.get(part))
            }
            _ => format!("{step:?}"),
        }
    }
}
