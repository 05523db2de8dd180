//! What the tests of whole stories stand on: real servers, real programs, scripted.

pub mod model_server;
