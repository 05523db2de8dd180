//! Sessions of one daemon, each with the certificate authorities and the proxies of the client that
//! opened it.

use std::fs;
use std::path::Path;
use std::process::Command;

use holdpoint_tests::model_server::{ModelServer, Reply};
use holdpoint_tests::proxy_server::{Kind, ProxyServer};
use holdpoint_tests::tls_server::{Authority, TlsServer};

use super::harness::DaemonWorld;
use crate::world::{Ran, timeout};

/// A house, and a server behind TLS whose authority is in `work/ca.pem`.
struct TlsSetup {
    house: DaemonWorld,
    server: ModelServer,
    tls: TlsServer,
}

impl TlsSetup {
    fn new(name: &str) -> Self {
        let (house, server, ca) =
            (DaemonWorld::new(), ModelServer::start(), Authority::new("ours"));
        server.answer(|_| Reply::text(["hi there"]));
        let tls = TlsServer::signed(&ca, &[name], server.address());
        fs::write(house.0.work("ca.pem"), ca.pem()).unwrap();
        fs::write(house.0.work("theirs.pem"), Authority::new("theirs").pem()).unwrap();
        Self { house, server, tls }
    }

    /// The program, with a model at `base_url`.
    fn command(&self, base_url: &str, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = self.house.0.command(args);
        command
            .env("OPENAI_BASE_URL", base_url)
            .env("OPENAI_API_KEY", "sk-0123")
            .envs(env.iter().copied());
        command
    }
}

const RUN: [&str; 4] = ["run", "--model", "openai/x", "go"];

#[test]
fn m_e2_each_session_trusts_the_authorities_of_its_own_environment() {
    let place = TlsSetup::new("127.0.0.1");
    let url = format!("https://{}/v1", place.tls.address);
    let (ca, theirs) = (place.house.0.work("ca.pem"), place.house.0.work("theirs.pem"));
    let (ca, theirs) = (ca.to_str().unwrap(), theirs.to_str().unwrap());
    let trusts: &[(&str, &str)] = &[("SSL_CERT_FILE", "ca.pem")];
    // In any environment of the daemon.
    for daemons in [ca, theirs, "/missing"] {
        let mut start = place.house.0.command(&["daemon", "start"]);
        start.env("SSL_CERT_FILE", daemons);
        Ran::of(start).code(0);
        let gate = place.server.gate();
        let before = place.server.requests().len();
        place.server.reply(Reply::stream().gate(&gate).say("through").finish("stop"));
        let trusting = place.command(&url, &RUN, trusts).spawn().unwrap();
        let _ = place.server.request(before);
        // While the request of the trusting client is open.
        for (env, named) in
            [(None, "or name it in SSL_CERT_FILE"), (Some(("SSL_CERT_FILE", theirs)), theirs)]
        {
            let ran = Ran::of(place.command(&url, &RUN, env.as_slice())).code(1);
            assert!(
                ran.err.contains("UnknownIssuer") && ran.err.contains(named),
                "{daemons}: {ran:#?}"
            );
        }
        let missing =
            Ran::of(place.command(&url, &RUN, &[("SSL_CERT_FILE", "/nowhere/ca.pem")])).code(1);
        assert!(
            missing.err.contains("SSL_CERT_FILE can't be used: /nowhere/ca.pem: No such file"),
            "{missing:#?}"
        );
        assert!(missing.err.contains("hint: set SSL_CERT_FILE to a file"), "{missing:#?}");
        gate.open();
        let ended = trusting.wait_with_output().unwrap();
        assert!(ended.status.success(), "{daemons}: {ended:?}");
        assert!(String::from_utf8_lossy(&ended.stdout).contains("through"), "{daemons}: {ended:?}");
        assert_eq!(place.server.requests().len(), before + 1, "{daemons}");
        place.house.run(&["daemon", "stop"]).code(0);
    }
    let in_process = [&RUN[..1], &["--in-process"], &RUN[1..]].concat();
    assert!(Ran::of(place.command(&url, &in_process, trusts)).code(0).out.contains("hi there"));
    Ran::of(place.command(&url, &in_process, &[])).code(1);
}

/// The files below a folder that contain one of these texts.
fn files_containing(folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_containing(&path, texts));
        } else if let Ok(bytes) = fs::read(&path)
            && texts
                .iter()
                .any(|text| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// The password, and its encoded form in a request to the proxy.
const SECRETS: [&str; 2] = ["hunter2-of-the-proxy", "bWU6aHVudGVyMi1vZi10aGUtcHJveHk="];

#[test]
fn m_e2_a_proxy_password_is_never_saved_and_each_client_brings_it() {
    let place = TlsSetup::new("models.invalid");
    let proxy = ProxyServer::locked(Kind::Http, place.tls.address, &format!("me:{}", SECRETS[0]));
    let address = format!("http://me:{}@{}", SECRETS[0], proxy.address);
    let wrong = format!("http://me:{}x@{}", SECRETS[0], proxy.address);
    let (url, ca) = ("https://models.invalid/v1", ("SSL_CERT_FILE", "ca.pem"));
    let through = [ca, ("HTTPS_PROXY", &*address), ("NO_PROXY", "models.invalid:8443")];
    place.house.0.config("log = 'trace'\n[limits]\nmodel_tries = 1\n");
    let mut output = String::new();
    let mut run = |args: &[&str], env: &[(&str, &str)]| {
        let ran = Ran::of(place.command(url, args, env)).code(0);
        output += &format!("{ran:?}");
        ran.out
    };
    let wait = ["wait", "one", "--for", "idle", "--timeout", &timeout()];
    run(&["new", "--name", "one", "--model", "openai/x", "go"], &through);
    run(&wait, &[]);
    assert!(run(&["logs", "one"], &[]).contains("hi there"));
    // After a restart, the proxies and keys are those of the client that uses the session.
    for (env, answers) in
        [(&[ca][..], false), (&[ca, ("https_proxy", &*wrong)][..], false), (&through[..], true)]
    {
        let before = place.server.requests().len();
        run(&["daemon", "restart"], &[]);
        run(&["prompt", "one", "again"], env);
        run(&wait, &[]);
        assert_eq!(place.server.requests().len() - before, usize::from(answers), "{env:?}");
    }
    let logs = run(&["logs", "one"], &[]);
    assert!(logs.contains("dns error"), "{logs}");
    assert!(
        logs.contains(&format!(
            "the proxy http://{} (https_proxy) rejects the user",
            proxy.address
        )),
        "{logs}"
    );
    for args in [
        &["list", "--json"][..],
        &["show", "one", "--json"],
        &["status", "--json"],
        &["export", "one"],
    ] {
        run(args, &[]);
    }
    run(&["daemon", "stop"], &[]);
    assert!(place.house.log().contains("TRACE"));
    for secret in SECRETS {
        assert!(!output.contains(secret), "{output}");
    }
    assert_eq!(files_containing(&place.house.0.path("."), &SECRETS), [""; 0]);
}
