//! The description of the API as OpenAPI 3.1, derived from the types of the handlers. The schemas
//! are those of the types themselves (JSON Schema 2020-12, as OpenAPI 3.1 requires).

use std::collections::BTreeSet;

use holdpoint_common::api::API_VERSION;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::Operation;
use super::route::Resource;

/// The path of all schemas in the document.
const SCHEMAS: &str = "/components/schemas";

/// The path of the schemas of requests until both sets are merged.
const REQUESTS: &str = "/components/requests";

/// The schemas of both directions. They differ: a field with a default is optional in a request,
/// but always present in a response.
pub(super) struct Schemas {
    pub(super) requests: SchemaGenerator,
    pub(super) responses: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = |path: &'static str| {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.meta_schema = None;
                settings.definitions_path = path.into();
            })
        };
        let requests = settings(REQUESTS).into_generator();
        Self { requests, responses: settings(SCHEMAS).for_serialize().into_generator() }
    }

    /// Merges the schemas. A type with a different schema in requests has a second one, `…Input`,
    /// and the references in `paths` are redirected to it.
    fn merge(mut self, paths: &mut Value) -> Map<String, Value> {
        let requests = self.requests.take_definitions(true);
        let mut schemas = self.responses.take_definitions(true);
        let mut inputs = BTreeSet::new();
        loop {
            let differs = |(name, request): &(&String, &Value)| {
                !inputs.contains(*name)
                    && schemas
                        .get(*name)
                        .is_some_and(|response| redirected(request, &inputs) != *response)
            };
            let more: Vec<_> =
                requests.iter().filter(differs).map(|(name, _)| name.clone()).collect();
            if more.is_empty() {
                break;
            }
            inputs.extend(more);
        }
        for (name, request) in &requests {
            schemas.entry(renamed(name, &inputs)).or_insert_with(|| redirected(request, &inputs));
        }
        *paths = redirected(paths, &inputs);
        schemas
    }
}

/// The name of a request's type in the document.
fn renamed(name: &str, inputs: &BTreeSet<String>) -> String {
    let suffix = if inputs.contains(name) { "Input" } else { "" };
    format!("{name}{suffix}")
}

/// Redirects references to request schemas to their final path.
fn redirected(value: &Value, inputs: &BTreeSet<String>) -> Value {
    match value {
        Value::Object(object) => {
            let fields = object.iter().map(|(name, value)| {
                let target = value.as_str().filter(|_| name == "$ref");
                let target = target.and_then(|target| {
                    target.strip_prefix('#')?.strip_prefix(REQUESTS)?.strip_prefix('/')
                });
                let value = match target {
                    Some(target) => json!(format!("#{SCHEMAS}/{}", renamed(target, inputs))),
                    None => redirected(value, inputs),
                };
                (name.clone(), value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(values) => values.iter().map(|value| redirected(value, inputs)).collect(),
        value => value.clone(),
    }
}

/// Builds the whole document.
pub(super) fn document(resources: &[Resource]) -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for resource in resources {
        let mut methods = Map::new();
        for route in resource.routes() {
            let described = Operation::describe_with(route.describe, route.summary, &mut schemas);
            methods.insert(route.method.as_str().to_ascii_lowercase(), described);
        }
        paths.insert(resource.path().to_owned(), Value::Object(methods));
    }
    let mut paths = Value::Object(paths);
    let schemas = schemas.merge(&mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdpoint daemon API",
            "version": API_VERSION.to_string(),
            "description": "The HTTP API of the daemon on its Unix socket. It does not listen on TCP.",
        },
        // All versions share this path: clients of any version request the status there.
        "servers": [{ "url": "/v1" }],
        "paths": paths,
        "components": { "schemas": schemas },
    })
}
