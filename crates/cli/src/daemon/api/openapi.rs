//! The description of all this, OpenAPI 3.1, as handlers' types have it. Schemas are those of the types themselves (JSON
//! Schema 2020-12, which is what OpenAPI 3.1 takes).

use holdpoint_common::api::API_VERSION;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::route::Resource;

/// Where the schemas of types are within the document.
const SCHEMAS: &str = "/components/schemas";

/// The whole document.
pub(super) fn document(resources: &[Resource]) -> Value {
    let mut settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    settings.definitions_path = SCHEMAS.into();
    let mut schemas = settings.into_generator();
    let mut paths = Map::new();
    for resource in resources {
        let mut methods = Map::new();
        for route in resource.routes() {
            let described = Operation::of(route.describe, route.what, &mut schemas);
            methods.insert(route.method.as_str().to_ascii_lowercase(), described);
        }
        paths.insert(resource.path().to_owned(), Value::Object(methods));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdpoint",
            "version": API_VERSION.to_string(),
            "description": "What is said over the daemon's Unix socket. Nothing listens on TCP.",
        },
        // The same for all versions: a client of any version asks for the status there.
        "servers": [{ "url": "/v1" }],
        "paths": paths,
        "components": { "schemas": schemas.take_definitions(true) },
    })
}
