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
use super::record::write;

/// Name of the span of a session, whose field `id` is the session's id.
const SESSION: &str = "session";

/// The layer that turns each log line into a record.
pub(super) struct Records(pub(super) Arc<Queue>);

struct Fields(Map<String, Value>);

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Records {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut read = Read::default();
        attributes.record(&mut read);
        span.extensions_mut().insert(Fields(read.fields));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut session = None;
        let mut read = Read::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let Some(Fields(fields)) = extensions.get() else { continue };
            if span.name() == SESSION {
                session = fields.get("id").cloned();
            } else {
                read.fields
                    .extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        event.record(&mut read);
        let Read { message, mut fields } = read;
        // A line from outside of the session's span names the session in a field.
        let session = fields.shift_remove(SESSION).or(session);
        let about = event.metadata();
        if let Some(record) = write(*about.level(), about.target(), message, session, fields) {
            self.0.push(record);
        }
    }
}

/// Reads fields. Texts become one line, with invisible characters escaped and secrets masked.
#[derive(Default)]
struct Read {
    message: String,
    fields: Map<String, Value>,
}

impl Read {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }

    fn text(&mut self, field: &Field, text: &str) {
        let text = prose_line(&mask(text)).into_owned();
        match field.name() {
            "message" => self.message = text,
            _ => self.set(field, text),
        }
    }
}

impl Visit for Read {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value);
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
