//! Sessions in folders that several machines share. In these tests, they only have the same names.

use std::fs;
use std::time::Instant;

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::forwarding::first_ask;
use super::{database, json, listed, member, reachable, wait_until, wait_until_gone};
use crate::world::{World, patience};

/// A machine with the place `work` and a folder `project` in it. Returns also the path of that folder.
fn with_place(world: World) -> (World, String) {
    fs::create_dir_all(world.path("shared/project")).unwrap();
    let place = world.path("shared").canonicalize().unwrap();
    world.config(&format!("[fleet]\nplaces = {{ work = {:?} }}\n", place.display().to_string()));
    (world, place.join("project").to_str().unwrap().to_owned())
}

/// The machine and the folder of a session in a list.
fn place(world: &World, name: &str) -> (Value, Value) {
    let listed = listed(world, name);
    (listed["machine"].clone(), listed["workspace"].clone())
}

#[test]
fn a_session_in_a_place_continues_on_another_machine_that_has_it() {
    let (server, url) = database();
    let (one, on_one) = with_place(reachable(&url, "m1"));
    let (two, on_two) = with_place(reachable(&url, "m2"));
    let three = reachable(&url, "m3");
    two.run(&["daemon", "start"]).code(0);
    let new = ["new", "--name", "shared", "--cwd", &on_one];
    one.run(&new).code(0);
    one.run(&["prompt", "shared", "shell: pwd > here"]).code(0);
    first_ask(&one, "shared");
    assert_eq!(place(&two, "shared"), ("m1".into(), (&*on_one).into()));

    kill_process(one.daemon().unwrap(), Signal::KILL).unwrap();
    let by = Instant::now() + patience();
    while place(&two, "shared") != (Value::Null, (&*on_two).into()) {
        assert!(Instant::now() < by, "the session is still on m1: {}", listed(&two, "shared"));
    }
    // Another machine has it for a moment, to end its cut work.
    let by = Instant::now() + patience();
    while listed(&three, "shared")["machine"] != "work" {
        assert!(Instant::now() < by, "{}", listed(&three, "shared"));
    }
    assert_eq!(listed(&three, "shared")["away"], Value::Null);
    // It is opened in the folder of the other machine, and asks again if the command may run there.
    two.run(&["prompt", "shared", "say Later."]).code(0);
    let log = three.run(&["logs", "shared"]).code(0).out;
    assert!(log.contains(&format!("moved to m2:{on_two}")), "{log}");
    assert_eq!(listed(&one, "shared")["machine"], "m2");
    let ask = first_ask(&two, "shared");
    let shown = two.run(&["show", "shared"]).code(0).out;
    assert!(shown.contains(&format!("in {on_two}\n")) && !shown.contains(&on_one), "{shown}");
    two.run(&["approve", &ask]).code(0);
    two.run(&["release", "shared"]);
    two.run(&["wait", "shared"]).code(0);
    assert_eq!(fs::read_to_string(format!("{on_two}/here")).unwrap().trim(), on_two);
    assert!(!fs::exists(format!("{on_one}/here")).unwrap());
    assert!(three.run(&["logs", "shared"]).code(0).out.contains("Later."));

    // Each of them opens it, also for a machine that does not have the place: the next one, if one of
    // them can't be reached.
    two.run(&["close", "shared"]).code(0);
    let (without_address, _) = with_place(member(&url, "m0"));
    without_address.run(&["daemon", "start"]).code(0);
    one.run(&["new", "--name", "other"]).code(0);
    // Nothing listens there.
    let address = "UPDATE holdpoint.machines SET address = '127.0.0.1:1' WHERE name = 'm1'";
    server.query("fleet", address);
    let by = Instant::now() + patience();
    while !three.run(&["hold", "other"]).err.contains("can't be reached") {
        assert!(Instant::now() < by, "m3 still reaches m1");
    }
    three.run(&["prompt", "shared", "say Next."]).code(0);
    three.run(&["wait", "shared"]).code(0);
    assert_eq!(place(&two, "shared"), (Value::Null, (&*on_two).into()));
    without_address.run(&["daemon", "stop"]).code(0);
    wait_until_gone(&three, "m0");
    // It has its own address again.
    one.run(&["daemon", "restart"]).code(0);
    wait_until(&three, "m1", true);
    two.run(&["close", "shared"]).code(0);
    two.run(&["daemon", "stop"]).code(0);
    wait_until_gone(&three, "m2");
    three.run(&["prompt", "shared", "say Again."]).code(0);
    three.run(&["wait", "shared"]).code(0);
    assert_eq!(place(&one, "shared"), (Value::Null, (&*on_one).into()));
    assert!(one.run(&["show", "shared"]).code(0).out.contains(&format!("folder    {on_one}\n")));
    one.run(&["close", "shared"]).code(0);
    one.run(&["daemon", "stop"]).code(0);
    wait_until_gone(&three, "m1");
    let away = three.run(&["prompt", "shared", "say No."]).code(1);
    assert!(away.err.contains("works in a folder of `work`"), "{}", away.err);

    // The folder has to exist.
    fs::rename(two.path("shared/project"), two.path("shared/other")).unwrap();
    let missing = two.run(&["prompt", "shared", "say No."]).code(1);
    let why = format!("can't work in {on_two} on the machine `m2`: No such file");
    assert!(missing.err.contains(&why) && missing.err.contains("hint: mount"), "{}", missing.err);
    fs::rename(two.path("shared/other"), two.path("shared/project")).unwrap();
    two.run(&["prompt", "shared", "say Last."]).code(0);
    two.run(&["wait", "shared"]).code(0);
    assert_eq!(place(&two, "shared"), (Value::Null, (&*on_two).into()));
}

#[test]
fn places_are_checked() {
    let (_server, url) = database();
    let world = World::new();
    let many: Vec<_> = (0..33).map(|number| format!("p{number} = '/'")).collect();
    for (places, why) in [
        ("'a:b' = '/w'", "[fleet.places] a:b: a place needs a name of 1 to 63"),
        ("work = 'w'", "[fleet.places] work: its folder needs an absolute path"),
        ("work = '/w/../x'", "[fleet.places] work: its folder needs an absolute path"),
        (&*many.join(", "), "[fleet]: there are more than 32 places"),
    ] {
        world.config(&format!("[fleet]\nplaces = {{ {places} }}\n"));
        let ran = world.run(&["config", "show"]).code(2);
        assert!(ran.err.contains(why) && ran.err.contains("hint: "), "{places}: {}", ran.err);
    }
    // The names of machines are no names of places.
    world.config("[fleet]\nplaces = { m2 = '/w' }\n");
    let join = |world: &World, name: &str| {
        world.run(&["fleet", "join", &url, "--name", name, "--listen", "127.0.0.1:0"])
    };
    let refused = join(&world, "m2").code(1);
    assert!(refused.err.contains("the name of a machine"), "{}", refused.err);
    join(&world, "m1").code(0);
    let other = World::new();
    let refused = join(&other, "m2").code(1);
    assert!(refused.err.contains("the name of a machine"), "{}", refused.err);
    join(&other, "m3").code(0);
    world.config("[fleet]\nplaces = { m3 = '/w' }\n");
    let refused = world.run(&["list"]).code(1);
    assert!(refused.err.contains("the name of a machine"), "{}", refused.err);
    world.config("[fleet]\nplaces = { work = '/w' }\n");
    assert_eq!(json(&world.run(&["list", "--json"]).code(0))["sessions"], Value::Array(vec![]));
}
