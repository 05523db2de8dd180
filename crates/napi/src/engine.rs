//! The engine of the process, and what it is set up with.
//!
//! There is one, however many threads of JavaScript load the package: it starts when it is first used, and stops when
//! the last of them ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::{Config, Who};
use holdpoint_session::{Engine, Sessions};
use holdpoint_tools::Supervisor;
use napi::Env;
use napi::bindgen_prelude::{Function, Object, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use crate::crossing::{now, read};
use crate::failure::Failure;
use crate::log::{self, Queue};
use crate::setup::Setup;

/// The engine of this process.
static PROCESS: Mutex<Process> =
    Mutex::new(Process { supervisor: None, setup: None, log: None, engine: None, threads: 0, ends: false });

struct Process {
    supervisor: Option<PathBuf>,
    /// What it starts with; nothing until it is said, or it has started.
    setup: Option<Setup>,
    /// Where there is a callback for it.
    log: Option<Arc<Queue>>,
    engine: Option<Engine>,
    /// Threads of JavaScript that have loaded us.
    threads: usize,
    /// The process ends: nothing is started any more.
    ends: bool,
}

fn process() -> MutexGuard<'static, Process> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the engine of the process is started with.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StartOptions {
    /// The text of a configuration, as the program's `config.toml` has it: models, policy, limits. Nothing else is read
    /// from anywhere but the environment.
    pub config: Option<String>,
    /// A folder that sessions are saved in, so that they outlive the process; without it, they end with it. It is that of
    /// a daemon, too (`--state-dir`), but of one process at a time.
    pub state_dir: Option<String>,
    /// Called with what is logged: `info` and worse of all that is done here, `debug` of sessions for which that is set
    /// (`sessionSetDebug`). `HOLDPOINT_LOG`, or else `log` of the configuration, says other levels. Without a callback,
    /// nothing is logged.
    ///
    /// Nobody waits for it. Up to 1 MiB of records wait while it is busy; beyond, a record says how many were left out. Node
    /// does not stay for it; what waits when Node exits is given to it then. What it throws, or rejects with if it is
    /// async, is told by a warning of the process.
    #[napi(ts_type = "(record: LogRecord) => void")]
    #[serde(skip)]
    pub log: Option<()>,
}

/// Says what the engine of this process is to be started with, before it is first used. Without it, it is started with
/// what is usual.
///
/// Throws `alreadyStarted` if it has been used, `config` if the configuration is wrong, `start` if another process has
/// the saved sessions, and `store` if they can't be opened.
#[napi(catch_unwind, ts_args_type = "options?: StartOptions")]
pub fn start(env: &Env, options: Unknown<'_>, wake: Option<Function<'_, (), ()>>) -> napi::Result<()> {
    let wake = wake.map(|wake| log::wake(&wake)).transpose()?;
    now(env, || {
        let StartOptions { config, state_dir, .. } =
            read::<Option<StartOptions>>(env, "options", options)?.unwrap_or_default();
        let config = given_config(config.as_deref().unwrap_or_default())?;
        let mut process = process();
        if process.setup.is_some() {
            return Err(Failure::new("alreadyStarted", "the engine of this process has been started")
                .hint("call start() before anything is done with sessions"));
        }
        let levels = log::levels(&config)?;
        process.setup = Some(Setup::new(config, state_dir.as_deref())?);
        process.log = wake.map(|wake| log::start(levels, wake)).transpose()?;
        Ok(())
    })
}

/// The version of the package.
#[napi(catch_unwind)]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Says where the program is that supervises the processes of tools.
#[napi(catch_unwind, skip_typescript)]
pub fn supervise_with(program: String) {
    process().supervisor = Some(program.into());
}

/// The configuration that somebody has passed.
pub(crate) fn given_config(text: &str) -> Result<Config, Failure> {
    let hint = "`config` is the text of a configuration, in TOML, and not where a file is";
    read_config(text).map_err(|failure| failure.hint(hint))
}

/// The configuration that a file has.
pub(crate) fn read_config(text: &str) -> Result<Config, Failure> {
    Config::parse(text).map_err(|error| Failure::new("config", error))
}

/// The sessions of the engine of this process, which is started if it was not used before; and its configuration.
pub(crate) fn sessions() -> Result<(Sessions, Arc<Config>), Failure> {
    let mut process = process();
    let Process { supervisor, setup, engine, ends, .. } = &mut *process;
    if *ends {
        return Err(Failure::new("stopped", "the process ends"));
    }
    let setup = match setup {
        Some(setup) => setup,
        None => setup.insert(Setup::new(Config::default(), None)?),
    };
    let engine = match engine {
        Some(engine) => engine,
        None => engine.insert(setup.engine(supervisor.clone().map_or(Supervisor::None, Supervisor::Program))?),
    };
    Ok((engine.sessions(who()), Arc::clone(&setup.config)))
}

/// The records of the log that wait next; nothing if none does, and then it is told when there are some.
#[napi(catch_unwind, skip_typescript)]
#[must_use]
pub fn take_log() -> Option<String> {
    let log = process().log.clone()?;
    log.take()
}

/// This process, as other clients see it.
pub(crate) fn who() -> Who {
    Who { name: "node".to_owned(), pid: Some(std::process::id()) }
}

/// Stops the engine, and waits until turns are cut, processes have ended and that is saved. The process ends: Node calls no
/// other hook of ours where it does so by `process.exit()`.
#[napi(catch_unwind, skip_typescript)]
pub fn stop() {
    let engine = {
        let mut process = process();
        process.ends = true;
        process.engine.take()
    };
    drop(engine);
}

/// Counts the threads of JavaScript that have loaded us.
#[napi(module_exports)]
pub fn load(_: Object<'_>, env: Env) -> napi::Result<()> {
    process().threads += 1;
    env.add_env_cleanup_hook((), |()| {
        let mut process = process();
        process.threads -= 1;
        let engine = if process.threads == 0 { process.engine.take() } else { None };
        drop(process);
        // Ends turns and processes, and waits for that.
        drop(engine);
    })?;
    Ok(())
}
