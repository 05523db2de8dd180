//! The model catalogs: the engine's own, and those for the supplies of clients.

use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::ModelSupplies;

use super::Manager;
use crate::model::Catalog;

/// How many catalogs are kept for reuse, with their connections. With one more, the least recently
/// used is dropped.
const MAX_CATALOGS: usize = 16;

/// The catalogs for the supplies of clients, the most recently used last.
#[derive(Default)]
pub(super) struct Catalogs(Vec<(ModelSupplies, Arc<Catalog>)>);

/// Gets the catalog for the supplies of a client, or the engine's if it has none.
#[derive(Message)]
#[rtype(result = "Arc<Catalog>")]
pub(super) struct CatalogFor(pub(super) Option<ModelSupplies>);

impl Handler<CatalogFor> for Manager {
    type Result = Arc<Catalog>;

    fn handle(&mut self, CatalogFor(supplies): CatalogFor, _: &mut Self::Context) -> Arc<Catalog> {
        let Some(supplies) = supplies else { return Arc::clone(&self.engine.catalog) };
        let kept = &mut self.catalogs.0;
        let (supplies, catalog) = match kept.iter().position(|(known, _)| *known == supplies) {
            Some(place) => kept.remove(place),
            None => {
                let catalog = Arc::new(Catalog::supplied(supplies.clone()));
                (supplies, catalog)
            }
        };
        if kept.len() == MAX_CATALOGS {
            kept.remove(0);
        }
        kept.push((supplies, Arc::clone(&catalog)));
        catalog
    }
}
