//! The fold of fixed logs, which saved states depend on.

use std::sync::Arc;

use holdpoint_common::Event;
use holdpoint_session::state::State;

/// If this fails because the same facts lead to another state, or a state to another form, raise the
/// number in `VERSION` of `state/saved.rs`. Otherwise sessions would continue with a state that no
/// longer fits their facts.
#[test]
fn m_b7_the_version_of_saved_states_names_this_fold() {
    let mut forms = String::new();
    for log in include_str!("fold.jsonl").split("\n\n") {
        let facts = log.lines().map(|line| Arc::new(serde_json::from_str(line).unwrap()));
        let facts: Vec<Arc<Event>> = facts.collect();
        for upto in [facts.len() / 2, facts.len()] {
            let form = State::fold(&facts[..upto]).unwrap().to_saved().unwrap();
            forms.push_str(&form.replace(env!("CARGO_PKG_VERSION"), "PROGRAM"));
            forms.push('\n');
        }
    }
    insta::assert_snapshot!(forms);
}
