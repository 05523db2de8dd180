//! A PostgreSQL server of a test, in a folder of its own.
#![allow(clippy::expect_used, clippy::panic, reason = "test support: a failure ends the test")]

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use holdpoint_session::testing::patience;
use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;

/// The name of the superuser, which needs no password.
const USER: &str = "holdpoint";

/// A server that listens on a Unix socket, and perhaps on loopback with TLS, and ends with this value.
pub struct PostgresServer {
    folder: TempDir,
    settings: Vec<String>,
    /// The port on loopback.
    port: Option<u16>,
    running: Option<Child>,
}

impl PostgresServer {
    /// Starts a server, and waits until it accepts connections. The first server of a build prepares
    /// its files in `cache`, and the others copy them.
    ///
    /// # Panics
    /// If PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn start(cache: &Path) -> Self {
        Self::with(cache, &[])
    }

    /// Starts a server with these settings, such as `fsync=off`.
    ///
    /// # Panics
    /// If PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn with(cache: &Path, settings: &[&str]) -> Self {
        Self::of(|data| copy(&prepared(cache), data), settings)
    }

    /// Starts a server with the files that `prepare` makes in the folder that it gets.
    ///
    /// # Panics
    /// If PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn of(prepare: impl FnOnce(&Path), settings: &[&str]) -> Self {
        let mut server = Self::stopped(prepare, settings);
        server.restart();
        server
    }

    fn stopped(prepare: impl FnOnce(&Path), settings: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        own(folder.path());
        prepare(&folder.path().join("data"));
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        Self { folder, settings, port: None, running: None }
    }

    /// Starts a server that also listens on loopback, with a certificate and its key in PEM.
    ///
    /// # Panics
    /// If PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn with_tls(cache: &Path, (certificate, key): &(String, String)) -> Self {
        Self::listening(cache, &[("server.crt", certificate), ("server.key", key)], &["ssl=on"])
    }

    /// Starts a server that also listens on loopback, with these files, by their names, and settings.
    ///
    /// # Panics
    /// If PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn listening(cache: &Path, files: &[(&str, &str)], settings: &[&str]) -> Self {
        let prepare = |data: &Path| {
            copy(&prepared(cache), data);
            for (name, text) in files {
                let path = data.join(name);
                fs::write(&path, text).expect("a file");
                fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its mode");
                own(&path);
            }
        };
        let mut server = Self::stopped(prepare, settings);
        server.settings.push("listen_addresses=127.0.0.1".to_owned());
        server.port = Some(free_port());
        server.restart();
        server
    }

    /// Starts a standby of this server, without a port. From now on, a commit is acknowledged when both
    /// have it.
    ///
    /// # Panics
    /// If the standby does not start.
    #[must_use]
    pub fn standby(&self) -> Self {
        let mut backup = as_user("pg_basebackup");
        backup.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf"]);
        backup.args(["--username", USER, "--host"]).arg(self.folder.path());
        let standby = Self::of(|data| drop(output(backup.arg("--pgdata").arg(data))), &[]);
        self.query("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.query("postgres", "SELECT pg_reload_conf()");
        let by = Instant::now() + patience();
        let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.query("postgres", synchronous) != "1" {
            assert!(Instant::now() < by, "the standby does not follow");
        }
        standby
    }

    /// Makes this standby the primary server.
    ///
    /// # Panics
    /// If that fails.
    pub fn promote(&self) {
        assert_eq!(self.query("postgres", "SELECT pg_promote()"), "t");
    }

    /// The folder of the server's socket, which is its `host` in a connection string.
    #[must_use]
    pub fn host(&self) -> &Path {
        self.folder.path()
    }

    /// Everything in a database, as `pg_dump` writes it.
    ///
    /// # Panics
    /// If the database can't be read.
    #[must_use]
    pub fn dump(&self, database: &str) -> String {
        let mut dump = Command::new(program("pg_dump"));
        dump.args(["--username", USER, "--dbname", database, "--host"]).arg(self.folder.path());
        output(&mut dump)
    }

    /// Flips a bit of the file with the rows of a table, as a fault of a disk would: that with this
    /// number, counted modulo the size of the file. The server is stopped for it.
    ///
    /// # Panics
    /// If there is no such table, or the server does not start.
    pub fn flip_bit(&mut self, database: &str, table: &str, bit: usize) {
        let path = self.query(database, &format!("SELECT pg_relation_filepath('{table}')"));
        let path = self.folder.path().join("data").join(path);
        // The server writes everything to its files before it ends.
        self.end(Signal::INT);
        let mut bytes = fs::read(&path).expect("the file of the table");
        let byte = bit / 8 % bytes.len();
        bytes[byte] ^= 1 << (bit % 8);
        fs::write(&path, bytes).expect("the changed file");
        self.restart();
    }

    /// The connection string of a database over loopback, with this name of the server.
    ///
    /// # Panics
    /// If the server does not listen on loopback.
    #[must_use]
    pub fn over_network(&self, host: &str, name: &str) -> String {
        let port = self.port.expect("a server with TLS");
        format!("postgres://{USER}@{host}:{port}/{name}")
    }

    /// The connection string of a new, empty database.
    ///
    /// # Panics
    /// If the database can't be created.
    #[must_use]
    pub fn database(&self, name: &str) -> String {
        self.query("postgres", &format!("CREATE DATABASE {name}"));
        let port = self.port.map(|port| format!(" port={port}")).unwrap_or_default();
        format!("host={} user={USER} dbname={name}{port}", self.folder.path().display())
    }

    /// Runs a statement in a database, and returns its rows, with columns separated by `|`.
    ///
    /// # Panics
    /// If the statement fails.
    pub fn query(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(program("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--host"])
            .arg(self.folder.path())
            .args(["--username", USER, "--dbname", database, "--command", statement])
            .args(self.port.map(|port| format!("--port={port}")));
        output(&mut psql).trim_end().to_owned()
    }

    /// Kills the server, as a loss of power would.
    ///
    /// # Panics
    /// If the server does not run.
    pub fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    /// Starts a server that was killed, and waits until it accepts connections.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn restart(&mut self) {
        while let Err(log) = self.try_start() {
            // Another program has taken the port in the meantime.
            if log.contains("could not bind") {
                self.port = self.port.map(|_| free_port());
                continue;
            }
            // The processes of a killed server end a moment later, and another one is refused until
            // then.
            assert!(log.contains("still in use"), "the server did not start: {log}");
        }
    }

    /// Starts the server, and waits until it accepts connections, or returns its log.
    fn try_start(&mut self) -> Result<(), String> {
        let mut command = as_user("postgres");
        command.arg("-D").arg(self.folder.path().join("data")).arg("-k").arg(self.folder.path());
        let small = ["listen_addresses=", "max_connections=50", "shared_buffers=16MB"];
        for setting in small.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.args(self.port.iter().flat_map(|port| ["-c".to_owned(), format!("port={port}")]));
        let mut server = command.stderr(Stdio::piped()).spawn().expect("postgres");
        let mut lines = BufReader::new(server.stderr.take().expect("its log")).lines();
        let mut log = String::new();
        while let Some(Ok(line)) = lines.next() {
            // Of a standby, they are read-only.
            if line.contains("ready to accept ") {
                // The server stops if nobody reads its log.
                std::thread::spawn(move || lines.for_each(drop));
                self.running = Some(server);
                return Ok(());
            }
            log = log + &line + "\n";
        }
        server.wait().expect("its end");
        Err(log)
    }

    fn end(&mut self, signal: Signal) {
        let mut server = self.running.take().expect("a server");
        let pid = Pid::from_child(&server);
        kill_process(pid, signal).expect("a signal");
        server.wait().expect("its end");
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.end(Signal::QUIT);
        }
    }
}

/// A port of loopback that no program uses now.
fn free_port() -> u16 {
    let free = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    free.local_addr().expect("its address").port()
}

/// The files of a new server, which are made once.
fn prepared(cache: &Path) -> PathBuf {
    let prepared = cache.join("postgres-data");
    if prepared.exists() {
        return prepared;
    }
    let folder = TempDir::new().expect("a folder");
    own(folder.path());
    let data = folder.path().join("data");
    let mut initdb = as_user("initdb");
    initdb.args(["--data-checksums", "--no-sync", "--auth=trust", "--username", USER, "--pgdata"]);
    output(initdb.arg(&data));
    // Another test may do the same at this moment.
    let unfinished = cache.join(format!("postgres-data-{}", std::process::id()));
    copy(&data, &unfinished);
    if fs::rename(&unfinished, &prepared).is_err() {
        fs::remove_dir_all(&unfinished).expect("removed");
    }
    prepared
}

/// Copies a folder, for the user that the server runs as.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("its type").is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).expect("a copy");
            own(&to);
        }
    }
    let mode = fs::metadata(from).expect("its mode").permissions();
    fs::set_permissions(to, mode).expect("its mode");
    own(to);
}

/// The user that the server runs as, if these are tests of root, which PostgreSQL refuses.
fn other_user() -> Option<u32> {
    if !getuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").expect("the users");
    let line = users.lines().find_map(|line| line.strip_prefix("postgres:"));
    let id = line.and_then(|line| line.split(':').nth(1)).and_then(|id| id.parse().ok());
    Some(id.unwrap_or_else(|| panic!("there is no user postgres; run scripts/test-needs")))
}

/// Gives a file to the user that the server runs as.
fn own(path: &Path) {
    if let Some(user) = other_user() {
        chown(path, Some(user), None).expect("another owner");
    }
}

/// A program of the server, as the user that it runs as.
fn as_user(name: &str) -> Command {
    let program = program(name);
    let Some(user) = other_user() else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={user}")).arg("--clear-groups").arg(program);
    // The home folder of root can't be read.
    command.current_dir("/").env("HOME", "/");
    command
}

/// `PATH`, with the folder of PostgreSQL's programs before the others.
#[must_use]
pub fn path() -> OsString {
    let mut path =
        program("initdb").parent().map(Path::to_owned).unwrap_or_default().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Runs a program to its end, and returns its output.
fn output(command: &mut Command) -> String {
    let ran = command.output().expect("a program of PostgreSQL");
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// A program of PostgreSQL: that of the newest version in the place where Debian keeps them, else the
/// one of `PATH`.
fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let programs = versions.map(|version| version.path().join("bin").join(name));
    programs.filter(|program| program.exists()).max().unwrap_or_else(|| name.into())
}
