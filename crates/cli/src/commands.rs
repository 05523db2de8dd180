//! The commands, one file each.

pub(crate) mod acp;
pub(crate) mod answer;
pub(crate) mod asks;
pub(crate) mod attach;
pub(crate) mod close;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod hold;
pub(crate) mod inbox;
pub(crate) mod interrupt;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod r#loop;
pub(crate) mod man;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod policy;
pub(crate) mod prompt;
pub(crate) mod rename;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod transfer;
pub(crate) mod wait;
