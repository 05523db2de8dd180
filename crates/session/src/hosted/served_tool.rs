//! The session's own tools for the requests of its agent: each call serves one request, and replies
//! to it.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use futures_util::FutureExt;
use holdpoint_common::Verdict;
use holdpoint_tools::{
    Act, Intent, Place, ReadFile, Shell, Tool, ToolContext, ToolError, ToolOutcome, Workspace,
    WriteFile,
};
use serde_json::{Value, json};
use tokio::runtime;

use super::connection::RpcError;
use super::link::{Done, SharedLink};
use super::protocol::{INTERNAL_ERROR, NOT_FOUND};
use super::served::{FIELD, READ};

/// The most bytes of a text that the agent reads with one request.
const MAX_TEXT: usize = 4 * 1024 * 1024;

/// The most bytes of it that the session shows and the log keeps.
const MAX_SHOWN: usize = 64 * 1024;

/// A tool of the session that serves requests of the agent.
pub(super) trait Serve: Tool {
    /// Carries out a call. Returns the result for the agent, too.
    ///
    /// # Errors
    /// The error of the call.
    fn serve(
        &mut self,
        input: Value,
        context: &ToolContext,
    ) -> Result<(ToolOutcome, Done), ToolError>;
}

impl Serve for ReadFile {
    fn serve(
        &mut self,
        input: Value,
        context: &ToolContext,
    ) -> Result<(ToolOutcome, Done), ToolError> {
        let (text, mark) = self.read_exact(&input, MAX_TEXT, context)?;
        let end = text.floor_char_boundary(MAX_SHOWN);
        let shown = match &text[..end] {
            "" => "[no text]".to_owned(),
            shown if end == text.len() => shown.to_owned(),
            shown => format!("{shown}\n[the agent got {} bytes]", text.len()),
        };
        let outcome = ToolOutcome { read: vec![mark], ..ToolOutcome::text(shown) };
        Ok((outcome, Done::Text(text)))
    }
}

impl Serve for WriteFile {
    fn serve(
        &mut self,
        input: Value,
        context: &ToolContext,
    ) -> Result<(ToolOutcome, Done), ToolError> {
        Ok((self.call(input, context)?, Done::Written))
    }
}

impl Serve for Shell {
    /// The command is a background job, so that the agent can use its terminal.
    fn serve(
        &mut self,
        input: Value,
        context: &ToolContext,
    ) -> Result<(ToolOutcome, Done), ToolError> {
        Ok((self.call(input, context)?, Done::Terminal(context.call_id())))
    }
}

/// A tool that replies to the request of the agent when its call has ended.
pub(super) struct ServedTool<T> {
    tool: T,
    link: SharedLink,
    runtime: runtime::Handle,
    /// The number of the request, once it is known.
    request: Cell<Option<u64>>,
}

impl<T: Serve> ServedTool<T> {
    pub(super) fn new(tool: T, link: SharedLink, runtime: runtime::Handle) -> Self {
        Self { tool, link, runtime, request: Cell::new(None) }
    }

    /// The number of the request, and the input without it.
    fn split(input: &Value) -> Result<(u64, Value), ToolError> {
        let mut input = input.clone();
        let number = input.as_object_mut().and_then(|fields| fields.remove(FIELD));
        let number = number.as_ref().and_then(Value::as_u64);
        Ok((number.ok_or_else(|| ToolError::input("the request has no number"))?, input))
    }

    /// Serves the request with this number. A panic of the tool also is an error of the request, and
    /// continues then.
    fn serve(
        &mut self,
        number: u64,
        input: Value,
        context: &ToolContext,
    ) -> Result<ToolOutcome, ToolError> {
        let serving = AssertUnwindSafe(|| self.tool.serve(input.clone(), context));
        match catch_unwind(serving) {
            Ok(Ok((outcome, done))) => {
                let job = matches!(done, Done::Terminal(_)).then(|| context.call_id());
                if !self.reply(number, Ok(done), context) {
                    // The agent has ended meanwhile.
                    job.into_iter().for_each(|job| context.background().begin_stop(job));
                }
                Ok(outcome)
            }
            Ok(Err(ToolError::Interrupted)) => Err(ToolError::Interrupted),
            Ok(Err(error)) => {
                self.reply(number, Err(self.error(&input, &error)), context);
                Err(error)
            }
            Err(panic) => {
                let message = "the tool panicked".to_owned();
                let error = RpcError { code: INTERNAL_ERROR, message };
                self.reply(number, Err(error), context);
                resume_unwind(panic)
            }
        }
    }

    /// The error of the agent's request.
    fn error(&self, input: &Value, error: &ToolError) -> RpcError {
        let path = input.get("path").and_then(Value::as_str).filter(|_| self.tool.name() == READ);
        let is_missing = |path: &str| {
            let found = Path::new(path).symlink_metadata();
            found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        match path.is_some_and(is_missing) {
            // Some agents know a missing file only by these words.
            true => RpcError { code: NOT_FOUND, message: format!("Resource not found: {error}") },
            false => RpcError { code: INTERNAL_ERROR, message: error.to_string() },
        }
    }

    /// Replies to the request, unless the turn is cut, which does it. Returns `false` if the agent no
    /// longer waits.
    fn reply(&self, number: u64, result: Result<Done, RpcError>, context: &ToolContext) -> bool {
        let replied = async {
            let mut link = self.link.lock().await;
            let is_sent = link.finish_request(number, result);
            // An agent that does not read gets the rest later.
            let _ = link.flush().now_or_never();
            is_sent
        };
        self.runtime.block_on(context.until_cancelled(replied)).unwrap_or(true)
    }
}

/// Fails if a place is in one of Holdpoint's own folders. The sandbox hides these from the processes
/// of the agent, so its requests must not reach them either.
fn check_not_own(place: &Place, workspace: &Workspace) -> Result<(), ToolError> {
    match workspace.policy().is_in_protected_folder(place) {
        true => Err(ToolError::failed(format!(
            "{}: Holdpoint's own folders are not in reach of an agent",
            place.path().display()
        ))),
        false => Ok(()),
    }
}

fn no_longer_waits() -> ToolError {
    ToolError::failed("the agent no longer waits for the request: nothing was done")
}

impl<T: Serve> Tool for ServedTool<T> {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn schema(&self) -> Value {
        let mut schema = self.tool.schema();
        schema["properties"][FIELD] = json!({ "type": "integer" });
        schema
    }

    /// Judged as any call of the tool. If the user has approved exactly this command when the agent
    /// asked for permission, it does not ask again. No policy allows a request for Holdpoint's own
    /// folders.
    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let (number, input) = Self::split(input)?;
        self.request.set(Some(number));
        let (folder, is_approved) = {
            let link = self.link.blocking_lock();
            let open = link.served.open(number).ok_or_else(no_longer_waits)?;
            (open.folder.clone(), open.is_approved)
        };
        // Before the tool looks at the file, because its errors depend on the contents.
        let path = input.get("path").and_then(Value::as_str).map(str::to_owned);
        for path in path.into_iter().chain(folder) {
            check_not_own(&Place::resolve(&path, workspace.root())?, workspace)?;
        }
        let intent = self.tool.intent(&input, workspace)?;
        for act in &intent.acts {
            // A link in the path may lead elsewhere by now.
            if let Act::Read(place) | Act::Write(place) = act {
                check_not_own(place, workspace)?;
            }
        }
        if !is_approved {
            return Ok(intent);
        }
        let judgement = workspace.policy().judge(self.name(), &intent.acts, workspace.root());
        match judgement.verdict {
            Verdict::Ask if !judgement.may_be_denied() => {
                Ok(Intent { acts: vec![Act::Internal], ..intent })
            }
            _ => Ok(intent),
        }
    }

    fn is_in_order(&self) -> bool {
        self.tool.is_in_order()
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let (number, input) = Self::split(&input)?;
        let link = self.runtime.block_on(context.until_cancelled(self.link.lock()));
        if !link.ok_or(ToolError::Interrupted)?.is_waiting_for(number) {
            return Err(no_longer_waits());
        }
        self.serve(number, input, context)
    }

    fn not_run(&mut self, why: &str) {
        let Some(number) = self.request.get() else { return };
        let (link, message) = (self.link.clone(), why.to_owned());
        self.runtime.spawn(async move {
            let mut link = link.lock().await;
            link.finish_request(number, Err(RpcError { code: INTERNAL_ERROR, message }));
            let _ = link.flush().now_or_never();
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdpoint_common::AgentSettings;
    use holdpoint_tools::testing::Bench;
    use tokio::runtime::Builder;

    use super::*;
    use crate::hosted::link::Link;
    use crate::hosted::protocol::ClientRequest;

    /// A tool that panics when it is used.
    struct Panics;

    impl Tool for Panics {
        fn name(&self) -> &str {
            "panics"
        }

        fn description(&self) -> &str {
            "Panics"
        }

        fn schema(&self) -> Value {
            json!({ "type": "object" })
        }

        fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
            panic!("the intent fell over")
        }

        fn call(&mut self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
            panic!("the call fell over")
        }
    }

    impl Serve for Panics {
        fn serve(
            &mut self,
            input: Value,
            context: &ToolContext,
        ) -> Result<(ToolOutcome, Done), ToolError> {
            Ok((self.call(input, context)?, Done::Written))
        }
    }

    /// Serves the request 1 as a call.
    struct Serving(ServedTool<Panics>);

    impl Tool for Serving {
        fn name(&self) -> &str {
            self.0.name()
        }

        fn description(&self) -> &str {
            self.0.description()
        }

        fn schema(&self) -> Value {
            self.0.schema()
        }

        fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
            self.0.intent(input, workspace)
        }

        fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
            let serving = AssertUnwindSafe(|| self.0.serve(1, input, context));
            catch_unwind(serving).unwrap_or_else(|_| Err(ToolError::failed("panicked")))
        }
    }

    /// A link with the open request 1.
    fn link() -> SharedLink {
        let link = Link::shared(&AgentSettings::from_command(vec!["agent".to_owned()]));
        let request = ClientRequest::Write { path: "/f".to_owned(), content: String::new() };
        let mut locked = link.try_lock().unwrap();
        locked.served.push(&json!("id"), request, Path::new("/w")).unwrap();
        assert_eq!(locked.served.next_calls().len(), 1);
        drop(locked);
        link
    }

    #[test]
    fn m_h3_a_request_gets_a_reply_if_its_tool_panics() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let is_open = |link: &SharedLink| link.blocking_lock().served.open(1).is_some();
        let tool =
            |link: &SharedLink| ServedTool::new(Panics, Arc::clone(link), runtime.handle().clone());
        let bench = Bench::new();
        let called = link();
        assert!(is_open(&called));
        let result = bench.call(Serving(tool(&called)), json!({})).result;
        assert!(result.unwrap_err().to_string().contains("panicked"));
        assert!(!is_open(&called), "the call has replied");
    }
}
