//! Folders that a background job replaces by links while the sandbox of another command starts.

use std::fs;
use std::process::Command;

use holdpoint_common::SandboxLevel;
use holdpoint_tools::{Processes, SUPERVISOR_NAME, SandboxProfile, Supervisor};

use super::{GRACE, World, read_all};

/// A supervisor that runs a script before it starts to work. By then the paths of the sandbox have
/// been examined, and the sandbox does not exist yet.
fn swapping_supervisor(world: &World, script: &str) -> Supervisor {
    let (text, program) = (world.path("script"), world.path("supervisor"));
    let this = std::env::current_exe().unwrap();
    let script =
        format!("#!/bin/bash\n{script}\nexec -a {SUPERVISOR_NAME} {} \"$@\"", this.display());
    fs::write(&text, script).unwrap();
    // Copied by another program: a file that this process has open for writing can't be run.
    let mut install = Command::new("install");
    assert!(install.args(["-m", "700"]).arg(text).arg(&program).status().unwrap().success());
    Supervisor::Program(program)
}

#[test]
fn m_g2_a_folder_that_becomes_a_link_while_a_sandbox_starts_is_not_used() {
    for level in World::new().sandboxes().into_iter().rev() {
        for (workspace, swap) in [
            // The link leads to the same folder outside and inside of the new sandbox.
            ("work", "cd $BASE/work && mv .git g && ln -s ../home .git"),
            ("work", "cd $BASE/work/.git && mv hooks h && ln -s ../../home hooks"),
            ("work", "cd $BASE/work && mv .vscode v && ln -s ../home .vscode"),
            ("work/sub", "cd $BASE/work && mv sub s && ln -s ../home sub"),
            ("work/sub", "cd $BASE && mv work w && mkdir work && ln -s ../home work/sub"),
        ] {
            let world = World::new();
            fs::create_dir_all(world.path("work/.vscode")).unwrap();
            fs::create_dir_all(world.path("work/sub")).unwrap();
            let [tmp, caches] = ["state/tmp", "state/caches"].map(|path| world.path(path));
            let workspace = world.path(workspace);
            let profile = SandboxProfile::new(&workspace, world.path("home"), tmp, caches)
                .own_folders([world.path("state")]);
            let run = |supervisor: Supervisor| {
                let processes = Processes::new(supervisor, GRACE)
                    .sandboxed(world.sandbox(level, profile.clone()));
                let attack = "echo x > $HOME/.bashrc; cat .git/.netrc .git/hooks/.netrc \
                              .vscode/.netrc .netrc $BASE/home/.netrc; echo ran";
                match processes.spawn(world.spec_in(&workspace, attack)) {
                    Ok(mut process) => read_all(&mut process),
                    Err(error) => error.to_string(),
                }
            };
            let output = run(swapping_supervisor(&world, ""));
            assert!(output.contains("ran"), "{level}: {output}");
            let output = run(swapping_supervisor(&world, swap));
            assert!(!output.contains("CONTENT"), "{level}: {swap}: {output}");
            assert!(!world.path("home/.bashrc").exists(), "{level}: {swap}: {output}");
            if level == SandboxLevel::Bwrap {
                assert!(!output.contains("ran"), "{swap}: {output}");
            }
        }
    }
}
