//! What a handler takes and gives, as it is described: its signature is what is served and what is described, so that
//! the two can't differ.

use holdpoint_common::api::ErrorBody;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::openapi::Schemas;

/// What a handler takes of a request.
pub(super) trait Takes {
    /// Adds it to the operation.
    fn describe(operation: &mut Operation<'_>);
}

/// What a handler answers.
pub(super) trait Gives {
    /// Adds it to the operation.
    fn describe(operation: &mut Operation<'_>);
}

/// A method of a path, as it is described.
pub(super) struct Operation<'a> {
    schemas: &'a mut Schemas,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Map<String, Value>,
}

impl<'a> Operation<'a> {
    /// What a method takes and gives, with the schemas of its types among these.
    pub(super) fn of(describe: fn(&mut Operation<'_>), what: &str, schemas: &'a mut Schemas) -> Value {
        let mut operation = Operation { schemas, parameters: Vec::new(), body: None, answers: Map::new() };
        describe(&mut operation);
        let Operation { parameters, body, answers, .. } = operation;
        let mut described = json!({ "summary": what });
        if !parameters.is_empty() {
            described["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = body {
            described["requestBody"] = body;
        }
        described["responses"] = Value::Object(answers);
        described
    }

    /// A part of the path.
    pub(super) fn part<T: JsonSchema>(&mut self, name: &str, what: &str) {
        self.parameter::<T>(name, "path", true, what);
    }

    /// A header, which may be left out.
    pub(super) fn header<T: JsonSchema>(&mut self, name: &str, what: &str) {
        self.parameter::<T>(name, "header", false, what);
    }

    /// The fields of a type, each of which may be in the query.
    pub(super) fn query<T: JsonSchema>(&mut self) {
        let schema = SchemaGenerator::default().into_root_schema_for::<T>();
        for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut schema = schema.clone();
            let what = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let parameter = json!({ "name": name, "in": "query", "description": what, "schema": schema });
            self.parameters.push(parameter);
        }
    }

    fn parameter<T: JsonSchema>(&mut self, name: &str, place: &str, required: bool, what: &str) {
        let schema = self.schemas.requests.subschema_for::<T>();
        let parameter =
            json!({ "name": name, "in": place, "required": required, "description": what, "schema": schema });
        self.parameters.push(parameter);
    }

    /// The request's body.
    pub(super) fn body<T: JsonSchema>(&mut self, media: &str) {
        let schema = self.schemas.requests.subschema_for::<T>();
        self.body = Some(json!({ "content": { media: { "schema": schema } } }));
    }

    /// An answer of this status, with a body.
    pub(super) fn answer<T: JsonSchema>(&mut self, status: &str, media: &str, what: &str) {
        let schema = self.schemas.answers.subschema_for::<T>();
        let answer = json!({ "description": what, "content": { media: { "schema": schema } } });
        self.answers.insert(status.to_owned(), answer);
    }

    /// An answer of this status, without one.
    pub(super) fn nothing(&mut self, status: &str, what: &str) {
        self.answers.insert(status.to_owned(), json!({ "description": what }));
    }
}

impl<T: Gives> Gives for Result<T, Fault> {
    fn describe(operation: &mut Operation<'_>) {
        T::describe(operation);
        operation.answer::<ErrorBody>("default", "application/json", "What went wrong.");
    }
}

macro_rules! takes_all {
    ($($one:ident)*) => {
        impl<$($one: Takes),*> Takes for ($($one,)*) {
            #[allow(unused_variables, reason = "of nothing there is nothing to describe")]
            fn describe(operation: &mut Operation<'_>) {
                $($one::describe(operation);)*
            }
        }
    };
}

takes_all!();
takes_all!(A);
takes_all!(A B);
takes_all!(A B C);
