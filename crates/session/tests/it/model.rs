//! Models over HTTP: a scripted server speaks the wire formats of four providers.

mod call_ids;
mod calls;
mod deviations;
mod error_messages;
mod faults;
mod limits;
mod openai;
mod providers;
mod proxies_and_certificates;
mod refusals;
mod secrets;
mod settings;
mod streams;
mod thoughts;
mod tool_arguments;
