//! Failing saves, as every client shows them.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::tty::Tty;
use crate::world::World;

#[test]
fn t_u9_unsaved_data_is_shown_in_every_client() {
    let world = World::new();
    world.opens("one", &["--policy", "all"], "say Hello.");
    let tty = Tty::run(&world, &["attach", "one"]);
    tty.wait_for("done: 1 step");
    let mut plain = world.command(&["attach", "--plain", "one"]).spawn().unwrap();
    let mut lines = BufReader::new(plain.stderr.take().unwrap()).lines();
    let mut wait_for_line =
        |words: &str| while !lines.next().expect("the output ended").unwrap().contains(words) {};
    wait_for_line("done: 1 step");
    let (there, away) =
        (world.path("data/holdpoint/sessions.db"), world.path("data/holdpoint/away.db"));
    std::fs::rename(&there, &away).unwrap();
    assert!(world.run(&["prompt", "one", "say More."]).code(0).out.contains("not saved"));
    // Commands with few facts report it, too.
    assert_eq!(world.run(&["rename", "one", "uno"]).code(0).out, "renamed, not saved\n");
    let held = world.run(&["hold", "uno"]).code(0).out;
    assert!(held.starts_with("uno: ⏸ PAUSED") && held.ends_with(", not saved\n"), "{held}");
    assert_eq!(
        world.run(&["interrupt", "uno"]).code(0).out,
        "uno: nothing was running, not saved\n"
    );
    let released: Value =
        serde_json::from_str(&world.run(&["release", "uno", "--json"]).code(0).out).unwrap();
    assert_eq!(released["saved"], false);
    assert_eq!(world.run(&["rename", "uno", "one"]).code(0).out, "renamed, not saved\n");
    tty.wait_for("not saved: ");
    wait_for_line("not saved: ");
    // A later client has missed the notice and shows the state all the same.
    let late = Tty::run(&world, &["attach", "one"]);
    late.wait_for("More.\n  done: 1 step");
    late.wait_for(" not saved\n");
    assert!(world.run(&["status"]).code(0).out.contains("not saved: "));
    assert!(world.run(&["show", "one"]).code(0).out.contains("saved     no"));
    std::fs::rename(&away, &there).unwrap();
    tty.wait_for("saved again");
    wait_for_line("saved again");
    assert!(!world.run(&["status"]).code(0).out.contains("not saved"));
    assert_eq!(world.run(&["rename", "one", "one"]).code(0).out, "renamed\n");
    assert!(!world.run(&["show", "one"]).code(0).out.contains("saved     no"));
    late.wait_until("the notice to disappear", |screen| !screen.contains(" not saved\n"));
    for mut tty in [tty, late] {
        tty.press("\x18d");
        tty.end(0);
    }
    plain.kill().unwrap();
    plain.wait().unwrap();
}
