//! Measuring the load of the engine.

use super::registry::Registry;
use crate::load::Load;

impl Registry {
    /// The present load.
    pub(super) fn load(&self) -> Load {
        let mut load = Load::none(self.engine.limits.max_sessions);
        for (_, phase, record) in self.lifecycle().records() {
            let shown = record.shown.borrow();
            if phase.is_live() {
                load.add(&shown);
            }
            // A session that ended with unsaved facts still has a record.
            load.saved &= shown.saved;
        }
        load
    }
}
