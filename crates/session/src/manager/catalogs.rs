//! Catalogs of models: the engine's, and those that clients have brought along.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::ModelSupplies;

use super::Manager;
use crate::model::Catalog;

/// Catalogs that are kept to be used again, connections and all. Of one more, the longest unused is forgotten.
const KEPT: usize = 16;

/// What clients have brought along, the last used last.
#[derive(Default)]
pub(super) struct Catalogs(Vec<(ModelSupplies, Arc<Catalog>)>);

/// The catalog for what a client has brought along; the engine's, if that is nothing.
#[derive(Message)]
#[rtype(result = "Arc<Catalog>")]
pub(super) struct CatalogFor(pub(super) Option<ModelSupplies>);

impl Handler<CatalogFor> for Manager {
    type Result = Arc<Catalog>;

    fn handle(&mut self, CatalogFor(supplies): CatalogFor, _: &mut Self::Context) -> Arc<Catalog> {
        let Some(supplies) = supplies else { return Arc::clone(&self.base.catalog) };
        let kept = &mut self.catalogs.0;
        let (supplies, catalog) = match kept.iter().position(|(known, _)| *known == supplies) {
            Some(place) => kept.remove(place),
            None => {
                let catalog = Arc::new(Catalog::supplied(supplies.clone()));
                (supplies, catalog)
            }
        };
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((supplies, Arc::clone(&catalog)));
        catalog
    }
}
