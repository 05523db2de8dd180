//! The database schema: its tables, its versions and the migration of older ones.

use tokio_postgres::Client;

use super::connection::failed;
use super::{StoreError, io_error};

/// The newest schema version.
const VERSION: i32 = 1;

/// The statements that turn schema n into schema n + 1, starting from an empty database.
const MIGRATIONS: [&str; VERSION as usize] = ["
    CREATE TABLE machines (
        name text PRIMARY KEY,
        id text NOT NULL,
        incarnation bigint NOT NULL,
        until timestamptz NOT NULL,
        seen timestamptz NOT NULL,
        certificate text NOT NULL,
        address text,
        places text[] NOT NULL
    );
    CREATE TABLE sessions (
        id text PRIMARY KEY,
        opened bigint NOT NULL,
        home text NOT NULL,
        owner text,
        epoch bigint NOT NULL,
        last bigint NOT NULL DEFAULT 0,
        reserved bigint NOT NULL DEFAULT 0,
        summary text
    );
    CREATE INDEX sessions_by_age ON sessions (opened, id COLLATE \"C\");
    CREATE INDEX owned_sessions ON sessions (owner) WHERE owner IS NOT NULL;
    CREATE TABLE names (
        name text PRIMARY KEY,
        session text NOT NULL,
        machine text NOT NULL,
        taken timestamptz NOT NULL
    );
    CREATE INDEX names_of_session ON names (session);
    CREATE TABLE facts (
        session text NOT NULL,
        seq bigint NOT NULL,
        after bigint NOT NULL,
        epoch bigint NOT NULL,
        event text NOT NULL,
        check_sum bigint NOT NULL,
        PRIMARY KEY (session, seq)
    );
    CREATE TABLE drafts (
        session text NOT NULL,
        seq bigint NOT NULL,
        event text NOT NULL,
        check_sum bigint NOT NULL,
        PRIMARY KEY (session, seq)
    );
    CREATE TABLE states (
        session text PRIMARY KEY,
        seq bigint NOT NULL,
        state text NOT NULL,
        check_sum bigint NOT NULL
    );
"];

/// The key of the lock under which one machine at a time migrates.
const MIGRATION_LOCK: i64 = 0x686f_6c64_706f_696e;

/// The oldest supported version of the server.
const MIN_SERVER: i32 = 150_000;

/// Checks that the server keeps acknowledged commits, and brings the schema to the newest version.
pub(super) async fn prepare(client: &mut Client) -> Result<(), StoreError> {
    check_server(client).await?;
    client
        .batch_execute("SET client_min_messages = warning; SET search_path = holdpoint")
        .await
        .map_err(|error| failed(&error))?;
    if found_version(client).await? == VERSION {
        return Ok(());
    }
    migrate(client).await
}

async fn check_server(client: &Client) -> Result<(), StoreError> {
    let query = "SELECT current_setting('server_version_num')::int, current_setting('fsync'), \
                 current_setting('synchronous_commit'), pg_is_in_recovery()";
    let row = client.query_one(query, &[]).await.map_err(|error| failed(&error))?;
    let (version, is_standby): (i32, bool) = (row.get(0), row.get(3));
    let (fsync, commit): (String, String) = (row.get(1), row.get(2));
    let refused = if version < MIN_SERVER {
        "it is older than PostgreSQL 15".to_owned()
    } else if is_standby {
        "it is a standby, which can't be written to".to_owned()
    } else if fsync != "on" {
        "`fsync` is off, so it can lose acknowledged facts".to_owned()
    } else if commit == "off" {
        "`synchronous_commit` is off, so it can lose acknowledged facts".to_owned()
    } else {
        return Ok(());
    };
    Err(io_error(format!("the database can't be used: {refused}")))
}

/// The version of the schema; 0 if there is none yet.
async fn found_version(client: &Client) -> Result<i32, StoreError> {
    // Reads the catalog as a table: a look-up by name could be answered from a cache of before the
    // lock.
    let exists = "SELECT EXISTS (SELECT FROM pg_tables \
                  WHERE schemaname = 'holdpoint' AND tablename = 'schema_version')";
    let row = client.query_one(exists, &[]).await.map_err(|error| failed(&error))?;
    if !row.get::<_, bool>(0) {
        return Ok(0);
    }
    let version = "SELECT version FROM holdpoint.schema_version";
    let found: i32 = client.query_one(version, &[]).await.map_err(|error| failed(&error))?.get(0);
    if found > VERSION {
        let number = |version: i32| version.unsigned_abs();
        return Err(StoreError::Newer { found: number(found), known: number(VERSION) });
    }
    Ok(found)
}

/// Brings the schema to the newest version, while no other machine does.
async fn migrate(client: &mut Client) -> Result<(), StoreError> {
    let lock = format!("BEGIN; SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    client.batch_execute(&lock).await.map_err(|error| failed(&error))?;
    // Another machine may have migrated before the lock was taken.
    let found = found_version(client).await?;
    let mut steps = String::new();
    if found == 0 {
        steps.push_str(
            "CREATE SCHEMA IF NOT EXISTS holdpoint;
            CREATE TABLE holdpoint.schema_version (version int NOT NULL);
            INSERT INTO holdpoint.schema_version VALUES (0);",
        );
    }
    MIGRATIONS.iter().skip(found.unsigned_abs() as usize).for_each(|step| steps.push_str(step));
    steps.push_str(&format!("UPDATE holdpoint.schema_version SET version = {VERSION}; COMMIT"));
    client.batch_execute(&steps).await.map_err(|error| failed(&error))
}
