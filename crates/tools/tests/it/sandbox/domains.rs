//! The network for named domains: a program in a sandbox reaches them through a proxy, and nothing
//! else.

use std::fs;
use std::io::{Read as _, Write};
use std::net::UdpSocket;
use std::sync::mpsc;
use std::time::Instant;

use holdpoint_common::{PolicyMode, PolicyRules, SandboxLevel};
use holdpoint_tools::testing::{Bench, Called, in_own_process, patience};
use holdpoint_tools::{
    Domains, Exit, Intent, Policy, Processes, Read, Sandbox, SandboxProfile, Shell, Supervisor,
    Tool, ToolError, Widening, Workspace,
};
use serde_json::{Value, json};

use super::{GRACE, World, below, read_all};
use crate::guard::server::Server;
use crate::web::support::wait_until;

/// Calls curl for hosts that are this machine. Without a proxy, the option names their address.
const CURL: &str = "curl -sS --max-time 60 --resolve *:PORT:127.0.0.1";

fn domains(names: &[&str]) -> Domains {
    Domains::parse(&names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap()
}

/// A profile with a rule for a server on this machine: names below `localhost` reach it.
fn profile(world: &World, port: u16) -> SandboxProfile {
    world.profile().host_rules(&[format!("localhost:{port}")], &[])
}

fn reaching(world: &World, profile: SandboxProfile, names: &[&str]) -> Option<Sandbox> {
    let sandbox = world.sandbox(SandboxLevel::Bwrap, profile).unwrap();
    sandbox.widened(&[Widening::Domains(domains(names))])
}

fn run(world: &World, sandbox: Option<Sandbox>, script: &str) -> String {
    let processes = Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(sandbox);
    let mut process = processes.spawn(world.spec(script)).unwrap();
    let output = read_all(&mut process);
    let (_, ended) = process.finish();
    assert!(ended.not_ended.is_empty(), "{script}: {ended:?}");
    output
}

/// A server that says `REACHED`, and under `/to/HOST` redirects to a host.
fn server() -> Server {
    Server::answering("127.0.0.1:0", |request, stream| {
        let path = request.head.split(' ').nth(1).unwrap_or_default();
        let answer = match path.split_once("/to/") {
            Some((_, host)) => format!(
                "HTTP/1.1 302 Found\r\nLocation: http://{host}/\r\nContent-Length: 0\r\n\
                 Connection: close\r\n\r\n"
            ),
            None => "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nREACHED\n"
                .to_owned(),
        };
        let _ = stream.write_all(answer.as_bytes());
    })
}

fn without_bwrap(world: &World) -> bool {
    !world.levels().contains(&SandboxLevel::Bwrap)
}

#[test]
fn m_g3_only_the_named_domains_are_reached() {
    let world = World::new();
    if without_bwrap(&world) {
        return;
    }
    let server = server();
    let port = server.port().to_string();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp_port = udp.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while udp.recv_from(&mut [0]).and_then(|(_, from)| udp.send_to(b"x", from)).is_ok() {}
    });
    let udp_attack = format!(
        "perl -MSocket -e 'socket(S, AF_INET, SOCK_DGRAM, 0) and connect(S, \
         pack_sockaddr_in({udp_port}, inet_aton(\"127.0.0.1\"))) and send(S, \"x\", 0) and \
         defined(recv(S, my $x, 1, 0)) and print \"REACHED\"'"
    );
    // The script, and whether it succeeds with the domains.
    let scripts = [
        ("CURL http://named.localhost:PORT/", true),
        ("CURL http://Named.LocalHost.:PORT/", true),
        ("CURL -p -x \"$HTTPS_PROXY\" http://named.localhost:PORT/", true),
        ("CURL http://a.below.localhost:PORT/", true),
        ("CURL -L http://named.localhost:PORT/to/a.below.localhost:PORT", true),
        ("CURL http://other.localhost:PORT/", false),
        ("CURL http://below.localhost:PORT/", false),
        ("CURL http://a.named.localhost:PORT/", false),
        ("CURL http://named.localhost:PORT/to/x http://other.localhost:PORT/", false),
        ("CURL -p -x \"$HTTPS_PROXY\" http://other.localhost:PORT/", false),
        ("CURL -H 'Host: named.localhost' http://other.localhost:PORT/", false),
        ("CURL -L http://named.localhost:PORT/to/other.localhost:PORT", false),
        ("CURL -L http://named.localhost:PORT/to/127.0.0.1:PORT", false),
        ("CURL http://127.0.0.1:PORT/", false),
        ("CURL -p -x \"$HTTPS_PROXY\" http://127.0.0.1:PORT/", false),
        ("CURL -p -x \"$HTTPS_PROXY\" http://0x7f000001:PORT/", false),
        ("CURL --noproxy '*' http://named.localhost:PORT/", false),
        ("exec 3<> /dev/tcp/127.0.0.1/PORT && echo REACHED", false),
        (&udp_attack, false),
    ];
    for (script, expected) in scripts {
        let script = script.replace("CURL", CURL).replace("PORT", &port);
        let profile = profile(&world, server.port());
        let sandbox = reaching(&world, profile.clone(), &["named.localhost", "*.below.localhost"]);
        let output = run(&world, sandbox, &script);
        assert_eq!(output.contains("REACHED"), expected, "{script}: {output}");
        // The control: with the whole network, each of them succeeds.
        let output = world.run_with(SandboxLevel::Bwrap, profile.network(true), &script);
        assert!(output.contains("REACHED"), "{script}: {output}");
    }
}

/// A name does not make an address public.
#[test]
fn m_g3_a_named_domain_in_a_private_network_needs_a_rule() {
    let world = World::new();
    if without_bwrap(&world) {
        return;
    }
    let server = server();
    let script = format!("curl -sS http://named.localhost:{}/", server.port());
    let port_rule = format!("localhost:{}", server.port());
    for (allow, deny, expected) in [
        (vec![], vec![], "at a private address"),
        // Otherwise a program could control the browsers of the user.
        (vec!["localhost".to_owned()], vec![], "at a private address"),
        (vec![port_rule.clone()], vec!["named.localhost".to_owned()], "web.deny"),
        (vec![port_rule], vec![], "REACHED"),
    ] {
        let profile = world.profile().host_rules(&allow, &deny);
        let output = run(&world, reaching(&world, profile, &["named.localhost"]), &script);
        assert!(output.contains(expected), "{allow:?}, {deny:?}: {output}");
    }
}

#[test]
fn m_g3_a_program_with_domains_starts_as_any_other() {
    let world = World::new();
    if without_bwrap(&world) {
        return;
    }
    let sandbox = reaching(&world, world.profile(), &["named.example"]);
    let script = "echo $http_proxy $https_proxy $HTTP_PROXY $HTTPS_PROXY ${NO_PROXY-none}";
    let output = run(&world, sandbox.clone(), script);
    let proxies: Vec<_> = output.split_whitespace().collect();
    assert!(proxies[0].starts_with("http://127.0.0.1:"), "{output}");
    assert_eq!(proxies, [proxies[0], proxies[0], proxies[0], proxies[0], "none"]);
    // It inherits no further file, and no process relays its data.
    let script = "ls -l /proc/self/fd /proc/*/fd 2> /dev/null | grep -c socket: ; \
                  set -- /proc/[0-9]*; echo $#; head -c 1 | wc -c";
    let expected = run(&world, world.sandbox(SandboxLevel::Bwrap, world.profile()), script);
    let mut lines = expected.lines();
    assert_eq!(lines.next(), Some("0"), "{expected}");
    let output = run(&world, sandbox.clone(), script);
    assert_eq!(output.lines().skip(1).collect::<Vec<_>>(), lines.collect::<Vec<_>>());
    // The first process of the sandbox has a closed pair of sockets as standard input.
    assert_eq!(output.lines().next(), Some("1"), "{output}");

    let processes = Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(sandbox);
    let mut process = processes.spawn(world.spec("echo out; exit 7")).unwrap();
    assert_eq!(read_all(&mut process), "out\n");
    assert_eq!(process.finish().0, Exit::Code(7));
    let mut missing = world.spec("");
    missing.program = "/none".into();
    let mut process = processes.spawn(missing).unwrap();
    let output = read_all(&mut process);
    assert!(output.contains("can't be started in the sandbox: No such file"), "{output}");
    assert_eq!(process.finish().0, Exit::Code(1));
}

/// The sockets of this process, and its threads that serve a proxy, when no program is watched.
fn settled_traces() -> (usize, usize) {
    let is_watch = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "holdpoint-watch\n")
    };
    while fs::read_dir("/proc/self/task").unwrap().flatten().any(|task| is_watch(&task)) {
        std::thread::yield_now();
    }
    traces()
}

fn traces() -> (usize, usize) {
    let count = |folder: &str, is_counted: &dyn Fn(&std::path::Path) -> bool| {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.filter(|entry| is_counted(&entry.path())).count()
    };
    let is_socket = |path: &std::path::Path| {
        fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    let serves = |path: &std::path::Path| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "domain-proxy\n")
    };
    (count("/proc/self/fd", &is_socket), count("/proc/self/task", &serves))
}

#[test]
fn m_g3_nothing_is_left_of_the_proxy_after_the_call() {
    // The proxies of other tests would be counted.
    if !in_own_process() {
        return;
    }
    let world = World::new();
    if without_bwrap(&world) {
        return;
    }
    let (sender, accepted) = mpsc::channel();
    let server = Server::accepting("127.0.0.1:0", move |stream| sender.send(stream).unwrap());
    let sandbox = reaching(&world, profile(&world, server.port()), &["named.localhost"]);
    // The first runtime in a process may open sockets for the whole process.
    run(&world, sandbox.clone(), "true");
    let before = settled_traces();
    let processes = Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(sandbox);
    // A process that leaves its session, with an open tunnel.
    let script = format!(
        "setsid curl -sS -p -x $HTTPS_PROXY http://named.localhost:{}/ & echo started; wait",
        server.port()
    );
    let mut process = processes.spawn(world.spec(&script)).unwrap();
    let deadline = Some(Instant::now() + patience());
    assert_eq!(process.read_by(&mut [0; 64], deadline).unwrap(), Read::Bytes(8));
    let mut stream = accepted.recv_timeout(patience()).unwrap();
    assert_eq!(traces().1, before.1 + 1);
    let pid = process.id();
    let ended = processes.finish();
    assert!(ended.not_ended.is_empty() && below(pid).is_empty(), "{ended:?}");
    drop(process);
    // The tunnel is closed: the end comes after the request.
    stream.read_to_end(&mut Vec::new()).unwrap();
    drop(stream);
    // A list of threads may miss one while another ends.
    wait_until("the sockets and the proxy are gone", || settled_traces() == before);
}

#[test]
fn m_g3_the_level_landlock_has_no_single_domains() {
    let world = World::new();
    let Some(sandbox) = world.sandbox(SandboxLevel::Landlock, world.profile()) else { return };
    if sandbox.refusal().is_some() {
        return;
    }
    let widened = sandbox.widened(&[Widening::Domains(domains(&["named.example"]))]);
    let processes = Processes::new(Supervisor::ThisProgram, GRACE).sandboxed(widened);
    let error = processes.spawn(world.spec("echo ran > ran")).unwrap_err().to_string();
    assert!(error.contains("at the level landlock"), "{error}");
    assert!(!world.path("work/ran").exists());
    let in_sandbox = workspace(&world, Some(sandbox.clone()));
    let error = intent(&in_sandbox, &["named.example"]).unwrap_err().to_string();
    assert!(error.contains("\"network\": true"), "{error}");
    // A failed command is not advised to use them.
    let bench = Bench::within(world.path("work")).sandbox(Some(sandbox));
    let called = shell(&bench, "echo 'Could not resolve host: named.example'; exit 1");
    assert!(result_of(&called).contains("with \"network\": true"), "{called:?}");
}

fn workspace(world: &World, sandbox: Option<Sandbox>) -> Workspace {
    let policy = Policy::new(PolicyMode::Ask, &PolicyRules::default(), None).unwrap();
    Workspace::new(world.path("work"), world.env(), policy).with_sandbox(sandbox)
}

fn intent(workspace: &Workspace, names: &[&str]) -> Result<Intent, ToolError> {
    Shell::new().intent(&json!({ "command": "true", "domains": names }), workspace)
}

fn shell(bench: &Bench, command: &str) -> Called {
    bench.call(Shell::new(), json!({ "command": command }))
}

fn result_of(called: &Called) -> &str {
    &called.result.as_ref().unwrap().output
}

#[test]
fn m_g3_domains_are_names_of_hosts() {
    let world = World::new();
    if without_bwrap(&world) {
        return;
    }
    let sandbox = world.sandbox(SandboxLevel::Bwrap, world.profile());
    let workspace = workspace(&world, sandbox);
    let shown = |names: &[&str]| {
        let intent = intent(&workspace, names).unwrap();
        (intent.message, intent.details.unwrap(), intent.always.unwrap())
    };
    let (message, details, always) = shown(&["static.crates.io", "Crates.IO.", "crates.io"]);
    assert_eq!(message, "Run this command with the network for crates.io, static.crates.io?");
    assert!(
        details.ends_with("\nmay reach crates.io, static.crates.io and no other host"),
        "{details}"
    );
    // The same set of domains has the same *always*, and no other has.
    assert_eq!(always, shown(&["crates.io", "static.crates.io"]).2);
    assert_ne!(always, shown(&["crates.io"]).2);
    assert_ne!(always, shown(&["crates.io", "*.crates.io"]).2);
    let four = ["a.example", "b.example", "c.example", "d.example"];
    let (message, details, _) = shown(&four);
    assert!(message.contains("the network for 4 domains") && details.contains(four[3]));

    let long = format!("{}example", "a.".repeat(130));
    let label = format!("{}.example", "a".repeat(64));
    for (name, why) in [
        ("", "write only the name of a host"),
        ("https://crates.io", "write only the name of a host"),
        ("crates.io:443", "write only the name of a host"),
        ("crates.io/x", "write only the name of a host"),
        ("a..example", "write only the name of a host"),
        ("a b.example", "write only the name of a host"),
        ("crates.*.io", "write only the name of a host"),
        ("*", "write only the name of a host"),
        ("*.io", "needs a domain with a dot"),
        ("127.0.0.1", "an address can't be named"),
        ("0x7f.1", "an address can't be named"),
        ("1.0x7f", "an address can't be named"),
        ("[::1]", "write only the name of a host"),
        ("b\u{fc}cher.example", "ASCII form"),
        (&long, "too long"),
        (&label, "write only the name of a host"),
    ] {
        let error = intent(&workspace, &[name]).unwrap_err().to_string();
        assert!(error.contains("domains: ") && error.contains(why), "{name}: {error}");
    }
    let many: Vec<_> = (0..17).map(|number| format!("h{number}.example")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    intent(&workspace, &many[..16]).unwrap();
    let error = intent(&workspace, &many).unwrap_err().to_string();
    assert!(error.contains("17 domains are too many, at most 16"), "{error}");
    let wrong: Value = json!({ "command": "true", "domains": "crates.io" });
    Shell::new().intent(&wrong, &workspace).unwrap_err();
}

#[test]
fn m_g3_a_result_names_the_domains_that_were_missing() {
    let world = World::new();
    if without_bwrap(&world) {
        return;
    }
    let server = server();
    let bench = |sandbox| {
        let mut bench = Bench::within(world.path("work")).sandbox(sandbox);
        for (name, value) in world.env() {
            bench = bench.env(name, value);
        }
        bench
    };
    let plain = bench(world.sandbox(SandboxLevel::Bwrap, world.profile()));
    let called = shell(&plain, "curl -sS http://named.invalid/");
    let expected = "run it again with \"domains\": [\"named.invalid\"], which asks the user";
    assert!(result_of(&called).contains(expected), "{called:?}");

    let names = ["named.localhost"];
    let named = bench(reaching(&world, profile(&world, server.port()), &names));
    let url = |name: &str| format!("http://{name}:{}/", server.port());
    let called = shell(&named, &format!("curl -sSf {}", url("other.localhost")));
    let expected = "did not let the command reach other.localhost: if it must, run it again with \
                    \"domains\": [\"named.localhost\", \"other.localhost\"], which asks the user";
    assert!(result_of(&called).contains(expected), "{called:?}");
    // After a success, the result names no step.
    let called = shell(&named, &format!("curl -sS {}", url("other.localhost")));
    let expected = "[exit code 0; the sandbox did not let the command reach other.localhost]";
    assert_eq!(result_of(&called), expected);
    let called = shell(&named, &format!("curl -sSf {}", url("named.localhost")));
    assert_eq!(result_of(&called), "[exit code 0]");
    // An address can't be named, and a program that does not use the proxy needs the network.
    let called = shell(&named, &format!("curl -sSf {}", url("127.0.0.1")));
    assert!(result_of(&called).contains("run it again with \"network\": true"), "{called:?}");
    let called = shell(&named, &format!("curl -sSf --noproxy '*' {}", url("named.localhost")));
    assert!(result_of(&called).contains("this program may not use"), "{called:?}");
    // Other reasons are named as they are.
    let private = bench(reaching(&world, world.profile(), &names));
    let called = shell(&private, &format!("curl -sSf {}", url("named.localhost")));
    assert!(result_of(&called).contains("the proxy could not reach named.localhost"), "{called:?}");
    assert!(result_of(&called).contains("run it again with \"network\": true"), "{called:?}");
}

/// The command chooses the names in its requests. They must not make the advice wider or long.
#[test]
fn m_g3_the_advice_is_the_narrowest_step_whatever_a_command_requests() {
    let world = World::new();
    if without_bwrap(&world) {
        return;
    }
    let mut bench = Bench::within(world.path("work"));
    for (name, value) in world.env() {
        bench = bench.env(name, value);
    }
    let bench = bench.sandbox(reaching(&world, world.profile(), &["named.localhost"]));
    let long = "a.".repeat(400);
    let request = |host: &str| {
        format!(
            "exec 3<> /dev/tcp/127.0.0.1/${{HTTP_PROXY##*:}}
             printf 'GET http://{host}/ HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n' >&3
             cat <&3 > /dev/null; exec 3>&-"
        )
    };
    let has_domains = "\"domains\": [\"named.localhost\", \"other.example\"], which asks the user";
    for (command, contained, missing) in [
        ("curl -sSf http://other.example/ http://169.254.1.1/; false", has_domains, "network\""),
        (
            &format!("{}\n{}\nfalse", request("*.example"), request("other.example")),
            has_domains,
            "\"*.example",
        ),
        (&format!("{}\nfalse", request(&format!("{long}example"))), "[exit code 1", "a.a.a"),
        ("curl -sS http://other.example/ > /dev/null; touch /usr/x", "\"writable\"", "domains"),
    ] {
        let result = result_of(&shell(&bench, command)).to_owned();
        assert!(result.contains(contained) && !result.contains(missing), "{command}\n{result}");
    }
}
