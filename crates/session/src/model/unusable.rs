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
        stream::iter([Err(self.error.clone())]).boxed()
    }
}
