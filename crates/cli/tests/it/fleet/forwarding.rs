//! Commands for a session that is live on another machine.

use std::net::TcpListener;
use std::process::Command;
use std::time::Instant;

use holdpoint_common::{Body, Event, Fact, TurnFact};
use holdpoint_tests::tls_server::TlsServer;
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use super::{database, end_in_order, json as parsed, listed, machine, member, reachable};
use crate::world::{Ran, World, patience};

/// The id of the first open ask in the inbox, once there is one.
pub(super) fn first_ask(world: &World, session: &str) -> String {
    world.run(&["wait", session, "--for", "ask"]).code(0);
    let inbox = parsed(&world.run(&["inbox", "--json"]));
    inbox["asks"][0]["ask"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn m_i9_a_session_of_another_machine_is_prompted_answered_held_and_interrupted() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared", "--policy", "all"]).code(0);
    assert_eq!(listed(&two, "shared")["machine"], "m1");

    two.run(&["prompt", "shared", "ask: Which one?"]).code(0);
    let ask = first_ask(&two, "shared");
    two.run(&["answer", &ask, "the blue one"]).code(0);
    two.run(&["wait", "shared", "--for", "idle"]).code(0);
    // The first answer wins, on whichever machine.
    let late = one.run(&["answer", &ask, "the red one"]).code(1);
    assert!(late.err.contains("@m2"), "{}", late.err);

    two.run(&["hold", "shared"]).code(0);
    one.run(&["prompt", "shared", "shell: echo started; sleep 1000"]).code(0);
    assert_eq!(listed(&one, "shared")["status"], "paused");
    let mut attached = two.follow("shared");
    two.run(&["release", "shared"]).code(0);
    attached.wait_output("started");
    let events = one.run(&["logs", "shared", "--json"]).code(0).events();
    assert!(events.iter().any(|event| format!("{event:?}").contains("the blue one")));

    // The receipt names the processes that ended.
    let receipt = two.run(&["interrupt", "shared", "--json"]).code(0);
    let logged = one.run(&["logs", "shared", "--json"]).code(0);
    let ends: Vec<_> = logged.events().into_iter().filter_map(receipt_of).collect();
    assert_eq!(parsed(&receipt)["end"]["receipt"], *ends.last().unwrap(), "{}", receipt.out);
    assert_eq!(parsed(&receipt)["end"]["receipt"]["tools"][0]["name"], "shell", "{}", receipt.out);
    assert!(logged.out.contains("@m2"), "{}", logged.out);

    two.run(&["rename", "shared", "renamed"]).code(0);
    two.run(&["close", "renamed"]).code(0);
    assert_eq!(listed(&one, "renamed")["live"], false);
}

/// The receipt of an event that ends a turn.
fn receipt_of(event: Event) -> Option<Value> {
    let Body::Fact(Fact::Turn(TurnFact::Finished { receipt, .. })) = event.body else {
        return None;
    };
    serde_json::to_value(receipt?).ok()
}

#[test]
fn m_i9_events_of_another_machine_are_the_same_here() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared", "--policy", "all"]).code(0);
    let mut attached = two.follow("shared");
    one.run(&["prompt", "shared", "shell: echo made on one"]).code(0);
    attached.wait_output("made on one");
    one.run(&["wait", "shared"]).code(0);
    // It begins anywhere.
    let all = one.run(&["logs", "shared", "--json"]).code(0).events();
    let middle = all[all.len() / 2].seq.to_string();
    let [here, there] =
        [&two, &one].map(|world| world.run(&["logs", "shared", "--json", "--after", &middle]));
    assert_eq!(here.out, there.out);
    one.run(&["close", "shared"]).code(0);
    end_in_order(attached);
}

#[test]
fn a_command_that_waits_for_a_machine_that_dies_ends() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    let mut attached = two.follow("shared");
    one.run(&["prompt", "shared", "say begun"]).code(0);
    one.run(&["prompt", "shared", "hang"]).code(0);
    attached.wait_for("the hanging turn", |event| format!("{event:?}").contains("hang"));
    // A machine that is stopped keeps its connections, but not its lease.
    kill_process(one.daemon().unwrap(), Signal::STOP).unwrap();
    let (status, _, err) = attached.end();
    assert_eq!(machine(&two, "m1")["hasLease"], false);
    kill_process(one.daemon().unwrap(), Signal::CONT).unwrap();
    assert!(!status.success(), "{status}");
    assert!(err.contains("works in a folder of `m1`"), "{err}");
}

/// Waits until a list shows that the machine of a session does not respond, or that it does.
fn wait_for_absence(world: &World, session: &str, is_away: bool) {
    let by = Instant::now() + patience();
    while listed(world, session)["away"]["seen"].is_u64() != is_away {
        assert!(Instant::now() < by, "{}", listed(world, session));
    }
}

#[test]
fn m_i13_sessions_of_a_machine_that_was_killed_are_shown_with_the_time_it_was_last_seen() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    one.run(&["prompt", "shared", "shell: touch a"]).code(0);
    let ask = first_ask(&two, "shared");
    wait_for_absence(&two, "shared", false);
    let shown = listed(&two, "shared");
    let show = two.run(&["show", "shared"]).code(0).out;
    let folder = shown["workspace"].as_str().unwrap();
    assert!(show.contains("\nmachine   m1\n"), "{show}");
    assert!(show.contains(&format!("\nfolder    m1:{folder}\n")), "{show}");

    kill_process(one.daemon().unwrap(), Signal::KILL).unwrap();
    wait_for_absence(&two, "shared", true);
    let list = two.run(&["list"]).code(0);
    assert!(list.out.contains(" not responding, asks (shell) "), "{}", list.out);
    let absence = "m1 does not respond, last seen ";
    assert!(list.err.contains(absence), "{}", list.err);
    let inbox = two.run(&["inbox"]).code(0);
    assert!(inbox.out.contains(&ask) && inbox.err.contains(absence), "{inbox:?}");
    assert!(inbox.err.contains(" ago: shared\n"), "{}", inbox.err);
    let asked = parsed(&two.run(&["inbox", "--json"]))["asks"][0].clone();
    assert_eq!(asked["machine"], "m1");
    assert!(asked["away"]["seen"].is_u64(), "{asked}");
    let show = two.run(&["show", "shared"]).code(0).out;
    assert!(show.contains(&format!("\nmachine   {absence}")), "{show}");
    assert!(show.contains("\nstatus    not responding, asks (shell) for "), "{show}");

    // It is back.
    assert_eq!(listed(&one, "shared")["away"], Value::Null);
    wait_for_absence(&two, "shared", false);
    assert!(!two.run(&["list"]).err.contains(absence));
}

#[test]
fn the_end_of_another_daemon_is_not_that_of_the_own_one() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    let mut attached = two.follow("shared");
    attached.wait_for("the opening", |event| event.seq == 1);
    one.run(&["daemon", "stop"]).code(0);
    let (_, _, err) = attached.end();
    assert!(!err.contains("stopped") && err.contains("`m1`"), "{err}");
}

#[test]
fn a_change_of_the_model_of_another_machine_is_sent_without_the_keys_of_the_client() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    let on = |world: &World, name: &str| {
        world.run(&["new", "--name", name]).code(0).out.trim().to_owned()
    };
    let (shared, own) = (on(&one, "shared"), on(&two, "own"));
    let change = |session: &str| {
        let providers = json!({ "openai": { "api_key": "secret of m2" } });
        let body = json!({ "model": "openai/x", "supplies": { "providers": providers } });
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-w", "%{http_code}", "--unix-socket"])
            .arg(two.path("run/holdpoint/holdpoint.sock"));
        curl.args(["--data", &body.to_string()]);
        curl.arg(format!("http://holdpoint/v1/sessions/{session}/model"));
        Ran::of(curl).out
    };
    assert_eq!(change(&own), "204");
    // The key does not leave the machine of the client.
    let refused = change(&shared);
    assert!(refused.ends_with("422") && refused.contains("modelSetup"), "{refused}");
}

#[test]
fn m_i14_only_machines_of_the_fleet_are_served_and_only_for_sessions() {
    let (server, url) = database();
    let (one, two) = (reachable(&url, "m1"), member(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    two.run(&["daemon", "start"]).code(0);
    let address = machine(&one, "m1")["address"].as_str().unwrap().to_owned();
    let folder = two.path("keys");
    std::fs::create_dir(&folder).unwrap();
    let record: Value =
        serde_json::from_slice(&std::fs::read(two.path("data/holdpoint/fleet.json")).unwrap())
            .unwrap();
    let pem = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = pem("certificate", record["certificate"].as_str().unwrap());
    let key = pem("key", record["key"].as_str().unwrap());
    let made = rcgen::generate_simple_self_signed(["holdpoint".to_owned()]).unwrap();
    let others = [
        pem("other certificate", &made.cert.pem()),
        pem("other key", &made.signing_key.serialize_pem()),
    ];
    let ask = |path: &str, certificate: Option<(&str, &str)>, more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["-sSk", "-w", "%{http_code}", "--max-time", "60"]).args(more);
        if let Some((certificate, key)) = certificate {
            curl.args(["--cert", certificate, "--key", key]);
        }
        curl.arg(format!("https://{address}{path}"));
        Ran::of(curl)
    };
    let ours = Some((&*certificate, &*key));
    let session = "/v1/sessions/shared";
    // This is how a machine asks. The other one learns soon that it has started.
    let by = Instant::now() + patience();
    let served = loop {
        let ran = ask(session, ours, &[]);
        if ran.code == Some(0) {
            break ran.out;
        }
        assert!(Instant::now() < by, "{ran:?}");
    };
    assert!(served.ends_with("200") && served.contains("\"shared\""), "{served}");
    // No certificate, and one that the fleet does not know.
    for wrong in [None, Some((&*others[0], &*others[1]))] {
        let refused = ask(session, wrong, &[]);
        assert!(
            refused.code != Some(0) && !refused.out.contains("shared"),
            "{wrong:?} {refused:?}"
        );
    }
    let older = ask(session, ours, &["--tls-max", "1.2"]);
    assert!(older.code != Some(0), "{older:?}");
    for path in ["/v1/stop", "/v1/asks", "/v1/import"] {
        let refused = ask(path, ours, &["--data", "{}"]);
        assert!(refused.out.ends_with("403"), "{path}: {refused:?}");
    }
    // A machine that was removed is refused, and its streams end.
    let mut attached = two.follow("shared");
    attached.wait_for("the opening", |event| event.seq == 1);
    server.query("fleet", "DELETE FROM holdpoint.machines WHERE name = 'm2'");
    let (status, _, err) = attached.end();
    assert!(!status.success(), "{err}");
    let by = Instant::now() + patience();
    while ask(session, ours, &[]).code == Some(0) {
        assert!(Instant::now() < by, "m2 is still served");
    }
}

#[test]
fn m_i14_a_server_with_the_address_of_a_machine_gets_no_request_of_the_others() {
    let (server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    two.run(&["prompt", "shared", "say Hello."]).code(0);
    // Behind it is nothing.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let other = TlsServer::before(closed).address;
    let statement = format!("UPDATE holdpoint.machines SET address = '{other}' WHERE name = 'm1'");
    server.query("fleet", &statement);
    // The machine learns the address soon.
    let by = Instant::now() + patience();
    let refused = loop {
        let ran = two.run(&["prompt", "shared", "say Hello."]);
        if ran.code != Some(0) {
            break ran.err;
        }
        assert!(Instant::now() < by, "{ran:?}");
    };
    assert!(refused.contains(&other.to_string()) && refused.contains("certificate"), "{refused}");
}

#[test]
fn m_i18_a_tool_call_on_one_machine_does_not_reach_a_session_of_another() {
    let (_server, url) = database();
    let (one, two) = (reachable(&url, "m1"), reachable(&url, "m2"));
    one.run(&["new", "--name", "shared"]).code(0);
    two.run(&["new", "--name", "own", "--sandbox", "off", "--policy", "all"]).code(0);
    let program = crate::world::program().display();
    let command = format!("'{program}' prompt shared \"say from a tool\" 2>&1 || true");
    two.run(&["prompt", "own", &format!("shell: {command}")]).code(0);
    two.run(&["wait", "own"]).code(0);
    let log = two.run(&["logs", "own"]).code(0).out;
    assert!(log.contains("a command that an agent has started can't use holdpoint"), "{log}");
    assert!(!one.run(&["logs", "shared"]).code(0).out.contains("from a tool"));
    // The user can.
    two.run(&["prompt", "shared", "say from the user"]).code(0);
    two.run(&["wait", "shared"]).code(0);
    assert!(one.run(&["logs", "shared"]).code(0).out.contains("from the user"));
}
