//! The outbox against stores that are slow or fail: nothing leaves before it is saved, and nobody is fooled.
mod door;
mod failing;
mod standing;
mod telling;
