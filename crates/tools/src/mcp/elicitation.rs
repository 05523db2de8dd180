//! Questions of a server for the user (elicitation).
//!
//! Forms and addresses are questions, never a Confirm, which a setting can approve.

mod form;
mod secret;

use holdpoint_common::{
    Question, QuestionOption, QuestionReply, QuestionRequest, QuestionResponse,
};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::Value;

use self::form::Form;
use crate::ask::Subject;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::shown::{prose, prose_line};

/// The most bytes of the message of a question.
const MAX_MESSAGE: usize = 4 * 1024;

/// The most bytes of an address.
const MAX_URL: usize = 2 * 1024;

/// The most bytes of all texts of a question, as they are shown.
const MAX_ASK: usize = 64 * 1024;

/// How often the fields of a form are asked for if an answer has the wrong type.
const MAX_TRIES: usize = 3;

/// The answer of a user who has opened an address.
const OPENED: &str = "opened";

/// Asks the user, and returns the answer for the server; `None` if the subject, which is the
/// server's request, has ended. A question beyond the bounds is declined, with a line of output.
///
/// # Errors
/// The turn was cut.
pub(super) fn ask(
    server: &str,
    request: ElicitRequestParams,
    subject: &Subject,
    context: &ToolContext,
) -> Result<Option<ElicitResult>, ToolError> {
    let asking = Asking { server, subject, context };
    let asked = match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let order = requested_schema.property_order.clone();
            let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
            check_message(&message)
                .and_then(|()| Form::new(&message, &schema, order.as_deref()))
                .map(|form| asking.form(&form))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => check_message(&message)
            .and_then(|()| check_url(&url))
            .map(|()| asking.url(&message, &url)),
        _ => Err("its kind is not known".to_owned()),
    };
    match asked {
        Ok(Ok(result)) => Ok(Some(result)),
        Ok(Err(NoAnswer::Withdrawn)) => {
            context.output("[the server has withdrawn its question]\n");
            Ok(None)
        }
        Ok(Err(NoAnswer::Interrupted)) => Err(ToolError::Interrupted),
        Ok(Err(NoAnswer::TooLarge(why))) | Err(why) => {
            context.output(&format!("[a question of the server is declined: {why}]\n"));
            Ok(Some(declined()))
        }
    }
}

/// The answer to a question that is declined.
pub(super) fn declined() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

fn check_message(message: &str) -> Result<(), String> {
    within("its message", message, MAX_MESSAGE)
}

fn check_url(url: &str) -> Result<(), String> {
    within("its address", url, MAX_URL)?;
    let is_web = ["https://", "http://"].iter().any(|scheme| url.starts_with(scheme));
    if !is_web || url.contains(char::is_whitespace) || prose_line(url) != url {
        return Err("its address is not one of the web".to_owned());
    }
    Ok(())
}

/// # Errors
/// The reason why a text is too long.
fn within(what: &str, text: &str, max: usize) -> Result<(), String> {
    match text.len() {
        bytes if bytes > max => Err(format!("{what} has {bytes} bytes; the limit is {max}")),
        _ => Ok(()),
    }
}

/// The reason why a question has no answer.
enum NoAnswer {
    Withdrawn,
    Interrupted,
    TooLarge(String),
}

/// A question of a server.
struct Asking<'a> {
    server: &'a str,
    subject: &'a Subject,
    context: &'a ToolContext,
}

impl Asking<'_> {
    fn form(&self, form: &Form) -> Result<ElicitResult, NoAnswer> {
        let mut problem = None;
        for _ in 0..MAX_TRIES {
            let Some(replies) = self.ask(form.questions(self.server, problem.as_deref()))? else {
                break;
            };
            match form.content(&replies) {
                Ok(Some(content)) => {
                    return Ok(ElicitResult::new(ElicitationAction::Accept)
                        .with_content(Value::Object(content)));
                }
                Ok(None) => break,
                Err(why) => problem = Some(why),
            }
        }
        Ok(declined())
    }

    fn url(&self, message: &str, url: &str) -> Result<ElicitResult, NoAnswer> {
        let question = format!(
            "The MCP server `{}` asks you to open this address in your browser:\n{url}\n{}",
            self.server,
            prose(message)
        );
        let option = |label: &str, description: &str| QuestionOption {
            label: label.to_owned(),
            description: description.to_owned(),
        };
        let options = vec![
            option(OPENED, "I have opened the address, and am done there"),
            option("no", "I do not open it"),
        ];
        let (id, header) = ("address".to_owned(), "Address".to_owned());
        let replies = self.ask(vec![Question { id, header, question, options }])?;
        let is_opened = |reply: &QuestionReply| reply.answer.as_deref() == Some(OPENED);
        Ok(match replies.is_some_and(|replies| replies.iter().any(is_opened)) {
            true => ElicitResult::new(ElicitationAction::Accept),
            false => declined(),
        })
    }

    /// Asks; `None` if the user declines, or no person answers.
    fn ask(&self, questions: Vec<Question>) -> Result<Option<Vec<QuestionReply>>, NoAnswer> {
        let bytes = questions.iter().map(bytes).sum::<usize>();
        if bytes > MAX_ASK {
            let why = format!("its texts have {bytes} bytes; the limit is {MAX_ASK}");
            return Err(NoAnswer::TooLarge(why));
        }
        let tool_name = format!("MCP server {}", self.server);
        let request = QuestionRequest { tool_name, questions };
        match self.context.ask_about(self.subject, request) {
            Some(QuestionResponse::Replied { replies }) => Ok(Some(replies)),
            Some(QuestionResponse::Declined | QuestionResponse::Unanswerable) => Ok(None),
            Some(QuestionResponse::Interrupted) => Err(NoAnswer::Interrupted),
            None => Err(NoAnswer::Withdrawn),
        }
    }
}

fn bytes(question: &Question) -> usize {
    let Question { id, header, question, options } = question;
    let options = options.iter().map(|option| option.label.len() + option.description.len());
    id.len() + header.len() + question.len() + options.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_only_addresses_of_the_web_are_shown() {
        for url in ["https://example.com/a?b=%20", "http://localhost:1/"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        let long = format!("https://example.com/{}", "x".repeat(MAX_URL));
        for url in
            ["file:///etc/passwd", "javascript:alert(1)", "https://a b", "https://a\u{202e}", &long]
        {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
