//! Delivery of log records to a JavaScript callback, through a bounded queue.
//!
//! Logging never blocks. Records that find no room are counted, and a record in their place reports
//! the number.

mod layer;
mod queue;
mod record;

use std::sync::Arc;

use holdpoint_common::Config;
use holdpoint_session::levels::{Levels, VARIABLE};
use napi::bindgen_prelude::Function;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::layer::RecordLayer;
pub(crate) use self::queue::{Queue, Wake};
use crate::failure::Failure;

/// Makes the function callable from other threads.
pub(crate) fn wake(function: &Function<'_, (), ()>) -> napi::Result<Wake> {
    function.build_threadsafe_function::<()>().weak::<true>().build()
}

/// Returns the log levels of `HOLDPOINT_LOG`, else those of the configuration.
pub(crate) fn levels(config: &Config) -> Result<Levels, Failure> {
    let from_env = std::env::var_os(VARIABLE).filter(|levels| !levels.is_empty());
    let (source, levels) = match (from_env, &config.log) {
        (Some(levels), _) => (VARIABLE, levels.to_string_lossy().into_owned()),
        (None, Some(levels)) => ("log", levels.clone()),
        (None, None) => return Ok(Levels::default()),
    };
    Levels::parse(&levels).map_err(|error| {
        Failure::new("config", format!("{source} = \"{levels}\": {error}"))
            .hint("for example log = \"warn,holdpoint_session=debug\"")
    })
}

/// Starts the log, including panics. A process can do so once.
pub(crate) fn start(levels: Levels, wake: Wake) -> Result<Arc<Queue>, Failure> {
    let queue = Arc::new(Queue::new(wake));
    let records = levels.around(RecordLayer(Arc::clone(&queue)));
    tracing_subscriber::registry()
        .with(records)
        .try_init()
        .map_err(|error| Failure::new("failed", error))?;
    let previous_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "a panic");
        previous_hook(panic);
    }));
    Ok(queue)
}
