//! Describes the input and the output of handlers. The description is derived from their
//! signatures, so it can't differ from the code.

use holdpoint_common::api::ErrorBody;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::openapi::Schemas;
use crate::daemon::error::ApiError;

/// The input of a handler, taken from the request.
pub(super) trait DescribeInput {
    /// Adds the input to the description.
    fn describe(operation: &mut Operation<'_>);
}

/// The output of a handler.
pub(super) trait DescribeOutput {
    /// Adds the output to the description.
    fn describe(operation: &mut Operation<'_>);
}

/// The description of one method of a path.
pub(super) struct Operation<'a> {
    schemas: &'a mut Schemas,
    parameters: Vec<Value>,
    body: Option<Value>,
    responses: Map<String, Value>,
}

impl<'a> Operation<'a> {
    /// Describes a method, adding the schemas of its types to `schemas`.
    pub(super) fn describe_with(
        describe: fn(&mut Operation<'_>),
        summary: &str,
        schemas: &'a mut Schemas,
    ) -> Value {
        let mut operation =
            Operation { schemas, parameters: Vec::new(), body: None, responses: Map::new() };
        describe(&mut operation);
        let Operation { parameters, body, responses, .. } = operation;
        let mut described = json!({ "summary": summary });
        if !parameters.is_empty() {
            described["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = body {
            described["requestBody"] = body;
        }
        described["responses"] = Value::Object(responses);
        described
    }

    /// Adds a parameter in the path.
    pub(super) fn path<T: JsonSchema>(&mut self, name: &str, description: &str) {
        self.parameter::<T>(name, "path", true, description);
    }

    /// Adds an optional header.
    pub(super) fn header<T: JsonSchema>(&mut self, name: &str, description: &str) {
        self.parameter::<T>(name, "header", false, description);
    }

    /// Adds each field of a type as an optional parameter of the query.
    pub(super) fn query<T: JsonSchema>(&mut self) {
        // This separate root schema loses its definitions, so a field's type must not be a
        // reference: it would lead nowhere.
        let schema = SchemaGenerator::default().into_root_schema_for::<T>();
        for (name, schema) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let mut schema = schema.clone();
            let description =
                schema.as_object_mut().and_then(|schema| schema.remove("description"));
            self.parameters.push(json!({
                "name": name,
                "in": "query",
                "description": description,
                "schema": schema,
            }));
        }
    }

    fn parameter<T: JsonSchema>(
        &mut self,
        name: &str,
        location: &str,
        required: bool,
        description: &str,
    ) {
        let schema = self.schemas.requests.subschema_for::<T>();
        self.parameters.push(json!({
            "name": name,
            "in": location,
            "required": required,
            "description": description,
            "schema": schema,
        }));
    }

    /// Sets the type of the request's body.
    pub(super) fn body<T: JsonSchema>(&mut self, media: &str) {
        // This schema has the fields themselves, not a reference to them.
        let whole = SchemaGenerator::default().into_root_schema_for::<T>();
        let is_object = whole.get("type") == Some(&json!("object"));
        // A body without fields is not described.
        if is_object && whole.get("properties").is_none() {
            return;
        }
        let schema = self.schemas.requests.subschema_for::<T>();
        let mut body = json!({ "content": { media: { "schema": schema } } });
        // A missing object is read as `{}`, so only a body with required fields must be sent.
        if !is_object || whole.get("required").is_some() {
            body["required"] = json!(true);
        }
        self.body = Some(body);
    }

    /// Adds a response with a body.
    pub(super) fn response<T: JsonSchema>(&mut self, status: &str, media: &str, description: &str) {
        let schema = self.schemas.responses.subschema_for::<T>();
        let response =
            json!({ "description": description, "content": { media: { "schema": schema } } });
        self.responses.insert(status.to_owned(), response);
    }

    /// Adds a response without a body.
    pub(super) fn empty_response(&mut self, status: &str, description: &str) {
        self.responses.insert(status.to_owned(), json!({ "description": description }));
    }
}

impl<T: DescribeOutput> DescribeOutput for Result<T, ApiError> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        operation.response::<ErrorBody>("default", "application/json", "The error.");
    }
}

macro_rules! describe_inputs {
    ($($one:ident)*) => {
        impl<$($one: DescribeInput),*> DescribeInput for ($($one,)*) {
            #[allow(unused_variables, reason = "the empty tuple describes nothing")]
            fn describe(operation: &mut Operation<'_>) {
                $($one::describe(operation);)*
            }
        }
    };
}

describe_inputs!();
describe_inputs!(A);
describe_inputs!(A B);
describe_inputs!(A B C);
