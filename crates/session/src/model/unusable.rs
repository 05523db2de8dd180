//! A model that can't be used now. Its session opens, and every request fails with the reason.

use futures_util::StreamExt;
use futures_util::stream;

use super::{Model, ModelError, ModelRequest, ModelStream};

/// A model whose provider is not set up.
pub(crate) struct Unusable {
    pub(crate) name: String,
    pub(crate) error: ModelError,
}

impl Model for Unusable {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, _: &ModelRequest) -> ModelStream {
        let error = match self.error.clone() {
            // A later change of the settings does not reach a session that is open.
            ModelError::Setup { message, hint } => {
                let again = "then close this session and prompt it again, because an open session keeps its settings";
                ModelError::Setup { message, hint: format!("{hint}; {again}") }
            }
            error => error,
        };
        stream::iter([Err(error)]).boxed()
    }
}
