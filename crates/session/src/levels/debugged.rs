//! The log filter for debugged sessions, which are logged at debug level independently of the other
//! levels. A field in a session's span turns it on.

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterFn, filter_fn};
use tracing_subscriber::layer::{Context, Filter};
use tracing_subscriber::registry::LookupSpan;

/// The name of a session's span.
const SPAN: &str = "session";
/// The field of that span that marks a debugged session.
const FIELD: &str = "debug";

/// Selects the spans of sessions, the only ones that are marked.
pub(super) fn session_spans() -> FilterFn {
    filter_fn(|metadata| metadata.is_span() && metadata.name() == SPAN && is_ours(metadata))
}

/// Marks the spans of debugged sessions.
pub(super) struct MarkLayer;

/// The mark of a debugged session's span.
struct Mark;

/// Reads the field [`FIELD`].
#[derive(Default)]
struct DebugFieldVisitor(Option<bool>);

impl Visit for DebugFieldVisitor {
    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == FIELD {
            self.0 = Some(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for MarkLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut read = DebugFieldVisitor::default();
        attributes.record(&mut read);
        mark(id, read, &context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut read = DebugFieldVisitor::default();
        values.record(&mut read);
        mark(id, read, &context);
    }
}

fn mark<S: Subscriber + for<'span> LookupSpan<'span>>(
    id: &Id,
    read: DebugFieldVisitor,
    context: &Context<'_, S>,
) {
    let (Some(span), Some(enabled)) = (context.span(id), read.0) else { return };
    let mut extensions = span.extensions_mut();
    if enabled {
        extensions.replace(Mark);
    } else {
        extensions.remove::<Mark>();
    }
}

/// Selects everything that is logged inside a marked span.
pub(super) struct Debugged;

impl<S: Subscriber + for<'span> LookupSpan<'span>> Filter<S> for Debugged {
    fn enabled(&self, metadata: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        if metadata.is_span() {
            // All spans are needed, to find the session of a line.
            return is_ours(metadata);
        }
        is_ours(metadata)
            && context.lookup_current().is_some_and(|span| {
                span.scope()
                    .any(|span| span.name() == SPAN && span.extensions().get::<Mark>().is_some())
            })
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_ours(metadata) { Interest::sometimes() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }
}

/// Whether a span or line is from our crates and not below debug level.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("holdpoint") && *metadata.level() <= Level::DEBUG
}
