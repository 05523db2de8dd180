//! The filter that selects log lines: by level, and in more detail for debugged sessions.
//!
//! The program decides where the lines are written: it passes [`Levels::around`] the layer that
//! does so.

mod debugged;

use tracing::Subscriber;
use tracing_subscriber::filter::{FilterExt, ParseError};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

/// The name of the environment variable that sets the levels.
pub const VARIABLE: &str = "HOLDPOINT_LOG";

/// The default levels: our own information, and warnings of dependencies.
const DEFAULT_LEVELS: &str = "warn,holdpoint=info";

/// Selects the log lines to write.
#[derive(Debug)]
pub struct Levels(EnvFilter);

impl Levels {
    /// Parses levels, for example `debug` or `warn,holdpoint_session=trace`.
    ///
    /// # Errors
    ///
    /// The text is not a valid filter.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        EnvFilter::try_new(text).map(Self)
    }

    /// Wraps a layer, which then gets the lines that these levels select, all lines up to debug
    /// level from debugged sessions (`SessionHandle::change_debug`), and all of our spans:
    /// `session`, with the field `id`, and `turn`, `step` and `call`.
    pub fn around<S, L>(self, layer: L) -> impl Layer<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
        L: Layer<S>,
    {
        let lines = self.0.or(debugged::Debugged);
        debugged::MarkLayer
            .with_filter(debugged::session_spans())
            .and_then(layer.with_filter(lines))
    }
}

impl Default for Levels {
    fn default() -> Self {
        Self(EnvFilter::new(DEFAULT_LEVELS))
    }
}
