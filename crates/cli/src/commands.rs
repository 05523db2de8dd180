//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod status;
