//! Compares the OpenAPI description with the JSON of the types. A field of an answer must be
//! required exactly if it is always sent. The declarations of the Node.js package are generated
//! from the same description.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_common::Snapshot;
use holdpoint_common::api::{
    Answered, DaemonStatus, ErrorBody, HandedOver, Inbox, InterruptReply, Prompted, RunStarted,
    SessionList, SessionNews, StreamFrame, Unqueued,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// A document with its schemas.
#[derive(Clone, Copy)]
pub(crate) struct Schemas<'a> {
    pub(crate) root: &'a Value,
}

impl<'a> Schemas<'a> {
    /// Returns the target of a reference, unless the reference has properties beside it.
    fn resolve(self, schema: &'a Value) -> &'a Value {
        match self.target(schema) {
            Some(target) if schema.get("properties").is_none() => self.resolve(target),
            _ => schema,
        }
    }

    fn target(self, schema: &Value) -> Option<&'a Value> {
        schema["$ref"].as_str().and_then(|target| self.root.pointer(target.trim_start_matches('#')))
    }

    /// Returns the alternatives and additions of a schema.
    fn alternatives(self, schema: &'a Value) -> Vec<&'a Value> {
        let lists = ["oneOf", "anyOf", "allOf"]
            .into_iter()
            .filter_map(|how| schema[how].as_array())
            .flatten();
        lists.chain(self.target(schema)).collect()
    }

    /// Returns minimal instances of a schema, so that each alternative and each optional field
    /// occurs in one of them.
    pub(crate) fn instances(self, schema: &'a Value) -> Vec<Value> {
        let name = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
        match name {
            Some("AskId") => return vec![json!("k3v9x2m7qa.41")],
            Some("SessionCursor") => return vec![json!("live.1795715448055.k3v9x2m7qa")],
            _ => {}
        }
        let schema = self.resolve(schema);
        if let Some(value) = schema.get("const") {
            return vec![value.clone()];
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[..1].to_vec();
        }
        let own = match kind(schema) {
            Some("object") => self.objects(schema),
            Some("array") => {
                let items =
                    schema.get("items").map(|items| self.instances(items)).unwrap_or_default();
                [json!([])].into_iter().chain(items.into_iter().map(|item| json!([item]))).collect()
            }
            Some("string") => vec![json!("k3v9x2m7qa")],
            Some("integer" | "number") => vec![json!(1)],
            Some("boolean") => vec![json!(true)],
            _ => vec![json!({})],
        };
        let alternatives: Vec<_> = self
            .alternatives(schema)
            .into_iter()
            .filter(|alternative| alternative["type"] != "null")
            .flat_map(|alternative| self.instances(alternative))
            .collect();
        match (&own[..], &alternatives[..]) {
            (_, []) => own,
            ([Value::Object(_), ..], [Value::Object(_), ..]) => {
                let first = alternatives[0].clone();
                let others = own[1..].iter().map(|own| joined(own, &first));
                alternatives
                    .iter()
                    .map(|alternative| joined(&own[0], alternative))
                    .chain(others)
                    .collect()
            }
            _ => alternatives,
        }
    }

    fn objects(self, schema: &'a Value) -> Vec<Value> {
        let required = names(schema);
        let properties: Vec<_> =
            fields(schema).map(|(name, schema)| (name, self.instances(schema))).collect();
        let least = properties.iter().filter(|(name, _)| required.contains(name.as_str()));
        let least: Map<_, _> =
            least.map(|(name, values)| ((*name).clone(), values[0].clone())).collect();
        let mut objects = vec![Value::Object(least.clone())];
        for (name, values) in properties {
            let more = values.into_iter().map(|value| {
                let mut object = least.clone();
                object.insert(name.clone(), value);
                Value::Object(object)
            });
            objects.extend(more);
        }
        objects
    }
}

/// Returns the type of a schema, ignoring `null`.
fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str().or_else(|| schema.get("properties").map(|_| "object")),
    }
}

fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn names(schema: &Value) -> BTreeSet<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn joined(one: &Value, other: &Value) -> Value {
    let both = [one, other].into_iter().filter_map(Value::as_object).flatten();
    Value::Object(both.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The fields of sent objects, by the path of their schema.
#[derive(Default)]
struct Sent {
    /// Optional fields, and whether some object lacked the field.
    optional: BTreeMap<String, bool>,
    /// Required fields that some object lacked.
    missing: BTreeSet<String>,
    /// Names of the types that were sent.
    types: BTreeSet<String>,
}

impl Sent {
    fn record(&mut self, schemas: Schemas<'_>, schema: &Value, value: &Value, place: &str) {
        let name = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
        let place = name.unwrap_or(place);
        self.types.extend(name.map(str::to_owned));
        let schema = schemas.resolve(schema);
        for alternative in
            schemas.alternatives(schema).into_iter().filter(|other| fits(schemas, other, value))
        {
            let variant =
                fields(alternative).find_map(|(_, schema)| schema["const"].as_str()).unwrap_or("");
            self.record(schemas, alternative, value, &format!("{place} {variant}"));
        }
        if let Some(items) = value.as_array() {
            items.iter().for_each(|item| {
                self.record(schemas, &schema["items"], item, &format!("{place} item"))
            });
        }
        let Some(object) = value.as_object() else { return };
        let required = names(schema);
        for (name, schema) in fields(schema) {
            let place = format!("{}.{name}", place.trim_end());
            match object.get(name) {
                Some(value) => self.record(schemas, schema, value, &place),
                None if required.contains(name.as_str()) => _ = self.missing.insert(place.clone()),
                None => {}
            }
            if !required.contains(name.as_str()) {
                *self.optional.entry(place).or_default() |= !object.contains_key(name);
            }
        }
    }
}

/// Whether a value may match this schema, by its type and by its constant fields.
fn fits(schemas: Schemas<'_>, schema: &Value, value: &Value) -> bool {
    let schema = schemas.resolve(schema);
    let is_word = |name: &str, word: &Value| value.get(name) == Some(word);
    let words = fields(schema).filter_map(|(name, schema)| Some((name, schema.get("const")?)));
    let alternatives = schemas.alternatives(schema);
    let is_object = kind(schema) == Some("object") || schema.get("properties").is_some();
    schema.get("const").is_none_or(|word| word == value)
        && schema["type"] != "null"
        && (!is_object || value.is_object())
        && words.into_iter().all(|(name, word)| is_word(name, word))
        && (alternatives.is_empty()
            || alternatives.into_iter().any(|schema| fits(schemas, schema, value)))
}

fn send<T: JsonSchema + Serialize + DeserializeOwned>(document: &Value, sent: &mut Sent) {
    let root =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    let schema = json!({ "$ref": format!("#/components/schemas/{}", T::schema_name()) });
    for given in (Schemas { root: &root }).instances(&root) {
        let value: T = serde_json::from_value(given.clone())
            .unwrap_or_else(|error| panic!("{error}: {given}"));
        sent.record(
            Schemas { root: document },
            &schema,
            &serde_json::to_value(&value).unwrap(),
            "",
        );
    }
}

#[test]
fn a_field_of_an_answer_is_required_exactly_if_it_is_always_sent() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut sent = Sent::default();
    send::<Answered>(&document, &mut sent);
    send::<DaemonStatus>(&document, &mut sent);
    send::<ErrorBody>(&document, &mut sent);
    send::<HandedOver>(&document, &mut sent);
    send::<Inbox>(&document, &mut sent);
    send::<InterruptReply>(&document, &mut sent);
    send::<Prompted>(&document, &mut sent);
    send::<RunStarted>(&document, &mut sent);
    send::<SessionList>(&document, &mut sent);
    send::<SessionNews>(&document, &mut sent);
    send::<Snapshot>(&document, &mut sent);
    send::<StreamFrame>(&document, &mut sent);
    send::<Unqueued>(&document, &mut sent);
    assert_eq!(sent.missing, BTreeSet::new(), "required, but not always sent");
    let always: Vec<_> = sent.optional.iter().filter(|(_, is_left_out)| !**is_left_out).collect();
    assert!(always.is_empty(), "optional, but always sent: {always:#?}");
    assert!(sent.optional.len() > 30, "{:#?}", sent.optional);

    // Every type in an answer must have been sent above.
    let mut answered = BTreeSet::new();
    let answers = document["paths"].as_object().unwrap().values();
    for operation in answers.flat_map(|methods| methods.as_object().unwrap().values()) {
        collect_types(Schemas { root: &document }, &operation["responses"], &mut answered);
    }
    assert_eq!(answered.difference(&sent.types).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Collects the names of all types that a value refers to, directly or indirectly.
fn collect_types(schemas: Schemas<'_>, value: &Value, reached: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(target) = value["$ref"].as_str()
                && reached.insert(target.rsplit('/').next().unwrap().to_owned())
            {
                collect_types(schemas, schemas.resolve(value), reached);
            }
            object.values().for_each(|value| collect_types(schemas, value, reached));
        }
        Value::Array(values) => {
            values.iter().for_each(|value| collect_types(schemas, value, reached))
        }
        _ => {}
    }
}
