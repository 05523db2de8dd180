//! The engine of the process and its setup.
//!
//! There is one engine, however many JavaScript threads load the package. It starts when it is
//! first used, and stops when the last of the threads ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::{Config, Who};
use holdpoint_session::{Engine, Sessions};
use holdpoint_tools::Supervisor;
use napi::Env;
use napi::bindgen_prelude::{Function, Object, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use crate::convert::{read_argument, run_sync};
use crate::failure::Failure;
use crate::log::{self, Queue};
use crate::setup::Setup;

static PROCESS: Mutex<Process> = Mutex::new(Process {
    supervisor: None,
    setup: None,
    log: None,
    engine: None,
    threads: 0,
    is_ending: false,
});

struct Process {
    supervisor: Option<PathBuf>,
    /// Setup of the engine; `None` until `start` is called or the engine is first used.
    setup: Option<Setup>,
    /// Queue of log records, if there is a callback for them.
    log: Option<Arc<Queue>>,
    engine: Option<Engine>,
    /// Number of JavaScript threads that have loaded the addon.
    threads: usize,
    /// Whether the process ends, so that no engine starts any more.
    is_ending: bool,
}

fn process() -> MutexGuard<'static, Process> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The options of `start`.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct StartOptions {
    /// Configuration as TOML text, in the format of `config.toml`: models, policy, limits. Apart
    /// from this text, only the environment is read. Default: empty.
    pub config: Option<String>,
    /// Folder in which sessions are saved, so that they outlive the process. It is the state folder
    /// of a daemon as well (`--state-dir`), but only one process can use it at a time.
    /// Default: sessions are not saved and end with the process.
    pub state_dir: Option<String>,
    /// Called with each record of the log: those of level `info` and above, and those of level
    /// `debug` for sessions with debug logging (`sessionSetDebug`). The environment variable
    /// `HOLDPOINT_LOG`, or else `log` in the configuration, sets other levels. Default: no log.
    ///
    /// The engine never waits for the callback. While it is busy, up to 1 MiB of records wait;
    /// further ones are dropped, and a record reports their number. The callback does not keep Node
    /// alive, but gets the waiting records when Node exits. If it throws or, being async, rejects,
    /// the process emits a warning.
    #[napi(ts_type = "(record: LogRecord) => void")]
    #[serde(skip)]
    pub log: Option<()>,
}

/// Sets up the engine of this process, before its first use. An engine that is used without this
/// call has the default settings.
///
/// Throws `alreadyStarted` if the engine has been set up or used, `config` if the configuration is
/// wrong, `start` if another process uses the saved sessions, and `store` if they can't be opened.
#[napi(catch_unwind, ts_args_type = "options?: StartOptions")]
pub fn start(
    env: &Env,
    options: Unknown<'_>,
    wake: Option<Function<'_, (), ()>>,
) -> napi::Result<()> {
    // `log.js` removes the option `log` and passes `wake`, which delivers the waiting records.
    let wake = wake.map(|wake| log::wake(&wake)).transpose()?;
    run_sync(env, || {
        let StartOptions { config, state_dir, .. } =
            read_argument::<Option<StartOptions>>(env, "options", options)?.unwrap_or_default();
        let config = given_config(config.as_deref().unwrap_or_default())?;
        let mut process = process();
        if process.setup.is_some() {
            return Err(Failure::new(
                "alreadyStarted",
                "the engine of this process is already started",
            )
            .hint("call start() before any function on sessions"));
        }
        let levels = log::levels(&config)?;
        let setup = Setup::new(config, state_dir.as_deref())?;
        process.log = wake.map(|wake| log::start(levels, wake)).transpose()?;
        process.setup = Some(setup);
        Ok(())
    })
}

/// Returns the version of the package.
#[napi(catch_unwind)]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Sets the path of the program that supervises the processes of tools.
#[napi(catch_unwind, skip_typescript)]
pub fn supervise_with(program: String) {
    process().supervisor = Some(program.into());
}

/// Parses the configuration in an argument.
pub(crate) fn given_config(text: &str) -> Result<Config, Failure> {
    let hint = "pass `config` as the text of a configuration in TOML, not as the path of a file";
    parse_config(text).map_err(|failure| failure.hint(hint))
}

/// Parses the configuration in a file.
pub(crate) fn parse_config(text: &str) -> Result<Config, Failure> {
    Config::parse(text).map_err(|error| Failure::new("config", error))
}

/// Returns the sessions of the engine in this process and their configuration. Starts the engine if
/// it was not used before.
pub(crate) fn sessions() -> Result<(Sessions, Arc<Config>), Failure> {
    let mut process = process();
    let Process { supervisor, setup, engine, is_ending, .. } = &mut *process;
    if *is_ending {
        return Err(Failure::new("stopped", "the process is ending"));
    }
    let setup = match setup {
        Some(setup) => setup,
        None => setup.insert(Setup::new(Config::default(), None)?),
    };
    let engine = match engine {
        Some(engine) => engine,
        None => engine.insert(
            setup.engine(supervisor.clone().map_or(Supervisor::None, Supervisor::Program))?,
        ),
    };
    Ok((engine.sessions(this_client()), Arc::clone(&setup.config)))
}

/// Returns the next waiting log records, or `None` if none wait. In that case JavaScript is woken
/// for the next one.
#[napi(catch_unwind, skip_typescript)]
#[must_use]
pub fn take_log() -> Option<String> {
    let log = process().log.clone()?;
    log.take()
}

/// Returns this process as a client.
pub(crate) fn this_client() -> Who {
    Who { name: "node".to_owned(), pid: Some(std::process::id()) }
}

/// Stops the engine, and waits until its turns are cut, its processes have ended and all of that is
/// saved. Called when the process ends: at `process.exit()`, Node calls no other hook of the addon.
#[napi(catch_unwind, skip_typescript)]
pub fn stop() {
    let engine = {
        let mut process = process();
        process.is_ending = true;
        process.engine.take()
    };
    drop(engine);
}

/// Counts the JavaScript threads that have loaded the addon.
#[napi(module_exports)]
pub fn load(_: Object<'_>, env: Env) -> napi::Result<()> {
    process().threads += 1;
    env.add_env_cleanup_hook((), |()| {
        let mut process = process();
        process.threads -= 1;
        let engine = if process.threads == 0 { process.engine.take() } else { None };
        drop(process);
        // Ends turns and processes, and waits for their end.
        drop(engine);
    })?;
    Ok(())
}
