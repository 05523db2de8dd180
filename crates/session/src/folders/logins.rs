//! The user's logins at MCP servers. Each has a private file of its own, which no process in a
//! sandbox can reach.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdpoint_tools::{McpLogin, McpLogins};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{FoldersError, private, record};

/// How long to wait for another process that changes a login. Its requests have limits that are
/// shorter together.
const LOCK_LIMIT: Duration = Duration::from_secs(90);

/// The time between two attempts to take a lock.
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// The most files that are looked at to find the logins of a server.
const MAX_FILES: usize = 10_000;

/// The end of the name of a draft, which is a file that was not written to its end.
const DRAFT: &str = ".draft";

/// The user's logins at MCP servers. Cheap to clone; every call reads or writes the files.
#[derive(Debug, Clone)]
pub struct LoginStore(PathBuf);

/// Identifies a login in its store. The files of a login have this name, which begins with the name
/// of its server, and an extension.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoginKey(String);

impl LoginKey {
    fn new(server: &str, url: &str) -> Self {
        let mut hash = blake3::Hasher::new();
        // The name of a server has no zero.
        hash.update(server.as_bytes()).update(b"\0").update(url.as_bytes());
        // Nor does it have a dot or a slash.
        Self(format!("{server}.{}", hash.finalize().to_hex()))
    }

    /// The key of the login at this server with a file or a draft of this name; `None` if it is
    /// another file.
    fn of_file(name: &str, server: &str) -> Option<Self> {
        let (hash, kind) = name.strip_prefix(server)?.strip_prefix('.')?.split_once('.')?;
        let has_tokens = kind == "json" || kind.ends_with(DRAFT);
        has_tokens.then(|| Self(format!("{server}.{hash}")))
    }
}

impl LoginStore {
    /// The store in this folder, which need not exist.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The keys of all logins at servers of this name, whatever their addresses, and of their drafts
    /// that a killed process has left.
    ///
    /// # Errors
    /// [`FoldersError`] if the folder of the logins can't be read.
    pub fn of_server(&self, server: &str) -> Result<Vec<LoginKey>, FoldersError> {
        let files = self.files()?;
        let keys: BTreeSet<_> =
            files.iter().filter_map(|name| LoginKey::of_file(name, server)).collect();
        Ok(keys.into_iter().collect())
    }

    /// Removes a login from the store with its drafts, and returns it; `None` if there is none. Waits,
    /// for a limited time, until no other process changes it.
    ///
    /// # Errors
    /// [`FoldersError`] if the login can't be locked, read or removed, or another user could have
    /// changed it. It remains then.
    pub fn take(&self, key: &LoginKey) -> Result<Option<McpLogin>, FoldersError> {
        let _lock = self.take_lock(key)?;
        self.remove_drafts(key)?;
        let path = self.path(key, "json");
        let login = record::read(&path)?;
        record::remove(&path)?;
        Ok(login)
    }

    /// Removes the drafts of a login that a killed process has left. The caller holds the lock.
    fn remove_drafts(&self, LoginKey(key): &LoginKey) -> Result<(), FoldersError> {
        let is_draft = |name: &String| {
            let kind = name.strip_prefix(key).and_then(|rest| rest.strip_prefix('.'));
            kind.is_some_and(|kind| kind.ends_with(DRAFT))
        };
        for draft in self.files()?.iter().filter(|name| is_draft(name)) {
            record::remove(&self.0.join(draft))?;
        }
        Ok(())
    }

    /// The names of the files in the folder.
    fn files(&self) -> Result<Vec<String>, FoldersError> {
        let failed = |error| FoldersError::Io { path: self.0.clone(), error };
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut files = Vec::new();
        for entry in entries.take(MAX_FILES) {
            files.extend(entry.map_err(failed)?.file_name().into_string());
        }
        Ok(files)
    }

    fn path(&self, LoginKey(name): &LoginKey, kind: &str) -> PathBuf {
        self.0.join(format!("{name}.{kind}"))
    }

    fn take_lock(&self, key: &LoginKey) -> Result<File, FoldersError> {
        private::make(&self.0)?;
        let path = self.path(key, "lock");
        let failed = |error| FoldersError::Io { path: path.clone(), error };
        let file = private::open(&path, OpenOptions::new().read(true).write(true))?;
        let deadline = Instant::now() + LOCK_LIMIT;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_INTERVAL);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    let why = "another process has locked it for too long";
                    return Err(failed(io::Error::new(io::ErrorKind::TimedOut, why)));
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}

impl McpLogins for LoginStore {
    fn get(&self, server: &str, url: &str) -> Result<Option<McpLogin>, String> {
        let login = record::read::<McpLogin>(&self.path(&LoginKey::new(server, url), "json"));
        let login = login.map_err(|error| format!("its login can't be read: {error}"))?;
        // The tokens of another server or address are never used, wherever their file is.
        Ok(login.filter(|login| login.server == server && login.url == url))
    }

    fn lock(&self, server: &str, url: &str) -> Result<Box<dyn Send>, String> {
        match self.take_lock(&LoginKey::new(server, url)) {
            Ok(file) => Ok(Box::new(file)),
            Err(error) => Err(format!("its login can't be locked: {error}")),
        }
    }

    fn save(&self, login: &McpLogin) -> Result<(), String> {
        let key = LoginKey::new(&login.server, &login.url);
        let saved =
            self.remove_drafts(&key).and_then(|()| record::write(&self.path(&key, "json"), login));
        saved.map_err(|error| format!("its login can't be saved: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn login(server: &str, url: &str) -> McpLogin {
        McpLogin {
            server: server.into(),
            url: url.into(),
            issuer: None,
            token_endpoint: "https://example.com/token".into(),
            challenge: None,
            client_id: "id".into(),
            client_secret: None,
            access_token: format!("token of {server} at {url}"),
            refresh_token: None,
            issued_at: 1,
            valid_s: None,
            scopes: Vec::new(),
        }
    }

    #[test]
    fn m_h2_t_h3_a_login_is_kept_private_and_is_for_one_name_and_address() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data/logins");
        let store = LoginStore::new(folder.clone());
        assert_eq!(store.get("a", "https://x"), Ok(None));
        assert_eq!(store.of_server("a").unwrap(), []);
        let (one, other) = (login("a", "https://x"), login("a", "https://y"));
        for login in [&one, &other, &login("a-b", "https://x"), &login("b", "https://x")] {
            let _lock = store.lock(&login.server, &login.url).unwrap();
            store.save(login).unwrap();
        }
        assert_eq!(store.get("a", "https://x"), Ok(Some(one.clone())));
        for (server, url) in [("a", "https://x/"), ("c", "https://x"), ("ahttps://x", "")] {
            assert_eq!(store.get(server, url), Ok(None));
        }
        // A file that was moved to the place of another login.
        let path = |server, url| store.path(&LoginKey::new(server, url), "json");
        std::fs::copy(path("a", "https://x"), path("c", "https://x")).unwrap();
        assert_eq!(store.get("c", "https://x"), Ok(None));
        std::fs::remove_file(path("c", "https://x")).unwrap();
        let (one_key, other_key) =
            (LoginKey::new("a", "https://x"), LoginKey::new("a", "https://y"));
        let keys = BTreeSet::from([one_key.clone(), other_key]);
        assert_eq!(store.of_server("a").unwrap(), Vec::from_iter(keys));
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        for entry in std::fs::read_dir(&folder).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(store.take(&one_key).unwrap(), Some(one));
        assert_eq!(store.take(&one_key).unwrap(), None);
        assert_eq!(store.get("a", "https://x"), Ok(None));
        let path = path("b", "https://x");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(store.get("b", "https://x").is_err_and(|why| why.contains("other users")));
    }

    #[test]
    fn m_h2_a_login_that_can_not_be_read_blocks_no_other() {
        let home = tempfile::tempdir().unwrap();
        let store = LoginStore::new(home.path().join("logins"));
        let (one, other) = (login("a", "https://x"), login("a", "https://y"));
        store.save(&one).unwrap();
        store.save(&other).unwrap();
        let broken = LoginKey::new("a", "https://y");
        std::fs::write(store.path(&broken, "json"), "{").unwrap();
        std::fs::write(store.path(&LoginKey::new("b", "https://x"), "json"), "{").unwrap();
        assert_eq!(store.of_server("a").unwrap().len(), 2);
        assert_eq!(store.take(&LoginKey::new("a", "https://x")).unwrap(), Some(one));
        let error = store.take(&broken).unwrap_err().to_string();
        assert!(error.contains("a.") && error.contains("EOF"), "{error}");
        assert!(store.path(&broken, "json").exists());
    }

    #[test]
    fn m_h2_t_h3_drafts_of_a_killed_process_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let store = LoginStore::new(home.path().join("logins"));
        let (one, other) = (login("a", "https://x"), login("a", "https://y"));
        let (key, other_key) = (LoginKey::new("a", "https://x"), LoginKey::new("a", "https://y"));
        store.save(&one).unwrap();
        // Named as the writing of a record names them.
        let draft = |key, process: u32| {
            let path = store.path(key, "json").with_extension(format!("{process}.draft"));
            std::fs::write(&path, "{").unwrap();
            path
        };
        let (first, second, of_other) = (draft(&key, 1), draft(&key, 2), draft(&other_key, 1));
        store.save(&one).unwrap();
        assert!(!first.exists() && !second.exists() && of_other.exists());
        let third = draft(&key, 3);
        assert_eq!(store.take(&key).unwrap(), Some(one));
        assert!(!third.exists() && of_other.exists());
        // A draft without a login is found, too.
        assert_eq!(store.of_server("a").unwrap(), std::slice::from_ref(&other_key));
        assert_eq!(store.take(&other_key).unwrap(), None);
        assert!(!of_other.exists());
        assert_eq!(store.of_server("a").unwrap(), []);
        assert_eq!(store.get(&other.server, &other.url), Ok(None));
    }

    #[test]
    fn m_h2_a_login_is_changed_by_one_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let store = LoginStore::new(home.path().join("logins"));
        let lock = store.lock("a", "https://x").unwrap();
        let path = store.path(&LoginKey::new("a", "https://x"), "lock");
        let file = File::open(path).unwrap();
        assert_eq!(flock(&file, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK));
        drop(lock);
        // Other logins have locks of their own.
        let _one = store.lock("a", "https://x").unwrap();
        let _other = store.lock("a", "https://y").unwrap();
    }
}
