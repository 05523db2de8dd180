//! The requests of an agent for files and terminals, which become calls of the session's tools.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use blake3::Hash;
use serde_json::{Value, json};

use super::command_line;
use super::protocol::ClientRequest;

/// The most requests that are calls at once.
const MAX_OPEN: usize = 16;

/// The most requests that wait to become calls, and the most bytes of them. Further ones are refused.
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// The most bytes of the calls of one answer, which has at least one.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// The most bytes of one request as a call.
const MAX_REQUEST: usize = 4 * 1024 * 1024;

/// The most approved commands that wait for their request.
const MAX_APPROVED: usize = 64;

/// The field of a call's input that has the number of its request.
pub(super) const FIELD: &str = "request";

/// The names of the tools.
pub(super) const READ: &str = "read_file";
pub(super) const WRITE: &str = "write_file";
pub(super) const SHELL: &str = "shell";

/// The requests of an agent in its turn.
#[derive(Debug, Default)]
pub(super) struct Served {
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// The requests that are calls, by their numbers.
    open: BTreeMap<u64, Open>,
    /// The number of the last call. It is not used again.
    last: u64,
    /// The commands that the user has approved when the agent asked for permission.
    approved: VecDeque<Hash>,
}

/// A request that waits to become a call.
#[derive(Debug)]
struct Waiting {
    id: Value,
    tool: &'static str,
    input: Value,
    bytes: usize,
    output_limit: Option<u64>,
    /// The folder of the command, if it names one.
    folder: Option<String>,
    /// Identifies the command, if it is one.
    command: Option<Hash>,
}

/// A request that is a call.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: Value,
    tool: &'static str,
    pub(super) output_limit: Option<u64>,
    /// The folder of the command, if it names one.
    pub(super) folder: Option<String>,
    /// Whether the user has approved the command.
    pub(super) is_approved: bool,
}

/// A call of a tool for a request.
#[derive(Debug)]
pub(super) struct ServedCall {
    pub(super) tool: &'static str,
    pub(super) arguments: String,
}

/// The reason why a request does not become a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotServed {
    /// The request is wrong.
    Invalid(String),
    /// There are too many.
    Full(String),
}

impl Served {
    /// Takes a request that is to become a call, in the workspace at `root`.
    pub(super) fn push(
        &mut self,
        id: &Value,
        request: ClientRequest,
        root: &Path,
    ) -> Result<(), NotServed> {
        let call = Call::of(request, root).map_err(NotServed::Invalid)?;
        let Call { tool, input, command, folder, output_limit } = call;
        let bytes = input.to_string().len();
        if bytes > MAX_REQUEST {
            return Err(NotServed::Invalid(format!(
                "the request has {bytes} bytes, more than {MAX_REQUEST}"
            )));
        }
        let is_full = self.waiting.len() >= MAX_WAITING;
        if is_full || self.waiting_bytes + bytes > MAX_WAITING_BYTES {
            return Err(NotServed::Full(format!(
                "too many requests wait: at most {MAX_WAITING}, with {MAX_WAITING_BYTES} bytes"
            )));
        }
        self.waiting_bytes += bytes;
        let id = id.clone();
        let waiting = Waiting { id, tool, input, bytes, output_limit, folder, command };
        self.waiting.push_back(waiting);
        Ok(())
    }

    /// The number of requests for a new terminal that have no reply.
    pub(super) fn terminals(&self) -> usize {
        let open = self.open.values().map(|open| open.tool);
        let tools = self.waiting.iter().map(|waiting| waiting.tool).chain(open);
        tools.filter(|tool| *tool == SHELL).count()
    }

    /// Whether requests wait to become calls.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether one answer can have more calls than the requests that wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < MAX_OPEN && self.waiting_bytes < MAX_ANSWER
    }

    /// The next calls, the oldest first.
    pub(super) fn next_calls(&mut self) -> Vec<ServedCall> {
        let mut calls = Vec::new();
        let mut bytes = 0;
        while let Some(next) = self.waiting.front() {
            bytes += next.bytes;
            if calls.len() >= MAX_OPEN || (bytes > MAX_ANSWER && !calls.is_empty()) {
                break;
            }
            let Some(next) = self.waiting.pop_front() else { break };
            let Waiting { id, tool, mut input, bytes, output_limit, folder, command } = next;
            self.waiting_bytes -= bytes;
            self.last += 1;
            input[FIELD] = json!(self.last);
            let is_approved = command.is_some_and(|command| self.take_approved(&command));
            let open = Open { id, tool, output_limit, folder, is_approved };
            self.open.insert(self.last, open);
            calls.push(ServedCall { tool, arguments: input.to_string() });
        }
        calls
    }

    /// Notes that the user has approved a command. It counts for one request.
    pub(super) fn approve(&mut self, command: Hash) {
        self.approved.push_back(command);
        let more = self.approved.len().saturating_sub(MAX_APPROVED);
        self.approved.drain(..more);
    }

    fn take_approved(&mut self, command: &Hash) -> bool {
        let at = self.approved.iter().position(|approved| approved == command);
        at.is_some_and(|at| self.approved.remove(at).is_some())
    }

    /// The request with this number; `None` if it has a reply.
    pub(super) fn open(&self, number: u64) -> Option<&Open> {
        self.open.get(&number)
    }

    /// Takes the request with this number, to reply to it; `None` if it has a reply.
    pub(super) fn take(&mut self, number: u64) -> Option<Open> {
        self.open.remove(&number)
    }

    /// Takes the ids of all requests without a reply.
    pub(super) fn take_all(&mut self) -> Vec<Value> {
        self.approved.clear();
        self.waiting_bytes = 0;
        let open = std::mem::take(&mut self.open).into_values().map(|open| open.id);
        open.chain(self.waiting.drain(..).map(|waiting| waiting.id)).collect()
    }
}

/// The call of a tool for a request.
struct Call {
    tool: &'static str,
    input: Value,
    /// Identifies the command, if it is one.
    command: Option<Hash>,
    folder: Option<String>,
    /// The most output that the agent wants.
    output_limit: Option<u64>,
}

impl Call {
    /// # Errors
    /// The reason why the request is wrong.
    fn of(request: ClientRequest, root: &Path) -> Result<Self, String> {
        let new =
            |tool, input| Self { tool, input, command: None, folder: None, output_limit: None };
        Ok(match request {
            ClientRequest::Read { path, line, limit } => {
                let mut input = json!({ "path": path });
                line.iter().for_each(|line| input["offset"] = json!(line));
                limit.iter().for_each(|limit| input["limit"] = json!(limit));
                new(READ, input)
            }
            ClientRequest::Write { path, content } => {
                new(WRITE, json!({ "path": path, "content": content }))
            }
            ClientRequest::Create(terminal) => {
                let command = command_line::of(&terminal, root)?;
                let (hash, output_limit) = (Some(command_hash(&command)), terminal.output_limit);
                let input = json!({ "command": command, "background": true });
                Self { command: hash, folder: terminal.cwd, output_limit, ..new(SHELL, input) }
            }
            ClientRequest::Terminal { .. } => return Err("it is about a terminal".to_owned()),
        })
    }
}

/// Identifies a command in the workspace.
pub(super) fn command_hash(command: &str) -> Hash {
    blake3::hash(command.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::protocol::NewTerminal;
    use super::*;

    fn read(path: &str) -> ClientRequest {
        ClientRequest::Read { path: path.to_owned(), line: None, limit: None }
    }

    #[test]
    fn m_h3_requests_wait_in_order_up_to_a_bound() {
        let mut served = Served::default();
        for n in 0..MAX_WAITING {
            let request = read(&format!("/{n}"));
            assert_eq!(served.push(&json!(n), request, Path::new("/w")), Ok(()));
        }
        let refused = served.push(&json!("more"), read("/more"), Path::new("/w"));
        assert!(matches!(refused, Err(NotServed::Full(why)) if why.contains("at most 64")));
        let calls = served.next_calls();
        assert_eq!(calls.len(), MAX_OPEN);
        assert!(
            calls[3].arguments.contains("\"/3\"") && calls[3].arguments.contains("\"request\":4")
        );
        assert_eq!(served.take(4).unwrap().id, json!(3));
        assert!(served.take(4).is_none());
        assert_eq!(served.push(&json!("more"), read("/more"), Path::new("/w")), Ok(()));
        let open = served.take_all();
        assert_eq!(open.len(), MAX_WAITING);
        assert!(!served.is_waiting() && served.next_calls().is_empty());
    }

    #[test]
    fn m_h3_requests_are_bounded_in_size() {
        let mut served = Served::default();
        let write = |bytes: usize| ClientRequest::Write {
            path: "/f".to_owned(),
            content: "x".repeat(bytes),
        };
        let refused = served.push(&json!(1), write(MAX_REQUEST), Path::new("/w"));
        assert!(
            matches!(refused, Err(NotServed::Invalid(why)) if why.contains("more than 4194304"))
        );
        let large = MAX_REQUEST - 100;
        for n in 0..8 {
            assert_eq!(served.push(&json!(n), write(large), Path::new("/w")), Ok(()));
        }
        assert!(served.push(&json!(9), write(large), Path::new("/w")).is_err());
        assert_eq!(served.next_calls().len(), 1);
    }

    #[test]
    fn m_h3_an_approved_command_counts_for_one_request_for_exactly_it() {
        let mut served = Served::default();
        served.approve(command_hash("make test"));
        for (command, approved) in [("make", false), ("make test", true), ("make test", false)] {
            let (args, env) = (Vec::new(), Vec::new());
            let terminal = NewTerminal {
                command: command.to_owned(),
                args,
                env,
                cwd: None,
                output_limit: None,
            };
            served.push(&json!(0), ClientRequest::Create(terminal), Path::new("/w")).unwrap();
            served.next_calls();
            assert_eq!(served.open(served.last).unwrap().is_approved, approved);
        }
    }
}
