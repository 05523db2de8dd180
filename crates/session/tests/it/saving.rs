//! The outbox with stores that are slow or fail: an event is published only once it is saved.
mod door;
mod failing;
mod standing;
mod telling;
