//! Makes a record of each line of the log, with what the spans around it say.

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

/// The span of a session, whose `id` says which it is.
const SESSION: &str = "session";

/// Makes a record of each line of the log.
pub(super) struct Records(pub(super) Arc<Queue>);

/// The fields of a span.
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
                read.fields.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        event.record(&mut read);
        let Read { message, mut fields } = read;
        // What is done to a session from outside of it names it.
        let session = fields.shift_remove(SESSION).or(session);
        let about = event.metadata();
        if let Some(record) = write(*about.level(), about.target(), message, session, fields) {
            self.0.push(record);
        }
    }
}

/// Reads fields: each text is one line, with what is hidden in it written out and its secrets masked.
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
