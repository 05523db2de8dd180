//! The model catalogs: the engine's own, and those for the supplies of clients.

use std::sync::Arc;

use holdpoint_common::ModelSupplies;

use super::registry::Registry;
use crate::model::Catalog;

/// How many catalogs are kept for reuse, with their connections. With one more, the least recently
/// used is dropped.
const MAX_CATALOGS: usize = 16;

/// The catalogs for the supplies of clients, the most recently used last.
#[derive(Default)]
pub(super) struct Catalogs(Vec<(ModelSupplies, Arc<Catalog>)>);

impl Registry {
    /// The catalog for the supplies of a client, or the engine's if it has none.
    pub(super) fn catalog_for(&self, supplies: Option<ModelSupplies>) -> Arc<Catalog> {
        match supplies {
            Some(supplies) => self.catalogs.borrow_mut().get(supplies),
            None => Arc::clone(&self.engine.catalog),
        }
    }
}

impl Catalogs {
    fn get(&mut self, supplies: ModelSupplies) -> Arc<Catalog> {
        let Self(catalogs) = self;
        let (supplies, catalog) = match catalogs.iter().position(|(known, _)| *known == supplies) {
            Some(index) => catalogs.remove(index),
            None => {
                let catalog = Arc::new(Catalog::supplied(supplies.clone()));
                (supplies, catalog)
            }
        };
        if catalogs.len() == MAX_CATALOGS {
            catalogs.remove(0);
        }
        catalogs.push((supplies, Arc::clone(&catalog)));
        catalog
    }
}
