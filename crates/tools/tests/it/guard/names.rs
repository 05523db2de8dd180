//! A resolver with the answers that a test gives it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use holdpoint_tools::web::guard::Resolve;

/// Each name with its answers: one for each look-up, the last one for all later ones.
#[derive(Debug, Clone)]
pub(crate) struct Names(Arc<Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>>);

impl Names {
    pub(crate) fn new(names: &[(&str, &[&[&str]])]) -> Self {
        let parse =
            |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let of = |(name, answers): &(&str, &[&[&str]])| {
            ((*name).to_owned(), answers.iter().map(parse).collect())
        };
        Self(Arc::new(Mutex::new(names.iter().map(of).collect())))
    }

    /// The key of the answers for every name that is not listed.
    pub(crate) const ELSE: &str = "*";
}

impl Resolve for Names {
    fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut names = self.0.lock().unwrap();
        let name = if names.contains_key(name) { name } else { Self::ELSE };
        let Some(answers) = names.get_mut(name) else { return Err(io::ErrorKind::NotFound.into()) };
        Ok(if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }.unwrap())
    }
}
