//! The program that supervises the processes of tool calls.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::world::{Ran, World, program};

/// The file name of the program that supervises a command of `program`.
fn supervisor_of(program: &Path, world: &World) -> String {
    let script = "shell: readlink /proc/$PPID/exe > exe";
    let mut command = Command::new(program);
    command.args(["run", "--in-process", "--asks", "approve", script]).stdin(Stdio::null());
    command.current_dir(world.path("work")).env_clear().envs(world.env());
    Ran::of(command).code(0);
    let exe = fs::read_to_string(world.work("exe")).unwrap();
    exe.trim().rsplit_once('/').unwrap().1.to_owned()
}

#[test]
fn m_c2_only_a_supervisor_of_the_same_build_is_used() {
    let world = World::new();
    let small = program().with_file_name("holdpoint-supervisor");
    assert_eq!(supervisor_of(program(), &world), "holdpoint-supervisor");

    let folder = world.path("bin");
    fs::create_dir(&folder).unwrap();
    let link = |from: &Path, to: &Path| {
        fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop)).unwrap();
    };
    let (copy, beside) = (folder.join("holdpoint"), folder.join("holdpoint-supervisor"));
    link(program(), &copy);
    assert_eq!(supervisor_of(&copy, &world), "holdpoint", "none");

    link(Path::new("/bin/true"), &beside);
    assert_eq!(supervisor_of(&copy, &world), "holdpoint", "another program");
    fs::remove_file(&beside).unwrap();

    mknodat(CWD, &beside, FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_eq!(supervisor_of(&copy, &world), "holdpoint", "a pipe that nobody writes to");
    fs::remove_file(&beside).unwrap();

    link(&small, &beside);
    assert_eq!(supervisor_of(&copy, &world), "holdpoint-supervisor", "the same build");
}
