//! Providers as the user meets them: unreachable, priced, or echoing a secret.

use holdpoint_tests::model_server::{ModelServer, Reply, Wire};

use crate::world::{Ran, World};

/// Runs a prompt against the server at `url`, with a millisecond between tries.
fn reach(url: &str) -> Ran {
    let world = World::new();
    world.config("[limits]\nmodel_retry_ms = 1\n");
    let mut command = world.command(&["run", "--model", "openai/x", "go"]);
    command.env("OPENAI_BASE_URL", url);
    Ran::of(command).code(1)
}

/// Checks that each retry and the final failure were reported with `reason`.
#[track_caller]
fn assert_retries_reported(ran: &Ran, reason: &str) {
    let tries: Vec<_> = ran.err.lines().filter(|line| line.contains("of 5 in 1 s")).collect();
    assert_eq!(tries.len(), 4, "{ran:#?}");
    for (n, line) in tries.iter().enumerate() {
        assert!(
            line.contains(&format!("try {} of 5", n + 2)) && line.contains(reason),
            "{reason}: {line}"
        );
    }
    let end = ran.err.lines().find(|line| line.starts_with("failed:")).unwrap();
    assert!(
        end.contains("connection to the model failed") && end.contains(reason),
        "{reason}: {end}"
    );
    assert!(end.contains("tried 5 times"), "{end}");
}

#[test]
fn t_l2_an_unknown_host_is_reported_with_each_try() {
    assert_retries_reported(&reach("http://nowhere.invalid/v1"), "dns error");
}

#[test]
fn t_l2_a_server_without_tls_is_reported_with_each_try() {
    let server = ModelServer::start();
    assert_retries_reported(&reach(&server.base_url().replace("http:", "https:")), "tls");
    assert!(server.requests().is_empty());
}

#[test]
fn m_e6_the_cost_of_a_turn_is_shown_if_a_price_is_set() {
    for (price, cost) in [
        ("price = { input = 300.0, cached = 30.0, output = 1500.0 }", ", cost 0.0130, "),
        ("price = { input = 0, output = 0 }", ", cost 0.0000, "),
        ("", "7 out, "),
    ] {
        let (world, server) = (World::new(), ModelServer::start());
        world.config(&format!("[models.'openai/x']\n{price}\n"));
        server.reply(Reply::text(["done"]));
        let mut command = world.command(&["run", "--model", "openai/x", "go"]);
        command.env("OPENAI_BASE_URL", server.base_url());
        let ran = Ran::of(command).code(0);
        let end = ran.err.lines().find(|line| line.starts_with("done:")).unwrap();
        assert!(end.contains(cost), "{price}: {end}");
    }
}

/// Secrets in their usual forms: the keys of providers and other keys in an environment.
const SECRETS: [(&str, &str); 12] = [
    ("OPENAI_API_KEY", "sk-proj-T3BlbkFJ0123456789abcdef"),
    ("ANTHROPIC_API_KEY", "sk-ant-api03-0123456789abcdefghij"),
    ("GEMINI_API_KEY", "AIzaSyA0123456789abcdefghijklmnopqrstuv"),
    ("OLLAMA_API_KEY", "ollama-0123456789abcdef"),
    ("GITHUB_TOKEN", "ghp_0123456789abcdefghijklmnopqrstuvwxyz"),
    ("GITLAB_TOKEN", "glpat-0123456789abcdefghij"),
    ("AWS_ACCESS_KEY_ID", "AKIA0123456789ABCDEF"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"),
    ("SLACK_TOKEN", "xoxb-012345678901-0123456789abcdef"),
    ("STRIPE_KEY", "sk_live_0123456789abcdefghijklmn"),
    ("NPM_TOKEN", "npm_0123456789abcdefghijklmnopqrstuvwxyz"),
    ("SESSION_JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"),
];

#[test]
fn t_h1_no_secret_is_in_the_log_at_trace_level() {
    // Ollama is sent no key from the environment, so its key is configured.
    for (wire, key) in
        [(Wire::OpenAi, 0), (Wire::Anthropic, 1), (Wire::Gemini, 2), (Wire::Ollama, 3)]
    {
        for how in [&["run", "--in-process"][..], &["run"]] {
            no_secret_is_written(wire, SECRETS[key].1, wire == Wire::Ollama, how);
        }
    }
    // A key of any form may be a provider's.
    for (_, secret) in SECRETS {
        no_secret_is_written(Wire::OpenAi, secret, true, &["run", "--in-process"]);
    }
}

/// Checks that no log has `secret`, the provider's key from the configuration or the environment,
/// or any other of `SECRETS`.
fn no_secret_is_written(wire: Wire, secret: &str, configured: bool, how: &[&str]) {
    let (world, server) = (World::new(), ModelServer::start());
    let provider = wire.provider();
    let set = if configured { format!("api_key = '{secret}'\n") } else { String::new() };
    let url = server.url(wire);
    let reach = format!("[providers.{provider}]\nbase_url = '{url}'\n{set}");
    world.config(&format!("[limits]\nmodel_retry_ms = 1\n{reach}"));
    let echo = format!(
        r#"{{"error":{{"type":"overloaded_error","message":"your key {secret} is not welcome"}}}}"#
    );
    server.reply(Reply::calls([("shell", r#"{"command":"env"}"#)]));
    // In the daemon, a tool prints the secrets and a command has one in an address: clients see
    // both, but the log must not.
    let in_process = how.contains(&"--in-process");
    if !in_process {
        let keys: Vec<_> =
            SECRETS.iter().map(|(name, secret)| format!("{name}={secret}")).collect();
        std::fs::write(world.work("keys"), keys.join("\n")).unwrap();
        let command = format!(r#"{{"command":"cat keys; : https://host/?key={secret}"}}"#);
        server.reply(Reply::calls([("shell", &*command)]));
    }
    server
        .reply(Reply::status(500, &[("x-echo", secret)], &echo))
        .reply(Reply::stream().event(&echo).end());
    server.reply(Reply::stream().say("half").event(&echo).end()).reply(Reply::status(
        401,
        &[],
        &echo,
    ));
    let model = format!("{provider}/x");
    let args = [how, &["--asks", "approve", "--model", &model, "go"]].concat();
    let mut command = world.command(&args);
    command.envs(SECRETS).env("HOLDPOINT_LOG", "trace");
    let ran = Ran::of(command).code(1);
    assert_eq!(server.requests().len(), if in_process { 5 } else { 6 }, "{provider}: {ran:#?}");
    // The daemon has a log of its own, which is complete once the daemon has stopped.
    world.run(&["daemon", "stop"]).code(0);
    let log =
        std::fs::read_to_string(world.path("data/holdpoint/logs/daemon.log")).unwrap_or_default();
    let log = if in_process { &ran.err } else { &log };
    assert!(log.contains("TRACE"), "{provider} {how:?}: nothing was logged: {ran:#?}");
    let sent = server.request(0).headers.iter().any(|(_, value)| value.contains(secret));
    assert!(sent, "{provider}: the key is in the request");
    for (name, secret) in SECRETS {
        let leaks: Vec<_> = log.lines().filter(|line| line.contains(secret)).collect();
        assert!(leaks.is_empty(), "{provider} {how:?}: {name}: {leaks:#?}");
    }
    server.assert_no_violations();
}

/// A session's requests use the proxy of the client that opened it, in the daemon too.
#[test]
fn m_e2_proxies_travel_with_the_session() {
    let (world, server) = (World::new(), ModelServer::start());
    world.run(&["daemon", "start"]).code(0);
    let run = |more: &[(&str, &str)], how: &[&str]| {
        let mut command = world.command(&[&["run", "--model", "openai/x"], how, &["go"]].concat());
        command
            .env("OPENAI_BASE_URL", "http://models.invalid/v1")
            .env("HTTP_PROXY", server.base_url())
            .env("OPENAI_API_KEY", "k");
        command.envs(more.iter().copied());
        Ran::of(command)
    };
    for how in [&["--in-process"][..], &[]] {
        server.reply(Reply::text(["through"]));
        assert!(run(&[], how).code(0).out.contains("through"));
        let asked = server.requests().last().unwrap().path.clone();
        assert_eq!(asked, "http://models.invalid/v1/chat/completions");
    }
    world.config("[limits]\nmodel_tries = 1\n");
    world.run(&["daemon", "restart"]).code(0);
    let without = run(&[("NO_PROXY", "models.invalid")], &[]).code(1);
    assert!(without.err.contains("dns error"), "{without:#?}");
    let bad = run(&[("HTTP_PROXY", "::")], &[]);
    assert!(bad.code != Some(0) && bad.err.contains("proxy's URL"), "{bad:#?}");
}

#[test]
fn a_secret_in_a_prompt_is_masked_in_every_list() {
    let world = World::new();
    let key = SECRETS[0].1;
    world
        .run(&["new", "--name", "one", "--model", "rehearsal", &format!("say use {key} please")])
        .code(0);
    world.run(&["wait", "one"]).code(0);
    for listed in [&["list"][..], &["list", "--json"], &["show", "one"], &["show", "one", "--json"]]
    {
        let listed = world.run(listed).code(0).out;
        assert!(listed.contains("say use ") && !listed.contains(key), "{listed}");
    }
}
