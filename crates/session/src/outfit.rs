//! What sessions are equipped with: by their engine all alike, and each for itself.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use holdpoint_common::{Limits, SessionSettings, Snapshot, Supplies};
use holdpoint_tools::{Policy, PolicyError, Supervisor, Toolbox, Workspace, environment};
use tokio::runtime;

use crate::context::Tokenizer;
use crate::model::{Catalog, Model, ModelRequest};
use crate::state::Moment;
use crate::store::SessionStore;

/// Makes the tools of a session.
pub(crate) type ToolboxMaker = Arc<dyn Fn(&SessionSettings) -> Toolbox + Send + Sync>;

/// What every session of an engine shares.
pub(crate) struct Base {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) toolbox: ToolboxMaker,
    pub(crate) supervisor: Supervisor,
    pub(crate) own_folders: Vec<PathBuf>,
    pub(crate) system: Arc<str>,
    /// Bytes of the tools in a request, once they are counted.
    pub(crate) tool_bytes: OnceLock<u64>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) runtime: runtime::Handle,
}

/// What one session works with.
#[derive(Clone)]
pub(crate) struct Outfit {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) toolbox: ToolboxMaker,
    pub(crate) supervisor: Supervisor,
    pub(crate) limits: Arc<Limits>,
    pub(crate) system: Arc<str>,
    pub(crate) fixed_bytes: u64,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) runtime: runtime::Handle,
    /// Why nothing of it is saved, if the store is not durable.
    pub(crate) not_saved: Option<Arc<str>>,
}

/// Why nothing is saved in a store that is not durable.
const IN_MEMORY: &str = "the session is kept in memory and ends with its process";

impl Base {
    /// Whether something of a session is not in its log yet. In a store that is not durable nothing counts as saved, and
    /// its logs never lack anything.
    pub(crate) fn lacks_saves(&self, shown: &Snapshot) -> bool {
        !shown.saved && self.store.is_durable()
    }

    /// Why nothing is saved, if the store is not durable.
    pub(crate) fn not_saved(&self) -> Option<Arc<str>> {
        (!self.store.is_durable()).then(|| IN_MEMORY.into())
    }

    /// About how many bytes every request of a session has beside its conversation: this system prompt and the tools, which
    /// differ little from session to session.
    pub(crate) fn fixed_bytes(&self, settings: &SessionSettings, system: &str) -> u64 {
        let tools = self.tool_bytes.get_or_init(|| {
            let tools = (self.toolbox)(settings).specs().cloned().collect();
            ModelRequest { tools, ..ModelRequest::default() }.fixed_bytes()
        });
        tools + system.len() as u64
    }

    pub(crate) fn outfit(
        &self,
        model: Arc<dyn Model>,
        settings: &SessionSettings,
        root: PathBuf,
        supplies: &Supplies,
    ) -> Result<Outfit, PolicyError> {
        let env = environment::allowed(supplies.env.iter().cloned());
        let home = env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
        let policy = Policy::new(settings.policy, &settings.rules, home)?.protecting(self.own_folders.clone());
        let display = environment::display(supplies.env.iter().cloned());
        let system = supplies.system_prompt.as_deref().map_or_else(|| Arc::clone(&self.system), Arc::from);
        Ok(Outfit {
            model,
            workspace: Arc::new(Workspace::new(root, env, policy).with_display(display)),
            toolbox: Arc::clone(&self.toolbox),
            supervisor: self.supervisor.clone(),
            limits: Arc::clone(&self.limits),
            fixed_bytes: self.fixed_bytes(settings, &system),
            system,
            tokenizer: Arc::clone(&self.tokenizer),
            runtime: self.runtime.clone(),
            not_saved: self.not_saved(),
        })
    }
}

impl Outfit {
    /// The input of a decision beside the state. `next`: the number of its first fact.
    pub(crate) fn moment(&self, next: u64) -> Moment<'_> {
        Moment { now: SystemTime::now().into(), next, limits: &self.limits, fixed_bytes: self.fixed_bytes }
    }
}
