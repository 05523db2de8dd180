//! The `tracing` layer that turns each log line into a record, with the fields of its spans.

use std::fmt::Debug;
use std::sync::Arc;

use holdpoint_tools::secrets::mask;
use holdpoint_tools::shown::prose_line;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::queue::Queue;
use super::record::record_json;

/// Name of the span of a session, whose field `id` is the session's id. Also the name of the field
/// that carries the id in a line from outside of this span.
const SESSION: &str = "session";

/// The layer that turns each log line into a record.
pub(super) struct RecordLayer(pub(super) Arc<Queue>);

struct Fields(Map<String, Value>);

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for RecordLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut reader = FieldReader::default();
        attributes.record(&mut reader);
        span.extensions_mut().insert(Fields(reader.fields));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut session = None;
        let mut reader = FieldReader::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let Some(Fields(fields)) = extensions.get() else { continue };
            if span.name() == SESSION {
                session = fields.get("id").cloned();
            } else {
                reader
                    .fields
                    .extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        event.record(&mut reader);
        let FieldReader { message, mut fields } = reader;
        // A line from outside of the session's span names the session in a field.
        let session = fields.shift_remove(SESSION).or(session);
        let metadata = event.metadata();
        if let Some(record) =
            record_json(*metadata.level(), metadata.target(), message, session, fields)
        {
            self.0.push(record);
        }
    }
}

/// Reads fields. Texts become one line, with invisible characters escaped and secrets masked.
#[derive(Default)]
struct FieldReader {
    message: String,
    fields: Map<String, Value>,
}

impl FieldReader {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn set_text(&mut self, field: &Field, text: &str) {
        let text = prose_line(&mask(text)).into_owned();
        match field.name() {
            "message" => self.message = text,
            _ => self.set(field, text),
        }
    }
}

impl Visit for FieldReader {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.set_text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set_text(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.set(field, u64::try_from(value).unwrap_or(u64::MAX));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
}
