//! The time that a call of an MCP server's tool takes beyond the server's own time, and the memory
//! of an idle connection.

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdpoint_common::{McpServer, McpServers};
use holdpoint_tools::mcp::McpSource;
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{HttpClients, ProcessSpec, Processes, SourceContext, Supervisor, Toolbox};
use serde_json::json;

use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

const GRACE: Duration = Duration::from_millis(500);
const ROUNDS: usize = 300;
const CONNECTIONS: u64 = 20;

/// A server with one tool, written in Python.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools/tests/mcp/bad.py");

pub(crate) fn measure(table: &Table) {
    if table.wants("mcp", &["mcp call", "mcp connection"]) {
        call(table);
        connection(table);
    }
}

fn server() -> McpServer {
    let program = McpServer::program("python3", [SERVER, "none"]);
    McpServer { sandbox: false, cwd: Some("/".to_owned()), ..program }
}

/// Starts these many servers. Returns their tools.
fn start(bench: &Bench, count: u64) -> Toolbox {
    let servers: McpServers = (0..count).map(|n| (format!("s{n}"), server())).collect();
    let context = SourceContext {
        workspace: Arc::new(bench.workspace().clone()),
        processes: Processes::new(Supervisor::ThisProgram, GRACE),
        background: bench.background().clone(),
    };
    let no_http: HttpClients = Arc::new(|_| Err("the figures are of programs".to_owned()));
    let mut toolbox = Toolbox::new().with_source(Box::new(McpSource::new(servers, no_http)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (changed, notices) = runtime.block_on(toolbox.refresh(&context));
    assert!(changed && notices.is_empty(), "{notices:?}");
    toolbox
}

/// Calls a tool, and sends the same request to a server of its own without a client, in turn.
fn call(table: &Table) {
    let bench = Bench::new();
    let mut toolbox = start(&bench, 1);
    let processes = Processes::new(Supervisor::ThisProgram, GRACE);
    let mut bare = processes
        .spawn_duplex(ProcessSpec {
            program: "python3".into(),
            args: vec![SERVER.into(), "none".into()],
            cwd: "/".into(),
            env: bench.workspace().env().to_vec(),
        })
        .unwrap();
    let mut answers = BufReader::new(bare.output);
    let mut line = String::new();
    let request = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "work", "arguments": {}},
    });
    let (mut own, mut called) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let since = Instant::now();
        writeln!(bare.input, "{request}").unwrap();
        line.clear();
        answers.read_line(&mut line).unwrap();
        let own_time = since.elapsed();
        let tool = toolbox.take("mcp__s0__work").unwrap();
        let since = Instant::now();
        let result = bench.call(tool, json!({}));
        let call_time = since.elapsed();
        assert!(result.result.is_ok(), "{result:?}");
        if round > 0 {
            own.push(own_time);
            called.push(call_time);
        }
    }
    let (own, called) = (Samples::new(own), Samples::new(called));
    let added = called.middle().saturating_sub(own.middle());
    table.note_beside(Floor::RoundTrip, "mcp call: the server's own time", own.median());
    let name = "mcp call: more than the server's own time";
    table.figure_beside(Floor::RoundTrip, name, Amount::Time(added), Amount::ms(1));
}

/// The private memory of this process, in bytes.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find(|line| line.starts_with("Private_Dirty:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// The memory that each further idle connection takes in this process, without its server.
fn connection(table: &Table) {
    let bench = Bench::new();
    let first = start(&bench, 1);
    let before = memory();
    let more = start(&bench, CONNECTIONS);
    let each = memory().saturating_sub(before) / CONNECTIONS;
    table.figure("mcp connection, idle: memory", Amount::Bytes(each), Amount::kib(200));
    drop((first, more));
}
