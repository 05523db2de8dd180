//! Widening the sandbox of a command: each step after an ask, for the exact command.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;

use holdpoint_common::{Ask, AskRequest};
use serde_json::{Value, json};

use super::client::Api;
use super::harness::DaemonWorld;
use super::sandbox::open_under;
use crate::world::{Ran, program};

const LEVELS: [&str; 2] = ["bwrap", "landlock"];

fn open(house: &DaemonWorld, level: &str, policy: &str) -> String {
    open_under(policy, house, &json!({ "level": level }))
}

/// Calls `shell` with this input and answers the asks that it raises. Returns the asks and the log
/// of the session.
fn call(house: &DaemonWorld, session: &str, input: &Value, answer: &Value) -> (Vec<Ask>, String) {
    let api = Api::new(house);
    let mut stream = api.attach(session, "?limit=0&snapshots=true");
    api.prompt(session, &format!("call shell {input}"));
    let (mut asks, mut has_begun) = (Vec::<Ask>::new(), false);
    loop {
        let snapshot: holdpoint_common::Snapshot =
            stream.until(|frame| frame.kind == "snapshot").read();
        for ask in &snapshot.asks {
            if !asks.iter().any(|known| known.id == ask.id) {
                api.answer(&ask.id.to_string(), answer).ok();
                asks.push(ask.clone());
            }
        }
        has_begun |= snapshot.turn.is_some();
        if has_begun && snapshot.turn.is_none() && snapshot.queue.is_empty() {
            return (asks, house.run(&["logs", session]).code(0).out);
        }
    }
}

fn message(ask: &Ask) -> (&str, &str) {
    match &ask.request {
        AskRequest::Pause(pause) => (&pause.message, pause.details.as_deref().unwrap_or_default()),
        AskRequest::Question(_) => panic!("{ask:?}"),
    }
}

fn approve() -> Value {
    json!({ "type": "approve" })
}

/// A command that reaches a port of this machine, and the listener.
fn connecting() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo REACHED | tr A-Z a-z"))
}

#[test]
fn m_g3_a_command_gets_the_network_after_an_ask() {
    let house = DaemonWorld::new();
    house.start();
    let (_listener, command) = connecting();
    for level in LEVELS {
        let session = open(&house, level, "sandboxed");
        let (asks, log) = call(&house, &session, &json!({ "command": command }), &approve());
        assert!(asks.is_empty(), "{level}: {asks:?}");
        assert!(!log.contains("reached\n"), "{level}: {log}");
        assert!(log.contains("run it again with \"network\": true"), "{level}: {log}");
        let input = json!({ "command": command, "network": true });
        let (asks, log) = call(&house, &session, &input, &json!({ "type": "deny" }));
        assert_eq!(asks.len(), 1, "{level}");
        assert!(!log.contains("reached\n"), "{level}: {log}");
        let (asks, log) = call(&house, &session, &input, &approve());
        assert_eq!(message(&asks[0]).0, "Run this command with the network?", "{level}");
        assert!(message(&asks[0]).1.starts_with(&command), "{level}: {asks:?}");
        assert!(log.contains("reached\n"), "{level}: {log}");
    }
}

#[test]
fn m_g3_a_command_gets_one_more_folder_after_an_ask() {
    let house = DaemonWorld::new();
    house.start();
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let outside = outside.path().canonicalize().unwrap();
    for level in LEVELS {
        let session = open(&house, level, "sandboxed");
        let file = outside.join(level);
        let command = format!("echo x > {}", file.display());
        let (asks, log) = call(&house, &session, &json!({ "command": command }), &approve());
        assert!(asks.is_empty() && !file.exists(), "{level}: {asks:?}");
        // At `bwrap`, a folder in `/tmp` does not exist.
        let exists = level != "bwrap" || !outside.starts_with("/tmp");
        assert!(!exists || log.contains("run it again with \"writable\""), "{level}: {log}");
        let input = json!({ "command": command, "writable": outside });
        let (asks, _) = call(&house, &session, &input, &json!({ "type": "deny" }));
        assert!(asks.len() == 1 && !file.exists(), "{level}: {asks:?}");
        let (asks, log) = call(&house, &session, &input, &approve());
        let (text, details) = message(&asks[0]);
        assert_eq!(text, "Run this command with a further writable path?", "{level}");
        assert!(
            details.ends_with(&format!("\nmay read and change {}", outside.display())),
            "{details}"
        );
        assert!(file.exists(), "{level}: {log}");
        // Only for that call.
        fs::remove_file(&file).unwrap();
        call(&house, &session, &json!({ "command": command }), &approve());
        assert!(!file.exists(), "{level}");
    }
    // The real folder for temporary files, which a folder of the sandbox replaces otherwise.
    let temporary = tempfile::tempdir_in("/tmp").unwrap();
    for level in LEVELS {
        let session = open(&house, level, "sandboxed");
        let file = temporary.path().join(level);
        let command = format!("echo x > {}", file.display());
        let input = json!({ "command": command, "writable": "/tmp" });
        let (asks, log) = call(&house, &session, &input, &approve());
        assert!(asks.len() == 1 && file.exists(), "{level}: {asks:?}\n{log}");
    }
    // A protected name in the workspace: approved once, with the command.
    fs::create_dir(house.0.work(".husky")).unwrap();
    for level in LEVELS {
        let session = open(&house, level, "sandboxed");
        let file = house.0.work(".husky").join(level);
        let input = json!({ "command": format!("echo x > .husky/{level}"), "writable": ".husky" });
        let (asks, log) = call(&house, &session, &input, &approve());
        assert!(asks.len() == 1 && file.exists(), "{level}: {asks:?}\n{log}");
    }
    let session = open(&house, "bwrap", "sandboxed");
    for (path, why) in [("/none", "does not exist"), ("/", "would be everything")] {
        let input = json!({ "command": "true", "writable": path });
        let (asks, log) = call(&house, &session, &input, &approve());
        assert!(asks.is_empty() && log.contains(why), "{path}: {log}");
    }
}

#[test]
fn m_g3_always_outside_is_for_the_exact_command() {
    let house = DaemonWorld::new();
    house.start();
    // The folder of the daemon is hidden at each level.
    let command = format!("cat {}", house.data().join("daemon.lock").display());
    let content = format!("{}\n", house.pid());
    let always = json!({ "type": "approve", "always": true });
    for level in LEVELS {
        let session = open(&house, level, "sandboxed");
        let (_, log) = call(&house, &session, &json!({ "command": command }), &approve());
        assert!(!log.contains(&content), "{level}: {log}");
        // At `bwrap`, `/tmp` with the folder of the daemon does not exist.
        let advice = "; the sandbox may be the cause: ";
        assert!(level == "bwrap" || log.contains(advice), "{level}: {log}");
        let input = json!({ "command": command, "outside": true });
        let (asks, log) = call(&house, &session, &input, &always);
        assert_eq!(message(&asks[0]).0, "Run this command outside of the sandbox?", "{level}");
        assert!(log.contains(&content), "{level}: {log}");
        let (asks, _) = call(&house, &session, &input, &approve());
        assert!(asks.is_empty(), "{level}: {asks:?}");
        // Another command, another step, and the same in the background.
        for other in [
            json!({ "command": format!("{command} "), "outside": true }),
            json!({ "command": command, "network": true }),
            json!({ "command": command, "outside": true, "background": true }),
        ] {
            let (asks, _) = call(&house, &session, &other, &json!({ "type": "deny" }));
            assert_eq!(asks.len(), 1, "{level}: {other}");
        }
    }
}

#[test]
fn m_g2_without_a_sandbox_a_confirm_says_so_and_a_widening_has_no_effect() {
    let house = DaemonWorld::new();
    house.start();
    let session = open(&house, "off", "ask");
    for input in [json!({ "command": "echo A" }), json!({ "command": "echo B", "network": true })] {
        let (asks, _) = call(&house, &session, &input, &approve());
        assert_eq!(message(&asks[0]).0, "Run this command without a sandbox?");
        assert!(!message(&asks[0]).1.contains("may "), "{asks:?}");
    }
    let shown = house.run(&["show", &session]).code(0).out;
    assert!(shown.contains("sandbox   off (commands have your permissions)\n"), "{shown}");
}

/// A session is in a sandbox unless its client or the configuration says otherwise.
#[test]
fn m_g2_a_new_session_has_the_strongest_sandbox_that_works() {
    let house = DaemonWorld::new();
    house.0.config("[sandbox]\n");
    house.start();
    let api = Api::new(&house);
    let level = |session: &str| api.look(session).settings.sandbox.level.name();
    assert_eq!(level(&api.open("ask")), "bwrap");
    let ran = house.run(&["run", "--in-process", "say hello"]).code(0);
    assert!(ran.err.contains("\nsandbox: bwrap\n"), "{ran:?}");
    // A client that names no sandbox gets that of the daemon's configuration.
    house.0.config("[sandbox]\nlevel = 'landlock'\n");
    house.run(&["daemon", "restart"]).code(0);
    assert_eq!(level(&api.open("ask")), "landlock");
}

/// The names below `localhost` are this machine, which a rule allows here.
#[test]
fn m_g3_a_command_gets_named_domains_after_an_ask() {
    let house = DaemonWorld::new();
    let (address, _server) = saying_reached();
    house.0.config(&format!("[web]\nallow = ['localhost:{}']\n", address.port()));
    house.start();
    let port = address.port();
    let curl = |name: &str| {
        format!("curl -sSf --resolve *:{port}:127.0.0.1 http://{name}.localhost:{port}/")
    };
    let session = open(&house, "bwrap", "sandboxed");
    let (asks, log) = call(&house, &session, &json!({ "command": curl("a") }), &approve());
    assert!(asks.is_empty() && !log.contains("reached\n"), "{asks:?}\n{log}");
    let advice = "run it again with \"domains\": [\"a.localhost\"]";
    let plain = format!("curl -sSf http://a.localhost:{port}/");
    let (_, log) = call(&house, &session, &json!({ "command": plain }), &approve());
    assert!(log.contains(advice), "{log}");

    let input = json!({ "command": curl("a"), "domains": ["a.localhost"] });
    let (asks, log) = call(&house, &session, &input, &json!({ "type": "deny" }));
    assert!(asks.len() == 1 && !log.contains("reached\n"), "{asks:?}\n{log}");
    let always = json!({ "type": "approve", "always": true });
    let (asks, log) = call(&house, &session, &input, &always);
    let (text, details) = message(&asks[0]);
    assert_eq!(text, "Run this command with the network for a.localhost?");
    assert!(details.ends_with("\nmay reach a.localhost and no other host"), "{details}");
    assert_eq!(log.matches("reached\n").count(), 1, "{log}");
    let (asks, log) = call(&house, &session, &input, &approve());
    assert!(asks.is_empty(), "{asks:?}");
    assert_eq!(log.matches("reached\n").count(), 2, "{log}");
    // *Always* is for this command and these domains.
    for other in [
        json!({ "command": curl("b"), "domains": ["a.localhost"] }),
        json!({ "command": curl("a"), "domains": ["a.localhost", "b.localhost"] }),
        json!({ "command": curl("a"), "network": true }),
    ] {
        let (asks, _) = call(&house, &session, &other, &json!({ "type": "deny" }));
        assert_eq!(asks.len(), 1, "{other}");
    }
    // Another host is refused, and the result names it.
    let input = json!({ "command": curl("b"), "domains": ["a.localhost"] });
    let (_, log) = call(&house, &session, &input, &approve());
    assert_eq!(log.matches("reached\n").count(), 2, "{log}");
    assert!(log.contains("did not let the command reach b.localhost: if it must"), "{log}");
    // The control: the whole network reaches it.
    let input = json!({ "command": curl("b"), "network": true });
    let (_, log) = call(&house, &session, &input, &approve());
    assert_eq!(log.matches("reached\n").count(), 3, "{log}");
    // A job gets them, too.
    let command = format!("{} > job; echo ended > ended", curl("a"));
    let input = json!({ "command": command, "domains": ["a.localhost"], "background": true });
    call(&house, &session, &input, &approve());
    call(&house, &session, &json!({ "command": "until test -e ended; do :; done" }), &approve());
    assert_eq!(fs::read_to_string(house.0.work("job")).unwrap(), "reached\n");

    let session = open(&house, "landlock", "sandboxed");
    let input = json!({ "command": curl("a"), "domains": ["a.localhost"] });
    let (asks, log) = call(&house, &session, &input, &approve());
    assert!(asks.is_empty() && log.contains("at the level landlock"), "{asks:?}\n{log}");
    // Without a sandbox, the input has no effect.
    let session = open(&house, "off", "ask");
    let (asks, log) = call(&house, &session, &input, &approve());
    assert_eq!(message(&asks[0]).0, "Run this command without a sandbox?");
    assert!(log.contains("reached\n"), "{log}");
}

/// Opens tunnels through the proxy until it is refused one, and keeps them open. It prints how many
/// there are.
const TUNNELS: &str = r#"
use IO::Socket::INET;
my ($target) = @ARGV;
my ($proxy) = $ENV{http_proxy} =~ m{//([^/]+)};
my @open;
while (my $tunnel = IO::Socket::INET->new(PeerAddr => $proxy)) {
    print $tunnel "CONNECT $target HTTP/1.1\r\n\r\n";
    (<$tunnel> // "") =~ / 200 / or last;
    push @open, $tunnel;
}
rename("count", "counted") if open(F, ">", "count") and print(F scalar @open) and close(F);
select(undef, undef, undef, 0.05) until -e "end";
"#;

/// Without descriptors, the daemon accepts no client.
#[test]
fn m_g3_tunnels_leave_the_daemon_the_half_of_its_descriptors() {
    const LIMIT: usize = 256;
    let house = DaemonWorld::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("a.localhost:{}", listener.local_addr().unwrap().port());
    house.0.config(&format!("[web]\nallow = ['{}']\n", target.trim_start_matches("a.")));
    let mut start = Command::new("bash");
    start.args(["-c", &format!("ulimit -n {LIMIT}; exec \"$0\" daemon start")]).arg(program());
    start.env_clear().envs(house.0.env());
    Ran::of(start).code(0);
    let session = open(&house, "bwrap", "all");
    fs::write(house.0.work("tunnels.pl"), TUNNELS).unwrap();
    let command = format!("perl tunnels.pl {target}");
    let input = json!({ "command": command, "domains": ["a.localhost"], "background": true });
    call(&house, &session, &input, &approve());
    let wait = json!({ "command": "until test -e counted; do sleep 0.05; done" });
    call(&house, &session, &wait, &approve());
    let count: usize = fs::read_to_string(house.0.work("counted")).unwrap().parse().unwrap();
    assert!((1..LIMIT / 4).contains(&count), "{count}");
    let open = house.status()["descriptors"]["open"].as_u64().unwrap();
    assert!(open >= 2 * count as u64, "each tunnel has two: {open}");
    house.run(&["list"]).code(0);
    fs::write(house.0.work("end"), "").unwrap();
}

/// A server that says `reached`.
fn saying_reached() -> (SocketAddr, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            lines.find(String::is_empty);
            let answer =
                "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nreached\n";
            let _ = (&stream).write_all(answer.as_bytes());
        }
    });
    (address, server)
}
