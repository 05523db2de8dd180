//! Background jobs: started, listed, read from a position, stopped, bounded, and ended with their
//! turn and their session.
#![cfg(target_os = "linux")]

use std::fs;

use holdpoint_common::{JobEnd, TurnId};
use holdpoint_tools::testing::{Bench, Census};
use holdpoint_tools::{Jobs, MAX_JOBS, Shell, ToolError};
use serde_json::{Value, json};

fn start(bench: &Bench, command: &str) -> Result<u64, ToolError> {
    let outcome =
        bench.call(Shell::new(), json!({"command": command, "background": true})).result?;
    let (_, job) = outcome.output.split_once("as job ").expect("the job's number");
    Ok(job.trim_end_matches(']').parse().unwrap())
}

fn jobs(bench: &Bench, input: Value) -> Result<String, String> {
    bench
        .call(Jobs::new(), input)
        .result
        .map(|outcome| outcome.output)
        .map_err(|error| error.to_string())
}

/// Reads from a byte until the output contains `wanted`. Returns the output and the next position.
fn read_until(bench: &Bench, job: u64, mut from: u64, wanted: &str) -> (String, u64) {
    let mut all = String::new();
    loop {
        let read =
            jobs(bench, json!({"action": "read", "job": job, "from": from, "wait_ms": 20_000}))
                .unwrap();
        let (text, status) = read.rsplit_once('[').unwrap();
        all.push_str(text);
        from = status.split(' ').nth(3).unwrap().parse().unwrap();
        if all.contains(wanted) {
            return (all, from);
        }
        assert!(status.contains("running"), "{wanted:?} is missing: {all:?} [{status}");
    }
}

#[test]
fn m_e7_a_background_job_is_listed_read_from_a_point_and_stopped() {
    let census = Census::new();
    let bench = Bench::new().env("HOLDPOINT_TEST", census.mark());
    assert_eq!(jobs(&bench, json!({"action": "list"})).unwrap(), "[no background jobs]");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(bench.root().join("say"))
            .status()
            .unwrap()
            .success()
    );
    let job =
        start(&bench, "echo one; while read -r word; do echo \"$word\"; done < say; sleep 1000")
            .unwrap();
    let (text, from) = read_until(&bench, job, 0, "one");
    assert_eq!((text.as_str(), from), ("one\n", 4));
    // Without a wait, a read without new output returns at once.
    let read = jobs(&bench, json!({"action": "read", "job": job, "from": from})).unwrap();
    assert_eq!(read, "[bytes 4 to 4 of 4; running]");
    fs::write(bench.root().join("say"), "two\nthree\n").unwrap();
    let (text, from) = read_until(&bench, job, from, "three");
    assert_eq!((text.as_str(), from), ("two\nthree\n", 14));
    // Without a position, the newest output is read.
    assert!(
        jobs(&bench, json!({"action": "read", "job": job}))
            .unwrap()
            .starts_with("one\ntwo\nthree\n[bytes 0 to 14")
    );
    let list = jobs(&bench, json!({"action": "list"})).unwrap();
    assert!(
        list.starts_with(&format!("job {job}: running; ")) && list.ends_with("sleep 1000"),
        "{list}"
    );

    assert_eq!(
        jobs(&bench, json!({"action": "stop", "job": job})).unwrap(),
        format!("[job {job}: stopped]")
    );
    assert_eq!(census.living(), []);
    assert!(
        jobs(&bench, json!({"action": "list"}))
            .unwrap()
            .starts_with(&format!("job {job}: stopped; "))
    );
    let age = || bench.background().list()[0].age;
    assert_eq!(age(), age(), "an ended job does not get older");
    // The output of a stopped job can still be read, and stopping it again reports its end.
    let read =
        jobs(&bench, json!({"action": "read", "job": job, "from": 4, "wait_ms": 20_000})).unwrap();
    assert_eq!(read, "two\nthree\n[bytes 4 to 14 of 14; stopped]");
    assert_eq!(
        jobs(&bench, json!({"action": "stop", "job": job})).unwrap(),
        format!("[job {job}: stopped]")
    );
    for action in ["read", "stop"] {
        let error = jobs(&bench, json!({"action": action, "job": 99})).unwrap_err();
        assert!(error.contains("there is no job 99"), "{error}");
        let error = jobs(&bench, json!({"action": action})).unwrap_err();
        assert!(error.contains("`job` is missing"), "{error}");
    }
}

#[test]
fn the_list_shows_one_short_line_for_each_command() {
    let bench = Bench::new();
    for command in ["echo '\u{202e}a'\necho b", &format!("echo {}", "x".repeat(10_000))] {
        start(&bench, command).unwrap();
    }
    let list = jobs(&bench, json!({"action": "list"})).unwrap();
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(lines.len(), 2, "{list}");
    assert!(lines.iter().any(|line| line.ends_with("; echo '\\u{202e}a'…")), "{list}");
    assert!(lines.iter().any(|line| line.ends_with("xxx…") && line.len() < 200), "{list}");
}

#[test]
fn m_e7_the_end_of_a_job_is_reported() {
    let bench = Bench::new();
    let ended = |command: &str, more: Value| {
        let mut input = json!({"command": command, "background": true});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let outcome = bench.call(Shell::new(), input).result.unwrap().output;
        let job: u64 =
            outcome.split_once("as job ").unwrap().1.trim_end_matches(']').parse().unwrap();
        read_until_over(&bench, job)
    };
    assert!(
        ended("echo bye; exit 3", json!({})).ends_with("bye\n[bytes 0 to 4 of 4; exit code 3]")
    );
    assert!(ended("kill -USR1 $$", json!({})).ends_with("ended by signal 10]"));
    assert!(ended("sleep 1000", json!({"timeout_ms": 50})).ends_with("timed out]"));
}

/// Waits until the job is over, and reads its newest output.
fn read_until_over(bench: &Bench, job: u64) -> String {
    loop {
        // The position is past any output, so that only the end of the job ends the wait.
        let read = jobs(
            bench,
            json!({"action": "read", "job": job, "from": u64::MAX / 2, "wait_ms": 20_000}),
        )
        .unwrap();
        if !read.contains("running") {
            return jobs(bench, json!({"action": "read", "job": job})).unwrap();
        }
    }
}

#[test]
fn m_e7_the_newest_output_of_a_flood_is_kept_and_the_dropped_bytes_counted() {
    let bench = Bench::new();
    let job = start(&bench, "seq 1 400000").unwrap();
    let read = read_until_over(&bench, job);
    assert!(read.contains("\n399999\n400000\n["), "{}", &read[read.len() - 200..]);
    let read = jobs(&bench, json!({"action": "read", "job": job, "from": 0})).unwrap();
    assert!(
        read.contains("earlier bytes are no longer kept; continue with from="),
        "{}",
        &read[read.len() - 200..]
    );
    assert!(read.len() < 20 * 1024);
}

#[test]
fn m_e7_the_number_of_running_jobs_is_limited() {
    let bench = Bench::new();
    let first = start(&bench, "sleep 1000").unwrap();
    for _ in 1..MAX_JOBS {
        start(&bench, "sleep 1000").unwrap();
    }
    let error = start(&bench, "sleep 1000").unwrap_err().to_string();
    assert_eq!(
        error,
        "the job could not be started: 8 background jobs are already running: stop one first"
    );
    jobs(&bench, json!({"action": "stop", "job": first})).unwrap();
    start(&bench, "sleep 1000").unwrap();
    // Ended jobs do not accumulate.
    for _ in 0..30 {
        let job = bench.background().list().iter().rev().find(|job| job.end.is_none()).unwrap().id;
        bench.background().stop(job);
        start(&bench, "sleep 1000").unwrap();
    }
    assert!(bench.background().list().len() <= 2 * MAX_JOBS);
}

#[test]
fn m_e7_a_cut_ends_the_jobs_of_its_turn_and_none_starts_after_it() {
    let census = Census::new();
    let bench = Bench::new().env("HOLDPOINT_TEST", census.mark());
    let job = start(
        &bench,
        "(setsid sleep 1000 &); (trap '' TERM; echo up; while :; do sleep 0.05; done)",
    )
    .unwrap();
    read_until(&bench, job, 0, "up");
    bench.background().cut(TurnId(2));
    assert!(bench.background().list()[0].end.is_none() && !bench.background().has_cut(TurnId(2)));
    bench.background().cut(TurnId(1));
    let ended = bench.background().finish(TurnId(1));
    assert!(ended.total() >= 2 && ended.killed >= 1 && ended.not_ended.is_empty(), "{ended:?}");
    assert_eq!(census.living(), []);
    assert_eq!(bench.background().list()[0].end, Some(JobEnd::Interrupted));
    let error = start(&bench, "sleep 1000").unwrap_err().to_string();
    assert!(error.contains("the turn has ended"), "{error}");
}

#[test]
fn t_p11_jobs_and_their_processes_end_with_the_session() {
    let census = Census::new();
    let bench = Bench::new().env("HOLDPOINT_TEST", census.mark());
    for _ in 0..3 {
        let job =
            start(&bench, "setsid sleep 1000 & (sleep 1000 &); nohup sleep 1000 & echo up; wait")
                .unwrap();
        read_until(&bench, job, 0, "up");
    }
    census.wait_living(12);
    drop(bench);
    census.wait_none();
}

#[test]
fn a_call_that_waits_for_output_wakes_at_the_cut() {
    let bench = Bench::new();
    let job = start(&bench, "sleep 1000").unwrap();
    let calling = bench
        .start(Jobs::new(), json!({"action": "read", "job": job, "from": 0, "wait_ms": 60_000}));
    calling.cut();
    // Like a session: the token first.
    bench.background().cut(TurnId(7));
    assert!(matches!(calling.wait().result, Err(ToolError::Interrupted)));
    let error = jobs(&bench, json!({"action": "read", "job": job, "wait_ms": 60_001})).unwrap_err();
    assert!(error.contains("at most 60000"), "{error}");
}
