//! A tool that runs the functions of a test.

use std::sync::{Arc, Mutex, PoisonError};

use crossbeam_channel::{Sender, bounded};
use holdpoint_tools::{Act, Intent, Tool, ToolContext, ToolError, ToolOutcome, Workspace};
use serde_json::{Value, json};

/// The function that a call of the probe runs.
pub type ProbeCall =
    Arc<dyn Fn(Value, &ToolContext) -> Result<ToolOutcome, ToolError> + Send + Sync>;

/// The tool `probe`. Each call runs the function that the test set last.
#[derive(Clone)]
pub struct Probe(Arc<Mutex<ProbeCall>>);

impl Default for Probe {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Arc::new(|input: Value, _: &ToolContext| {
            Ok(ToolOutcome::text(input.to_string()))
        }))))
    }
}

impl Probe {
    /// Sets the function of later calls.
    pub fn does<F>(&self, call: F)
    where
        F: Fn(Value, &ToolContext) -> Result<ToolOutcome, ToolError> + Send + Sync + 'static,
    {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(call);
    }

    /// Lets later calls output `start_text` and then wait until the returned sender is dropped,
    /// ignoring everything else.
    #[must_use]
    pub fn ignores_cancel(&self, start_text: &'static str) -> Sender<()> {
        let (release, released) = bounded::<()>(0);
        self.does(move |_, context| {
            context.output(start_text);
            // No message is ever sent.
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
