//! What the engine of the process is started with: its configuration, its tools, and where its sessions are saved.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{Config, SessionSettings};
use holdpoint_session::model::Catalog;
use holdpoint_session::store::Sqlite;
use holdpoint_session::{Engine, builtin_tools};
use holdpoint_tools::web::Browsers;
use holdpoint_tools::{Supervisor, Toolbox};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::failure::Failure;
use crate::folders::Folders;

/// In the folder of the sessions, locked by whoever has them: the daemon's own.
const LOCK: &str = "daemon.lock";

/// What to do about what is not opened.
const AS_THEY_ARE: &str = "they are left as they are: look at them, or name another place by stateDir";

/// What the engine is started with.
pub(crate) struct Setup {
    pub(crate) config: Arc<Config>,
    /// Those of all sessions, where there is a folder for them.
    browsers: Option<Browsers>,
    saved: Option<Saved>,
}

/// Sessions that are saved: ours, for as long as the process lives.
struct Saved {
    store: Sqlite,
    _lock: File,
}

impl Setup {
    /// By this configuration; with sessions that are saved in this folder, or else end with the process.
    pub(crate) fn new(config: Config, state_dir: Option<&str>) -> Result<Self, Failure> {
        let folders = Folders::find(state_dir);
        let browsers = folders.as_ref().ok().map(|folders| Browsers::new(config.web.clone(), folders.web()));
        let browsers = browsers.transpose().map_err(|error| Failure::new("config", format!("[web]: {error}")))?;
        let saved = match state_dir {
            Some(_) => Some(Saved::open(&folders?.data)?),
            None => None,
        };
        Ok(Self { config: Arc::new(config), browsers, saved })
    }

    /// An engine.
    pub(crate) fn engine(&self, supervisor: Supervisor) -> Result<Engine, Failure> {
        let Self { config, browsers, saved } = self;
        // Each session has what its client brings along.
        let engine = Engine::builder(Catalog::new(config, |_| None)).limits(config.limits.clone());
        let engine = engine.supervisor(supervisor).tools(tools(browsers.clone()));
        let engine = match saved {
            Some(Saved { store, .. }) => engine.store(store.clone()),
            None => engine,
        };
        Ok(engine.start()?)
    }
}

/// What makes the tools of a session.
fn tools(browsers: Option<Browsers>) -> impl Fn(&SessionSettings) -> Toolbox + Send + Sync {
    move |session| {
        let tools = builtin_tools();
        #[cfg(feature = "test-support")]
        let tools = tools.with(crate::stop::stop);
        match &browsers {
            Some(browsers) => tools.with(browsers.of_session(session.id.clone())),
            None => tools,
        }
    }
}

impl Saved {
    fn open(folder: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::new("store", format!("{}: {error}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        // Who can write there can put other files in the place of ours.
        check(folder, &folder.metadata().map_err(failed)?, 0o022)?;
        let lock = lock(&folder.join(LOCK))?;
        let store = Sqlite::open(folder).map_err(|error| {
            Failure::new("store", format!("the sessions in {} can't be opened: {error}", folder.display()))
                .hint(AS_THEY_ARE)
        })?;
        Ok(Self { store, _lock: lock })
    }
}

/// Locks the file for as long as it is open, and writes into it, for people, whose it is.
fn lock(path: &Path) -> Result<File, Failure> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => {
            Failure::new("store", format!("{} is a link", path.display())).hint(AS_THEY_ARE)
        }
        _ => Failure::new("store", format!("{}: {error}", path.display())),
    };
    let mut how = OpenOptions::new();
    how.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = how.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path).map_err(failed)?;
    check(path, &file.metadata().map_err(failed)?, 0o077)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            file.read_to_string(&mut pid).map_err(failed)?;
            let folder = path.parent().unwrap_or(path);
            let what = format!("another process has the sessions in {} (pid {})", folder.display(), pid.trim());
            return Err(Failure::new("start", what).hint(
                "connect({ stateDir }) reaches them if it is the daemon; else let it end, or name another place",
            ));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    file.set_len(0).map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

/// Refuses what is another user's, or grants others one of these permissions.
fn check(path: &Path, found: &Metadata, others: u32) -> Result<(), Failure> {
    let (shown, mode) = (path.display(), found.mode() & 0o777);
    let what = match found.uid() == geteuid().as_raw() {
        false => format!("{shown} belongs to somebody else (uid {})", found.uid()),
        true if mode & others != 0 => format!("others get at {shown} (mode {mode:04o})"),
        true => return Ok(()),
    };
    Err(Failure::new("store", what).hint(AS_THEY_ARE))
}
