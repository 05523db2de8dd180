//! The daemon's life as its users meet it: started by whoever needs it, one at a time, private, and gone when told to.
#![cfg(target_os = "linux")]

mod answering;
mod attaching;
mod client;
mod cursors;
mod description;
mod disk;
mod ending;
mod every_path;
mod hostile;
pub(crate) mod house;
mod killed;
mod leaving;
mod logs;
mod looping;
mod memory;
mod notify;
mod one;
mod other_user;
mod private;
mod socket;
mod starting;
mod status;
mod ways;
mod web;
