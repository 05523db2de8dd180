//! A model that can't be used now: its session opens, and every request to it says why it fails.

use futures_util::StreamExt;
use futures_util::stream;

use super::{Model, ModelError, ModelRequest, ModelStream};

/// Stands for a model whose provider is not set up.
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
            // What is set only now does not reach a session that is open.
            ModelError::Setup { message, hint } => {
                let again = "then close this session and prompt it again: it has what was set where it was opened";
                ModelError::Setup { message, hint: format!("{hint}; {again}") }
            }
            error => error,
        };
        stream::iter([Err(error)]).boxed()
    }
}
