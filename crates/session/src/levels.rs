//! What is logged: by levels, and in detail what is done in sessions that are debugged.
//!
//! Where to is for the program to say: it puts [`Levels::around`] the layer that writes.

mod debugged;

use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt, ParseError};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

/// Names the variable of the environment that sets levels.
pub const VARIABLE: &str = "HOLDPOINT_LOG";

/// What is logged where nobody says otherwise: what we do, and what goes wrong elsewhere.
const USUAL: &str = "warn,holdpoint=info";

/// Which lines are logged.
#[derive(Debug)]
pub struct Levels(EnvFilter);

impl Levels {
    /// Those of this text, for example `debug` or `warn,holdpoint_session=trace`.
    ///
    /// # Errors
    ///
    /// If it can't be read.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        EnvFilter::try_new(text).map(Self)
    }

    /// This layer, given what these levels let through, and all that is done at debug level in sessions that are debugged
    /// (`SessionHandle::change_debug`). Of spans it is given all of ours: `session` with its `id`, `turn`, `step`, `call`.
    pub fn around<S, L>(self, layer: L) -> impl Layer<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
        L: Layer<S>,
    {
        let lines = self.0.or(debugged::Debugged);
        debugged::Marks.with_filter(debugged::sessions()).and_then(layer.with_filter(lines))
    }
}

impl Default for Levels {
    fn default() -> Self {
        Self(EnvFilter::new(USUAL))
    }
}
