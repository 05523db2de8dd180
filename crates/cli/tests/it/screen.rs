//! The screen as its users meet it: the real program in a real terminal, with keys pressed and a screen to read.
#![cfg(target_os = "linux")]

mod asks;
mod hostile;
mod leaving;
mod lost;
mod picture;
mod plain;
mod saving;
mod story;
