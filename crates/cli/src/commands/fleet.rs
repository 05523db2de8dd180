//! The command `holdpoint fleet`.

use std::io::{self, Read};

use clap::Subcommand;
use holdpoint_common::{MAX_MACHINE_NAME, is_machine_name};
use holdpoint_session::folders::{Folders, LockError, Membership, SessionsLock};
use holdpoint_session::store::{
    Copied, KnownMachine, Machines, Postgres, Removal, SessionStore, Sqlite, StoreError,
    copy_session,
};
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::daemon::{authorities, check_listen, connect, make_certificate, open_file};
use crate::error::CliError;
use crate::runtime::block_on;
use crate::summaries::counted;
use crate::table::{age, table};
use crate::tone::Tone;
use crate::ui::Ui;

/// The maximum length of the address of a database in bytes.
const MAX_ADDRESS_BYTES: u64 = 64 * 1024;

/// Keep the sessions of several machines in one PostgreSQL database
///
/// The machines of a fleet list each other's sessions and read them. Each session belongs to the
/// machine with its folder, and runs only there. A command for a session that is live on another
/// machine is carried out there, if that machine listens. If a machine dies, its sessions can still be
/// read, and nothing that was saved is lost. See docs/fleet.md.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    Join(JoinArgs),
    Leave(LeaveArgs),
    List(ListArgs),
    Remove(RemoveArgs),
}

/// Make this machine join a fleet, and copy its sessions to the database
///
/// The first machine that joins prepares the database, which needs PostgreSQL 15 or later. The
/// daemon must not be running. The original sessions stay in the data folder, and are not used while
/// the machine is in the fleet.
#[derive(Debug, clap::Args)]
struct JoinArgs {
    /// The address of the database, as libpq writes it, for example
    /// `postgres://holdpoint@db.example.com/holdpoint`; `-` reads it from standard input, which an
    /// address with a password needs
    #[arg(value_name = "DATABASE")]
    database: String,

    /// The name of this machine in the fleet; by default, its host name
    #[arg(long)]
    name: Option<String>,

    /// Let the other machines reach the sessions of this one, at this address and port, for example
    /// `10.0.0.5:7443`; port 0 chooses a free one at each start
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
}

/// Make this machine leave its fleet
///
/// The daemon must not be running. The sessions of this machine stay in the database; `holdpoint
/// export` copies one. Afterwards the sessions in the data folder are used again.
#[derive(Debug, clap::Args)]
struct LeaveArgs {}

/// List the machines of the fleet
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Remove a machine that does not respond any more from the list
///
/// Its sessions stay in the database.
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The name of the machine
    name: String,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    // Also refuses a process that a tool call has started.
    folders.make()?;
    match &args.command {
        FleetCommand::Join(args) => join(args, folders, ui)?,
        FleetCommand::Leave(_) => leave(folders, ui)?,
        FleetCommand::List(args) => list(args, folders, ui)?,
        FleetCommand::Remove(args) => remove(args, folders, ui)?,
    }
    Ok(0)
}

fn join(args: &JoinArgs, folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    let fleet = folders.fleet();
    if let Some(membership) = fleet.get()? {
        let message = format!("this machine is in a fleet already, as `{}`", membership.name);
        return Err(CliError::failed(message).hint("`holdpoint fleet leave` makes it leave"));
    }
    let (database, is_typed) = address(&args.database)?;
    let machines = Machines::of(&database, &authorities()).map_err(|error| {
        CliError::usage(error).hint("`holdpoint fleet join --help` has another example")
    })?;
    if is_typed && machines.uses_password() {
        return Err(CliError::usage("other users can see the password in a command line")
            .hint("write the address to standard input: `holdpoint fleet join - < FILE`"));
    }
    let name = machine_name(args.name.as_deref())?;
    args.listen.as_deref().map(check_listen).transpose()?;
    let _lock = take_lock(folders)?;
    let (certificate, key) = make_certificate()
        .map_err(|error| CliError::failed(format!("no certificate can be made: {error}")))?;
    let config = folders.config()?;
    let (id, listen) = (fleet.machine_id()?, args.listen.clone());
    let membership = Membership { database, name, id, certificate, key, listen };
    let file = open_file(folders)?;
    let (copied, kept) = block_on(async {
        let database = connect(&membership, None, &config.fleet).await.map_err(|error| {
            error.hint("check the address, and that the database exists and accepts its user")
        })?;
        let copied = copy(&file, &database, ui).await;
        database.close().await;
        file.close().await;
        copied
    })?;
    fleet.set(&membership)?;
    let name = prose_line(&membership.name);
    ui.print(&format!("this machine is `{name}` in the fleet\n"))?;
    let data = folders.data().display().to_string();
    if copied > 0 {
        let copied = counted(copied, "session");
        let text = format!("{copied} copied; the originals stay in {}", prose_line(&data));
        ui.line(Tone::Dim, &text)?;
    }
    for (session, why) in kept {
        ui.line(Tone::Warning, &format!("not copied: session {session}: {}", prose_line(&why)))?;
    }
    Ok(ui.flush()?)
}

/// The address of the database, and whether it is in the command line.
fn address(given: &str) -> Result<(String, bool), CliError> {
    if given != "-" {
        return Ok((given.to_owned(), true));
    }
    let mut text = String::new();
    let read = io::stdin().lock().take(MAX_ADDRESS_BYTES).read_to_string(&mut text);
    read.map_err(|error| CliError::failed(format!("standard input can't be read: {error}")))?;
    Ok((text.trim().to_owned(), false))
}

/// The name of this machine: the given one, or the host name.
fn machine_name(given: Option<&str>) -> Result<String, CliError> {
    let host = rustix::system::uname();
    let name = given.unwrap_or_else(|| host.nodename().to_str().unwrap_or_default());
    if !is_machine_name(name) {
        let name = prose_line(name);
        let message = format!(
            "`{name}` can't be the name of a machine: it needs 1 to {MAX_MACHINE_NAME} letters, \
             digits, `-`, `_` and `.`, all of them ASCII"
        );
        return Err(CliError::usage(message).hint("choose a name with --name"));
    }
    Ok(name.to_owned())
}

/// Takes the lock on the sessions, so that no daemon runs meanwhile.
fn take_lock(folders: &Folders) -> Result<SessionsLock, CliError> {
    SessionsLock::take(folders).map_err(|error| match error {
        held @ LockError::Held { .. } => {
            CliError::failed(held).hint("`holdpoint daemon stop` stops the daemon")
        }
        LockError::Failed(error) => error.into(),
    })
}

/// Copies the sessions of a file to a database. Returns how many were copied, and which were not,
/// with the reasons.
async fn copy(
    file: &Sqlite,
    database: &Postgres,
    ui: &mut Ui,
) -> Result<(usize, Vec<(String, String)>), CliError> {
    let failed = |error: StoreError| {
        CliError::failed(format!("the sessions can't be copied: {error}"))
            .hint("nothing is lost: run the command again, which continues")
    };
    let sessions = file.list().await.map_err(failed)?;
    let (mut copied, mut kept) = (0, Vec::new());
    for (number, session) in sessions.iter().enumerate() {
        let all = sessions.len();
        ui.progress(&[format!("copying session {} of {all}", number + 1)])?;
        match copy_session(file, database, session).await.map_err(failed)? {
            Copied::Whole => copied += 1,
            Copied::Known => {}
            Copied::Refused(why) => kept.push((session.summary.id.to_string(), why)),
        }
    }
    ui.progress(&[])?;
    Ok((copied, kept))
}

fn leave(folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    let Membership { database, name, .. } = membership(folders)?;
    let _lock = take_lock(folders)?;
    folders.fleet().remove()?;
    let removed = block_on(async {
        let mut machines = Machines::of(&database, &authorities()).map_err(CliError::failed)?;
        machines.remove(&name).await.map_err(CliError::failed)
    });
    let shown = prose_line(&name);
    ui.print("this machine is in no fleet any more\n")?;
    let why = match removed {
        Ok(Removal::Removed | Removal::Unknown) => return Ok(()),
        Ok(Removal::HasLease) => "its lease has not ended yet".to_owned(),
        Err(error) => error.to_string(),
    };
    ui.line(Tone::Warning, &format!("the fleet still lists it, because {}", prose_line(&why)))?;
    ui.line(Tone::Plain, &format!("hint: `holdpoint fleet remove {shown}` on another machine"))?;
    Ok(ui.flush()?)
}

fn list(args: &ListArgs, folders: &Folders, ui: &mut Ui) -> Result<(), CliError> {
    let Membership { database, name: this, .. } = membership(folders)?;
    let machines = block_on(async {
        let mut machines = Machines::of(&database, &authorities()).map_err(CliError::failed)?;
        machines.list().await.map_err(unreadable)
    })?;
    if args.json {
        let machines: Vec<_> = machines
            .iter()
            .map(|KnownMachine { name, has_lease, responds, seen, sessions, address }| {
                json!({ "name": name, "hasLease": has_lease, "responds": responds, "seen": seen,
                    "sessions": sessions, "address": address })
            })
            .collect();
        return Ok(ui.json(&json!({ "machine": this, "machines": machines }))?);
    }
    let rows: Vec<_> = machines.iter().map(|machine| row(machine, &this)).collect();
    let columns = ["MACHINE", "STATE", "SEEN", "SESSIONS", "ADDRESS"];
    ui.print(&table(columns, &rows, ui.columns()))?;
    Ok(())
}

fn row(machine: &KnownMachine, this: &str) -> [String; 5] {
    let KnownMachine { name, responds, seen, sessions, address, .. } = machine;
    let note = if name == this { " (this machine)" } else { "" };
    [
        format!("{}{note}", prose_line(name)),
        if *responds { "responds" } else { "does not respond" }.to_owned(),
        age(*seen),
        sessions.to_string(),
        address.as_deref().map(prose_line).unwrap_or_default().into(),
    ]
}

fn remove(
    RemoveArgs { name }: &RemoveArgs,
    folders: &Folders,
    ui: &mut Ui,
) -> Result<(), CliError> {
    let Membership { database, name: this, .. } = membership(folders)?;
    if *name == this {
        return Err(CliError::usage("this is the name of this machine")
            .hint("`holdpoint fleet leave` makes it leave the fleet"));
    }
    let removed = block_on(async {
        let mut machines = Machines::of(&database, &authorities()).map_err(CliError::failed)?;
        machines.remove(name).await.map_err(unreadable)
    })?;
    let shown = prose_line(name);
    match removed {
        Removal::Removed => Ok(ui.print(&format!("removed: {shown}\n"))?),
        Removal::HasLease => {
            Err(CliError::failed(format!("the lease of the machine `{shown}` has not ended"))
                .hint("`holdpoint fleet leave` on that machine makes it leave the fleet"))
        }
        Removal::Unknown => Err(CliError::failed(format!("no machine is called `{shown}`"))
            .hint("`holdpoint fleet list` lists the machines")),
    }
}

/// The membership of this machine.
pub(super) fn membership(folders: &Folders) -> Result<Membership, CliError> {
    folders.fleet().get()?.ok_or_else(|| {
        CliError::failed("this machine is in no fleet")
            .hint("`holdpoint fleet join DATABASE` makes it join one")
    })
}

fn unreadable(error: StoreError) -> CliError {
    CliError::failed(format!("the machines of the fleet can't be read: {error}"))
        .hint("check that the database runs and can be reached")
}
