//! The outbox with stores that are slow or fail: an event is published only once it is saved.
mod backpressure;
mod events;
mod failing;
mod gated_store;
mod lease;
