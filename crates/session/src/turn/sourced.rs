//! The parts of a step that come from a source of tools, such as MCP servers.

use std::sync::Arc;

use holdpoint_tools::{NamedContent, Toolbox};

use super::{End, Runner};
use crate::history;
use crate::state::{Conversation, Report};

impl Runner {
    /// Brings the tools up to date that can change, such as those of MCP servers. Stops at a cut.
    pub(super) async fn refresh_tools(&mut self, toolbox: &mut Toolbox) {
        let refreshing = toolbox.refresh(&self.source);
        let Some((changed, notices)) = self.cancel.run_until_cancelled(refreshing).await else {
            return;
        };
        for reason in notices {
            self.report(Report::ToolsMissing { reason }).await;
        }
        if changed {
            self.specs = toolbox.specs().cloned().collect();
        }
    }

    /// Adds the content that a new prompt names, such as resources of MCP servers. Returns the texts.
    /// Stops at a cut.
    ///
    /// # Errors
    /// The end of the turn, if the prompt can't be used without its content. A run continues.
    pub(super) async fn add_content(
        &self,
        conversation: &Conversation,
        toolbox: &mut Toolbox,
    ) -> Result<Vec<Arc<str>>, End> {
        let Some(prompt) = history::new_prompt(conversation.events()) else {
            return Ok(Vec::new());
        };
        let reading = toolbox.named_content(&prompt);
        let NamedContent { parts, notices } = match self.cancel.run_until_cancelled(reading).await {
            Some(Ok(content)) => content,
            Some(Err(why)) if !self.is_iteration => return Err(End::failed(why)),
            Some(Err(why)) => NamedContent { parts: Vec::new(), notices: vec![why] },
            None => NamedContent::default(),
        };
        for reason in notices {
            self.report(Report::ToolsMissing { reason }).await;
        }
        let mut texts = Vec::new();
        for (name, text) in parts {
            let text: Arc<str> = text.into();
            self.report(Report::ContentAdded { name, text: Arc::clone(&text) }).await;
            texts.push(text);
        }
        Ok(texts)
    }
}
