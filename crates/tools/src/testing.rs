//! Trying a tool without a session.
