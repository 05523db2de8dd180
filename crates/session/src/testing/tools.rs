//! A tool that does what the test wants, call by call.

use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Sender, bounded};
use holdpoint_tools::{Act, Intent, Tool, ToolContext, ToolError, ToolOutcome, Workspace};
use serde_json::{Value, json};

/// What one call of the probe does.
pub type ProbeCall = Arc<dyn Fn(Value, &ToolContext) -> Result<ToolOutcome, ToolError> + Send + Sync>;

/// The tool `probe`: each call does what the test said last.
#[derive(Clone)]
pub struct Probe(Arc<Mutex<ProbeCall>>);

impl Default for Probe {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Arc::new(|input: Value, _: &ToolContext| Ok(ToolOutcome::text(input.to_string()))))))
    }
}

impl Probe {
    /// From now on, calls do this.
    pub fn does<F>(&self, call: F)
    where
        F: Fn(Value, &ToolContext) -> Result<ToolOutcome, ToolError> + Send + Sync + 'static,
    {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(call);
    }

    /// From now on, a call says `begun` and ends when what this returns is dropped, whatever it is told meanwhile.
    #[must_use]
    pub fn hears_nothing(&self, begun: &'static str) -> Sender<()> {
        let (release, released) = bounded::<()>(0);
        self.does(move |_, context| {
            context.output(begun);
            // Nothing is ever sent.
            let _ = released.recv();
            Ok(ToolOutcome::default())
        });
        release
    }

    /// The tool, for an engine's toolbox.
    #[must_use]
    pub fn tool(&self) -> ProbeTool {
        ProbeTool(self.clone())
    }
}

/// The tool `probe` itself.
pub struct ProbeTool(Probe);

impl Tool for ProbeTool {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn description(&self) -> &'static str {
        "Does what the test wants."
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        let mut intent = Intent::new(Act::Other, "Probe?");
        intent.details = Some(input.to_string());
        intent.always = Some(format!("probe {input}"));
        Ok(intent)
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let call = Arc::clone(&self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        call(input, context)
    }
}
