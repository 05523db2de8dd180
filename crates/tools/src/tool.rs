//! What a tool is.

use holdpoint_common::FileMark;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::workspace::Workspace;

/// A tool that a model can call.
///
/// Made per session, and one instance serves one call at a time: calls of the same tool that run side by
/// side get instances of their own. A call is judged by [`intent`](Self::intent) of the instance that then
/// runs it. Dropped with the session.
pub trait Tool: Send {
    /// What the model calls it by: `a-z`, `0-9` and `_`.
    fn name(&self) -> &str;

    /// What it does, for the model.
    fn description(&self) -> &str;

    /// The JSON Schema of its input: an object.
    fn schema(&self) -> Value;

    /// What this call would do to the world, and how to show it to the user. Reads the input and nothing
    /// else of the world than the paths it names, and where hosts are that it names, if that can be told near here.
    ///
    /// # Errors
    /// [`ToolError::Input`] if the input does not fit; the call does not run and the model is told.
    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError>;

    /// Whether its calls of one answer run one after the other, as the model has written them: each sees what the one
    /// before has done. Others run side by side.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Does it. Runs on a thread of its own and may block.
    ///
    /// # Errors
    /// [`ToolError`]; the model is told.
    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError>;
}

/// What a call would do: what the policy judges and what a Confirm shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// What it does to the world. Nothing at all may run unasked.
    pub acts: Vec<Act>,
    /// The question for the user, one line: `Run this command?`
    pub message: String,
    /// Exactly what would be done: the command, the path, the text.
    pub details: Option<String>,
    /// What an *always* remembers: a later call with the same key is not asked again in this session.
    pub always: Option<String>,
}

impl Intent {
    /// An intent that is shown by its message alone and can't be remembered.
    pub fn new(act: Act, message: impl Into<String>) -> Self {
        Self { acts: vec![act], message: message.into(), details: None, always: None }
    }
}

/// What a call brought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutcome {
    /// What the model reads, after what the call has streamed.
    pub output: String,
    /// The model should take this as a failure: a command that exited with 1.
    pub failed: bool,
    /// Files it read.
    pub read: Vec<FileMark>,
    /// Files it wrote.
    pub wrote: Vec<FileMark>,
}

impl ToolOutcome {
    /// An outcome that is only text.
    pub fn text(output: impl Into<String>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }
}

/// Makes the tools of one session. Dropped with it.
pub struct Toolbox {
    kinds: Vec<Kind>,
}

struct Kind {
    make: Box<dyn FnMut() -> Box<dyn Tool> + Send>,
    idle: Vec<Box<dyn Tool>>,
    spec: ToolSpec,
}

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// What it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its input.
    pub schema: Value,
}

impl Toolbox {
    /// A box without tools.
    #[must_use]
    pub fn new() -> Self {
        Self { kinds: Vec::new() }
    }

    /// Adds a tool. `make` is called whenever one more instance is needed; what all instances of the session
    /// share, it keeps. A later tool of the same name replaces an earlier one.
    #[must_use]
    pub fn with<T: Tool + 'static>(mut self, mut make: impl FnMut() -> T + Send + 'static) -> Self {
        let mut make: Box<dyn FnMut() -> Box<dyn Tool> + Send> = Box::new(move || Box::new(make()));
        let first = make();
        let spec = ToolSpec {
            name: first.name().to_owned(),
            description: first.description().to_owned(),
            schema: first.schema(),
        };
        self.kinds.retain(|kind| kind.spec.name != spec.name);
        self.kinds.push(Kind { make, idle: vec![first], spec });
        self
    }

    /// What a model is told about the tools, in the order they were added.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.kinds.iter().map(|kind| &kind.spec)
    }

    /// An instance for one call; [`put_back`](Self::put_back) it afterwards.
    pub fn take(&mut self, name: &str) -> Option<Box<dyn Tool>> {
        let kind = self.kinds.iter_mut().find(|kind| kind.spec.name == name)?;
        Some(kind.idle.pop().unwrap_or_else(|| (kind.make)()))
    }

    /// Takes an instance back after its call.
    pub fn put_back(&mut self, tool: Box<dyn Tool>) {
        if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.spec.name == tool.name()) {
            kind.idle.push(tool);
        }
    }
}

impl Default for Toolbox {
    fn default() -> Self {
        Self::new()
    }
}
