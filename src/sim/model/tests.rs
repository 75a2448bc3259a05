//! Every history of every small model is right, and none is so small that nothing can be wrong.

use super::search::{Ending, run};
use super::{plan::Model, small};

fn model(name: &str) -> Model {
    small()
        .into_iter()
        .find(|model| model.name == name)
        .unwrap()
}

fn is_right(name: &str) {
    let found = run(&model(name));
    println!("{found}\n{:?}", found.seen);
    if let Ending::Convicted(_, steps) = &found.ending {
        steps.iter().for_each(|step| println!("{step}"));
    }
    assert!(found.is_right(), "{found}");
    // Shown by whatever is broken on purpose, or the model shows nothing.
    let model = model(name);
    assert!(!model.convicts().is_empty());
    for how in model.convicts().to_vec() {
        let found = run(&model.clone().broken(how));
        println!("{how:?}: {found}");
        assert!(
            matches!(found.ending, Ending::Convicted(..)),
            "{how:?}: {found}"
        );
    }
}

#[test]
fn duplicate() {
    is_right("duplicate");
}

#[test]
fn loss() {
    is_right("loss");
}

#[test]
fn silence() {
    is_right("silence");
}

#[test]
fn rules() {
    is_right("rules");
}

#[test]
fn rules_twice() {
    is_right("rules twice");
}

#[test]
fn standing() {
    is_right("standing");
}

#[test]
fn grants() {
    is_right("grants");
}

#[test]
fn recall() {
    is_right("recall");
}

#[test]
fn races() {
    is_right("races");
}

#[test]
fn crash() {
    is_right("crash");
}

#[test]
fn restart() {
    is_right("restart");
}
