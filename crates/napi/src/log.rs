//! What is logged, on its way to a callback: records wait until JavaScript takes them, as many as there is room for.
//!
//! Whoever logs waits for nothing. What there is no room for is counted, and a record in its place says how much it was.

mod layer;
mod queue;
mod record;

use std::sync::Arc;

use holdpoint_common::Config;
use holdpoint_session::levels::{Levels, VARIABLE};
use napi::bindgen_prelude::Function;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::layer::Records;
pub(crate) use self::queue::{Queue, Wake};
use crate::failure::Failure;

/// The function, to be called from other threads.
pub(crate) fn wake(function: &Function<'_, (), ()>) -> napi::Result<Wake> {
    function.build_threadsafe_function::<()>().weak::<true>().build()
}

/// What is logged: what `HOLDPOINT_LOG` says, else what the configuration does.
pub(crate) fn levels(config: &Config) -> Result<Levels, Failure> {
    let said = std::env::var_os(VARIABLE).filter(|levels| !levels.is_empty());
    let (what, levels) = match (said, &config.log) {
        (Some(levels), _) => (VARIABLE, levels.to_string_lossy().into_owned()),
        (None, Some(levels)) => ("log", levels.clone()),
        (None, None) => return Ok(Levels::default()),
    };
    Levels::parse(&levels).map_err(|error| {
        Failure::new("config", format!("{what} = \"{levels}\": {error}"))
            .hint("for example log = \"warn,holdpoint_session=debug\"")
    })
}

/// Begins to log, panics included. Once in a process.
pub(crate) fn start(levels: Levels, wake: Wake) -> Result<Arc<Queue>, Failure> {
    let queue = Arc::new(Queue::new(wake));
    let records = levels.around(Records(Arc::clone(&queue)));
    tracing_subscriber::registry().with(records).try_init().map_err(|error| Failure::new("failed", error))?;
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "a panic");
        before(panic);
    }));
    Ok(queue)
}
