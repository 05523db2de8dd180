//! End-to-end tests of the screen: the real program in a real terminal, with keys pressed and the
//! screen read.
#![cfg(target_os = "linux")]

mod asks;
mod daemon_lost;
mod hostile;
mod leaving;
mod picture;
mod plain;
mod saving;
mod story;
