//! End-to-end tests of the daemon: started on demand, one at a time, private, and stopped by
//! request.
#![cfg(target_os = "linux")]

mod answering;
mod attaching;
mod client;
mod commits;
mod cursors;
mod description;
mod disconnects;
mod disk;
mod every_path;
mod from_tool;
pub(crate) mod harness;
mod hostile;
mod instructions;
mod killed;
mod logs;
mod looping;
mod memory;
mod notify;
mod other_user;
#[cfg(target_os = "linux")]
mod out_of_reach;
mod own_process;
mod private;
mod proxies_and_certificates;
mod sandbox;
mod single_instance;
mod socket;
mod starting;
mod status;
mod stopping;
mod web;
mod widening;
