//! The web: a real browser, where it may go, and what is read of its pages.

pub mod guard;
