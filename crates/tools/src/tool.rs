//! The trait of all tools, and the toolbox of a session.

use std::sync::Arc;

use holdpoint_common::{EndedProcesses, FileMark, Image};
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::source::{MakeTool, NamedContent, Refreshed, SourceContext, ToolSource};
use crate::workspace::Workspace;

/// A tool that a model can call.
///
/// Instances are created per session, and each serves one call at a time: parallel calls of the
/// same tool use separate instances. The policy judges a call by the [`intent`](Self::intent) of
/// the instance that then runs it. Instances are dropped with the session.
pub trait Tool: Send {
    /// The name by which the model calls the tool: at most 64 letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// A description of the tool for the model.
    fn description(&self) -> &str;

    /// The JSON Schema of the input, which is an object. Any draft is accepted, but no references
    /// to other documents: a schema that can't be used accepts every input.
    fn schema(&self) -> Value;

    /// The effects that this call would have, and their display for the user. An implementation may
    /// look only at the input, at the paths that the input names, and at the addresses of the hosts
    /// that the input names, if these can be looked up locally.
    ///
    /// # Errors
    /// [`ToolError::Input`] if the input is invalid. The call does not run, and the model gets the
    /// error.
    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError>;

    /// Whether the calls of one answer run one after the other, in the order in which the model
    /// wrote them, so that each sees the effects of the one before. Calls of other tools run in
    /// parallel.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Carries out the call. Runs on its own thread and may block.
    ///
    /// # Errors
    /// The [`ToolError`] that the model gets.
    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError>;

    /// Notes, for this reason, that the call does not run: its input is invalid, its intent has
    /// panicked, or the policy or the user has denied it. Returns at once. The instance is dropped
    /// then. Not used if the turn was cut.
    fn not_run(&mut self, why: &str) {
        let _ = why;
    }
}

impl Tool for Box<dyn Tool> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn description(&self) -> &str {
        (**self).description()
    }

    fn schema(&self) -> Value {
        (**self).schema()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        (**self).intent(input, workspace)
    }

    fn is_in_order(&self) -> bool {
        (**self).is_in_order()
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        (**self).call(input, context)
    }

    fn not_run(&mut self, why: &str) {
        (**self).not_run(why);
    }
}

/// The effects that a call would have, for the policy, and the text that a Confirm shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// The effects on the world. A call without any is judged as [`Act::Other`].
    pub acts: Vec<Act>,
    /// The question for the user on one line, such as `Run this command?`.
    pub message: String,
    /// The exact command, path or text of the call.
    pub details: Option<String>,
    /// The key that an *always* remembers. A later call with the same key needs no approval in this
    /// session.
    pub always: Option<String>,
}

impl Intent {
    /// Creates an intent that shows only its message and offers no *always*.
    pub fn new(act: Act, message: impl Into<String>) -> Self {
        Self { acts: vec![act], message: message.into(), details: None, always: None }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutcome {
    /// The text that the model gets after the streamed output.
    pub output: String,
    /// Whether the model should treat this as a failure, such as a command that exited with 1.
    pub failed: bool,
    /// Images for the model, if it takes any. The output names each of them.
    pub images: Vec<Image>,
    /// The files that the call has read.
    pub read: Vec<FileMark>,
    /// The files that the call has written.
    pub wrote: Vec<FileMark>,
}

impl ToolOutcome {
    /// Creates an outcome that is only text.
    pub fn text(output: impl Into<String>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }
}

/// Creates the tools of one session, and is dropped with it.
pub struct Toolbox {
    kinds: Vec<Kind>,
    source: Option<Box<dyn ToolSource>>,
    /// The tools of the source.
    sourced: Vec<Kind>,
    /// Messages for the user that are not reported yet.
    notices: Vec<String>,
}

struct Kind {
    make: MakeTool,
    idle: Vec<Box<dyn Tool>>,
    spec: Arc<ToolSpec>,
}

/// The description of a tool that a model gets.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name by which the model calls the tool.
    pub name: String,
    /// The description of the tool for the model.
    pub description: String,
    /// The JSON Schema of the tool's input.
    pub schema: Value,
}

impl Kind {
    fn new(mut make: MakeTool) -> Self {
        let first = make();
        let spec = ToolSpec {
            name: first.name().to_owned(),
            description: first.description().to_owned(),
            schema: first.schema(),
        };
        Self { make, idle: vec![first], spec: Arc::new(spec) }
    }
}

impl Toolbox {
    /// Creates a toolbox without tools.
    #[must_use]
    pub fn new() -> Self {
        Self { kinds: Vec::new(), source: None, sourced: Vec::new(), notices: Vec::new() }
    }

    /// Adds a tool. `make` is called for every new instance, and holds the state that all instances
    /// of the session share. A later tool replaces an earlier one of the same name.
    #[must_use]
    pub fn with<T: Tool + 'static>(mut self, mut make: impl FnMut() -> T + Send + 'static) -> Self {
        let kind = Kind::new(Box::new(move || Box::new(make())));
        self.kinds.retain(|known| known.spec.name != kind.spec.name);
        self.kinds.push(kind);
        self
    }

    /// Sets the source of further tools, which replaces an earlier one. A tool of the source with
    /// the name of another tool is not used.
    #[must_use]
    pub fn with_source(self, source: Box<dyn ToolSource>) -> Self {
        Self { source: Some(source), sourced: Vec::new(), ..self }
    }

    /// Adds a message for the user, on one line, which the next refresh reports.
    #[must_use]
    pub fn with_notice(mut self, notice: String) -> Self {
        self.notices.push(notice);
        self
    }

    /// Brings the tools of the source up to date, if there is one. Returns whether they have
    /// changed, and messages for the user. See [`ToolSource::refresh`].
    pub async fn refresh(&mut self, context: &SourceContext) -> (bool, Vec<String>) {
        let Some(source) = &mut self.source else {
            return (false, std::mem::take(&mut self.notices));
        };
        let Refreshed { tools, notices } = source.refresh(context).await;
        let notices = self.notices.drain(..).chain(notices).collect();
        let changed = tools.is_some();
        if let Some(tools) = tools {
            self.sourced.clear();
            for kind in tools.into_iter().map(Kind::new) {
                if self.kinds().all(|known| known.spec.name != kind.spec.name) {
                    self.sourced.push(kind);
                }
            }
        }
        (changed, notices)
    }

    /// Reads the content that a prompt names, if the tools have a source. See
    /// [`ToolSource::named_content`].
    ///
    /// # Errors
    /// The prompt can't be used without the content.
    pub async fn named_content(&mut self, prompt: &str) -> Result<NamedContent, String> {
        match &mut self.source {
            Some(source) => source.named_content(prompt).await,
            None => Ok(NamedContent::default()),
        }
    }

    /// Ends what a turn has left running, if the tools have a source. See
    /// [`ToolSource::end_turn`].
    pub async fn end_turn(&mut self, cut: bool) -> EndedProcesses {
        match &mut self.source {
            Some(source) => source.end_turn(cut).await,
            None => EndedProcesses::default(),
        }
    }

    fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().chain(&self.sourced)
    }

    fn kind(&mut self, name: &str) -> Option<&mut Kind> {
        self.kinds.iter_mut().chain(&mut self.sourced).find(|kind| kind.spec.name == name)
    }

    /// The descriptions of the tools, in the order in which they were added. Those of the source are
    /// the last.
    pub fn specs(&self) -> impl Iterator<Item = &Arc<ToolSpec>> {
        self.kinds().map(|kind| &kind.spec)
    }

    /// Uses these descriptions in place of equal ones, so that many sessions keep them only once.
    pub fn share_specs(&mut self, known: &[Arc<ToolSpec>]) {
        for (kind, known) in self.kinds.iter_mut().zip(known) {
            if kind.spec == *known {
                kind.spec = Arc::clone(known);
            }
        }
    }

    /// Takes an instance for one call. Return it with [`put_back`](Self::put_back) afterwards.
    pub fn take(&mut self, name: &str) -> Option<Box<dyn Tool>> {
        let kind = self.kind(name)?;
        Some(kind.idle.pop().unwrap_or_else(|| (kind.make)()))
    }

    /// Returns an instance after its call.
    pub fn put_back(&mut self, tool: Box<dyn Tool>) {
        if let Some(kind) = self.kind(tool.name()) {
            kind.idle.push(tool);
        }
    }
}

impl Default for Toolbox {
    fn default() -> Self {
        Self::new()
    }
}
