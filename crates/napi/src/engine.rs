//! The engine of the process, and what it is set up with.
//!
//! There is one, however many threads of JavaScript load the package: it starts when it is first used, and stops when
//! the last of them ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::{Config, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::{Engine, Sessions};
use holdpoint_tools::Supervisor;
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

use crate::crossing::now;
use crate::failure::Failure;

/// The engine of this process.
static PROCESS: Mutex<Process> = Mutex::new(Process { supervisor: None, config: None, engine: None, threads: 0 });

struct Process {
    supervisor: Option<PathBuf>,
    /// What it starts with; nothing until it is said, or it has started.
    config: Option<Arc<Config>>,
    engine: Option<Engine>,
    /// Threads of JavaScript that have loaded us.
    threads: usize,
}

fn process() -> MutexGuard<'static, Process> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the engine of the process is started with.
#[napi(object, object_to_js = false)]
pub struct StartOptions {
    /// A configuration, as the program's `config.toml`: models, policy, limits. Nothing else is read from anywhere but
    /// the environment.
    pub config: Option<String>,
}

/// Says what the engine of this process is to be started with, before it is first used. Without it, it is started with
/// what is usual.
///
/// Throws `alreadyStarted` if it has been used, and `config` if the configuration is wrong.
#[napi]
pub fn start(env: &Env, options: StartOptions) -> napi::Result<()> {
    now(env, || {
        let config = read_config(options.config.as_deref().unwrap_or_default())?;
        let mut process = process();
        if process.config.is_some() {
            return Err(Failure::new("alreadyStarted", "the engine of this process has been started")
                .hint("call start() before anything is done with sessions"));
        }
        process.config = Some(Arc::new(config));
        Ok(())
    })
}

/// The version of the package.
#[napi]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Says where the program is that supervises the processes of tools.
#[napi(skip_typescript)]
pub fn supervise_with(program: String) {
    process().supervisor = Some(program.into());
}

pub(crate) fn read_config(text: &str) -> Result<Config, Failure> {
    Config::parse(text).map_err(|error| Failure::new("config", error))
}

/// The sessions of the engine of this process, which is started if it was not used before; and its configuration.
pub(crate) fn sessions() -> Result<(Sessions, Arc<Config>), Failure> {
    let mut process = process();
    let config = Arc::clone(process.config.get_or_insert_default());
    let engine = match process.engine.take() {
        Some(engine) => engine,
        None => start_engine(&config, process.supervisor.as_ref())?,
    };
    let sessions = engine.sessions(who());
    process.engine = Some(engine);
    Ok((sessions, config))
}

fn start_engine(config: &Config, supervisor: Option<&PathBuf>) -> Result<Engine, Failure> {
    let supervisor = supervisor.map_or(Supervisor::None, |program| Supervisor::Program(program.clone()));
    let catalog = Catalog::new(config, |name| std::env::var(name).ok());
    let engine = Engine::builder(catalog).limits(config.limits.clone()).supervisor(supervisor);
    #[cfg(feature = "test-support")]
    let engine = engine.tools(|_| holdpoint_session::builtin_tools().with(crate::stop::Stop::default));
    Ok(match &config.system_prompt {
        Some(words) => engine.system_prompt(words.as_str()),
        None => engine,
    }
    .start()?)
}

/// This process, as other clients see it.
pub(crate) fn who() -> Who {
    Who { name: "node".to_owned(), pid: Some(std::process::id()) }
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
