//! The files in `examples/fleet`: a server with their options, their scripts and the unit.

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use holdpoint_tests::postgres_server::{self, PostgresServer};

use super::listed;
use crate::cli::pages::{manual, page};
use crate::world::{Ran, World, patience, program};

fn file(name: &str) -> PathBuf {
    manual().join("examples/fleet").join(name).canonicalize().unwrap()
}

fn text(name: &str) -> String {
    page(&format!("examples/fleet/{name}"))
}

/// The options of the server in the compose file. The paths are those of the server's folder, which
/// has `pg_hba.conf` already.
fn options() -> Vec<String> {
    let compose = text("compose.yaml");
    let options = compose.lines().filter_map(|line| line.trim().strip_prefix("- --"));
    let here = |option: &str| match option.split_once('=').unwrap() {
        ("ssl_cert_file", _) => Some("ssl_cert_file=server.crt".to_owned()),
        ("ssl_key_file", _) => Some("ssl_key_file=server.key".to_owned()),
        ("hba_file", path) => {
            assert!(path.ends_with("/pg_hba.conf"));
            None
        }
        _ => Some(option.to_owned()),
    };
    options.filter_map(here).collect()
}

#[test]
fn the_database_accepts_machines_over_tls_and_waits_for_its_standby() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let script = |name: &str| {
        let mut script = Command::new("sh");
        script.arg(file(name)).current_dir(&folder);
        script
    };
    Ran::of({
        let mut script = script("certificate.sh");
        script.arg("localhost");
        script
    })
    .code(0);
    let made = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (certificate, key, clients) = (made("server.crt"), made("server.key"), text("pg_hba.conf"));
    let files = [("server.crt", &*certificate), ("server.key", &*key), ("pg_hba.conf", &*clients)];
    let options = options();
    assert!(options.len() >= 5, "{options:?}");
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let server = PostgresServer::listening(cache, &files, &options);
    // The image does these.
    assert!(text("compose.yaml").contains("POSTGRES_INITDB_ARGS: --data-checksums\n"));
    server.query("postgres", "ALTER USER holdpoint PASSWORD 'secret'");
    drop(server.database("holdpoint"));

    let world = World::new();
    let authority = folder.path().join("ca.crt");
    let run = |args: &[&str], input: &str| {
        fs::write(folder.path().join("input"), input).unwrap();
        let mut command = world.command(args);
        command.env("SSL_CERT_FILE", &authority);
        command.stdin(Stdio::from(fs::File::open(folder.path().join("input")).unwrap()));
        Ran::of(command)
    };
    let address = server.over_network("localhost", "holdpoint");
    let join = |login: &str| {
        run(&["fleet", "join", "-", "--name", "m1"], &address.replace("holdpoint@", login))
    };
    let wrong = join("holdpoint:wrong@").code(1);
    assert!(wrong.err.contains("password authentication failed"), "{}", wrong.err);
    join("holdpoint:secret@").code(0);
    run(&["new", "--name", "kept"], "").code(0);

    fs::write(folder.path().join("password"), "secret").unwrap();
    let port = address.rsplit_once(':').unwrap().1.split_once('/').unwrap().0;
    let copy = |data: &Path| {
        let mut script = script("standby.sh");
        script.env("PATH", postgres_server::path()).env("PGDATA", data).env("PGPORT", port);
        script.env("PGHOST", "localhost").env("PGUSER", "holdpoint");
        Ran::of({
            script.env("PASSWORD_FILE", folder.path().join("password"));
            script
        })
        .code(0);
    };
    assert!(text("compose.yaml").contains(" --cluster_name=standby\n"));
    let standby = PostgresServer::of(copy, &["cluster_name=standby"]);
    let readme = text("README.md");
    let statements =
        readme.split("--command=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let statements: Vec<_> = statements.collect();
    assert_eq!(statements.len(), 2);
    statements.iter().for_each(|statement| drop(server.query("postgres", statement)));
    let by = Instant::now() + patience();
    while server.query("postgres", "SELECT sync_state FROM pg_stat_replication") != "sync" {
        assert!(Instant::now() < by, "the standby does not follow");
    }
    run(&["prompt", "kept", "say Hello."], "").code(0);
    run(&["wait", "kept"], "").code(0);
    let count = "SELECT count(*) > 0 FROM holdpoint.facts WHERE event LIKE '%Hello%'";
    assert_eq!(standby.query("holdpoint", count), "t");
    assert_eq!(listed(&world, "kept")["status"], "idle");
}

#[test]
fn the_service_runs_the_daemon() {
    let (world, unit) = (World::new(), text("holdpoint.service"));
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let (installed, words) = start.split_once(' ').unwrap();
    world.run(&words.split(' ').chain(["--help"]).collect::<Vec<_>>()).code(0);
    let path = world.path("holdpoint.service");
    fs::write(&path, unit.replace(installed, program().to_str().unwrap())).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--user"]).arg(&path).env("XDG_RUNTIME_DIR", world.path("home"));
    match verify.output() {
        Ok(ran) => assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}"),
        // A system without systemd.
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
    }
}
