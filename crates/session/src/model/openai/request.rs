//! A conversation in rig's words.

use std::collections::HashMap;

use holdpoint_common::{AssistantMessage, BlockKind, CallId};
use rig_core::completion::{CompletionRequest, ReplayTarget, ToolDefinition};
use rig_core::message as rig;
use rig_core::providers::openai::wire::Chat;
use serde_json::Value;

use crate::model::{Message, ModelError, ModelRequest};

/// The request to `chat` as rig wants it.
pub(super) fn completion(chat: &Chat, request: &ModelRequest) -> Result<CompletionRequest, ModelError> {
    // What comes from elsewhere rig would rewrite, and send thoughts as if they had been said.
    let origin = rig::Origin::new(chat.api(), chat.provider(), chat.model());
    let mut history = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        history.push(rig::Message::System { content: request.system.to_string() });
    }
    // The tool of each call, which a result must name too.
    let mut tools = HashMap::new();
    for message in &request.messages {
        match message {
            Message::User(text) => {
                let text = rig::UserContent::Text(rig::Text::new(text));
                history.push(rig::Message::User { content: vec![text] });
            }
            Message::Assistant(answer) => {
                tools.extend(answer.calls.iter().map(|call| (call.id, call.name.as_str())));
                let content = assistant(answer)?;
                if !content.is_empty() {
                    history
                        .push(rig::Message::Assistant(rig::AssistantMessage::new(content).with_origin(origin.clone())));
                }
            }
            Message::Tool(result) => {
                let content = rig::UserContent::ToolResult(rig::ToolResult {
                    call: call_id(result.call),
                    name: tool_name(tools.get(&result.call).copied().unwrap_or("unknown"))?,
                    content: vec![rig::ToolResultContent::Text(rig::Text::new(result.to_text()))],
                    is_error: false,
                });
                match history.last_mut() {
                    Some(rig::Message::User { content: results })
                        if matches!(results.last(), Some(rig::UserContent::ToolResult(_))) =>
                    {
                        results.push(content);
                    }
                    _ => history.push(rig::Message::User { content: vec![content] }),
                }
            }
        }
    }
    let tools = request
        .tools
        .iter()
        .map(|tool| Ok(ToolDefinition::new(tool_name(&tool.name)?, &tool.description, tool.schema.clone())));
    let mut completion = CompletionRequest::from(history).accept_unknown_finish_reasons(true);
    completion.tools = tools.collect::<Result<_, ModelError>>()?;
    Ok(completion)
}

fn assistant(answer: &AssistantMessage) -> Result<Vec<rig::AssistantContent>, ModelError> {
    let blocks = answer.blocks.iter().filter(|block| !block.text.trim().is_empty()).map(|block| {
        Ok(match block.kind {
            BlockKind::Text => rig::AssistantContent::Text(rig::Text::new(&block.text)),
            BlockKind::Thought => rig::AssistantContent::Reasoning(rig::Reasoning::new(&block.text)),
        })
    });
    let calls = answer.calls.iter().map(|call| {
        let arguments = match &call.input {
            Value::Object(_) => call.input.clone(),
            // Never stored, so never sent; a request with it would be refused.
            _ => Value::Object(serde_json::Map::new()),
        };
        let function = rig::ToolFunction::new(tool_name(&call.name)?, arguments);
        Ok(rig::AssistantContent::ToolCall(rig::ToolCall::new(call_id(call.id), function)))
    });
    let mut content = blocks.chain(calls).collect::<Result<Vec<_>, ModelError>>()?;
    if !content.iter().any(rig::AssistantContent::is_answer) {
        content.clear();
    }
    Ok(content)
}

/// Our own name for a call, whatever the provider called it: never missing, never doubled.
fn call_id(id: CallId) -> rig::CallId {
    rig::CallId::from_wire(format!("call_{id}"))
}

fn tool_name(name: &str) -> Result<rig::ToolName, ModelError> {
    rig::ToolName::new(name).map_err(|_| ModelError::Setup {
        message: "a tool has no name".into(),
        hint: "give every tool a name of a-z, 0-9 and _".into(),
    })
}
