//! The parts of a step that come from a source of tools, such as MCP servers.

use std::sync::Arc;

use holdpoint_tools::{NamedContent, Toolbox};

use super::{End, Runner, reason};
use crate::history;
use crate::state::{Conversation, Report};

impl Runner {
    /// Brings the tools up to date that can change, such as those of MCP servers. Stops at a cut.
    pub(super) async fn refresh_tools(&mut self, toolbox: &mut Toolbox) {
        let refreshing = toolbox.refresh(&self.source);
        let Some((changed, notices)) = self.cancel.run_until_cancelled(refreshing).await else {
            return;
        };
        for text in notices {
            self.report(Report::ToolsMissing { reason: reason(text) }).await;
        }
        if changed {
            self.specs = toolbox.specs().cloned().collect();
        }
    }

    /// Adds the content that a new prompt names, such as resources of MCP servers, or in a run all new
    /// prompts. Returns its text. Stops at a cut.
    ///
    /// # Errors
    /// The end of the turn, if the prompt can't be used without its content. A run continues.
    pub(super) async fn add_content(
        &self,
        conversation: &Conversation,
        toolbox: &mut Toolbox,
    ) -> Result<Option<Arc<str>>, End> {
        let most = if self.is_iteration { usize::MAX } else { 1 };
        let mut prompts: Vec<_> = history::new_prompts(conversation.events()).take(most).collect();
        prompts.reverse();
        let (mut names, mut texts) = (Vec::new(), Vec::new());
        for prompt in prompts {
            let reading = toolbox.named_content(prompt);
            let Some(read) = self.cancel.run_until_cancelled(reading).await else {
                return Ok(None);
            };
            let NamedContent { parts, notices } = match read {
                Ok(content) => content,
                Err(why) if !self.is_iteration => return Err(End::failed(why)),
                Err(why) => NamedContent { parts: Vec::new(), notices: vec![why] },
            };
            for text in notices {
                self.report(Report::ToolsMissing { reason: reason(text) }).await;
            }
            let (more_names, more_texts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            names.extend(more_names);
            texts.extend(more_texts);
        }
        if texts.is_empty() {
            return Ok(None);
        }
        // One fact, so that a restart finds all of it or nothing.
        let text: Arc<str> = texts.join("\n\n").into();
        self.report(Report::ContentAdded { name: names.join(", "), text: Arc::clone(&text) }).await;
        Ok(Some(text))
    }
}
