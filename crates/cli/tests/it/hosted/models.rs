//! The model and the plan of an agent.

use rustix::process::{Signal, kill_process};

use super::{log_of, plain, prompt};
use crate::world::World;

#[test]
fn m_h3_model_is_passed_on_to_an_agent_that_offers_a_choice() {
    let world = World::new();
    let plain = plain(&world);
    for means in ["options", "models"] {
        let agent = format!("{plain} {means}");
        let run =
            |args: &[&str]| world.run(&[&["run", "--agent", &agent], args, &["model"]].concat());
        assert_eq!(run(&[]).code(0).out, "model=m1\n");
        assert_eq!(run(&["--model", "m2"]).code(0).out, "model=m2\n");
        let ran = run(&["--model", "m3"]).code(1);
        assert!(ran.err.contains("does not offer the model `m3` (hint: use m1, m2)"), "{ran:#?}");
    }
    let ran = world.run(&["run", "--agent", &plain, "--model", "m2", "model"]).code(1);
    assert!(ran.err.contains("it offers no choice of a model"), "{ran:#?}");
    // After a restart, the agent uses the same model.
    let agent = format!("{plain} options");
    world.run(&["new", "--name", "one", "--agent", &agent, "--model", "m2", "model"]).code(0);
    world.run(&["wait", "one"]).code(0);
    kill_process(world.daemon().unwrap(), Signal::KILL).unwrap();
    let log = prompt(&world, "model");
    assert_eq!(log.matches("model=m2").count(), 2, "{log}");
}

#[test]
fn m_h3_the_plan_of_an_agent_is_shown_when_it_changes() {
    let world = World::new();
    let agent = plain(&world);
    let plan = |status: &str| {
        format!(
            r#"raw {{"method":"session/update","params":{{"sessionId":"SESSION","update":{{"sessionUpdate":"plan","entries":[{{"content":"Look","priority":"low","status":"{status}"}}]}}}}}}"#
        )
    };
    let script = [plan("pending"), plan("pending"), plan("completed"), "say End.".to_owned()];
    world.run(&["new", "--name", "one", "--agent", &agent, &script.join("\n")]).code(0);
    world.run(&["wait", "one"]).code(0);
    let log = log_of(&world);
    assert_eq!(log.matches("[ ] Look").count(), 1, "{log}");
    assert_eq!(log.matches("[x] Look").count(), 1, "{log}");
}
