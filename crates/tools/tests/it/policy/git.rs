//! Git in hostile folders: each file and option that makes git run a program is tried with the real
//! git, and the policy asks about it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use holdpoint_common::{PolicyMode, Verdict};
use rustix::fs::{CWD, Mode, mkfifoat};

use super::support::{PolicyWorkspace, RuleText};

use Verdict::{Allow, Ask};

/// A script that leaves a mark in the workspace.
const MARK: &str = "touch \"$MARK\"";

/// Prepares the workspace with a shell script, in which `mark` is a command that leaves a mark.
/// Then the path is written, and git runs.
struct Indirection {
    name: &'static str,
    setup: &'static str,
    path: &'static str,
    text: &'static str,
    git: &'static str,
}

const BASE: Indirection = Indirection {
    name: "",
    setup: "git init -q .",
    path: "",
    text: "mark\n",
    git: "echo >> notes.txt; git add notes.txt",
};

/// The start of a configuration with a program that `git status` runs.
const CONFIG: &str = "[core]\nbare = false\nrepositoryformatversion = 0\nfsmonitor = mark; false\n";

const INDIRECTIONS: [Indirection; 22] = [
    Indirection {
        name: "a bare repository",
        setup: "git init -q --bare sub/x",
        path: "sub/x/config",
        text: "[core]\nrepositoryformatversion = 0\nfsmonitor = mark; false\nworktree = ..\n",
        git: "git -C sub/x status",
    },
    Indirection {
        name: "a hook of a bare repository",
        setup: "git init -q --bare x; echo > x/hooks/post-update; chmod +x x/hooks/post-update; git init -q .
            git commit -q --allow-empty -m a",
        path: "x/hooks/post-update",
        git: "git commit --allow-empty -m b; git push x HEAD",
        ..BASE
    },
    Indirection {
        name: "a `.git` file",
        setup: "git init -q --separate-git-dir=data .",
        path: "data/config",
        text: CONFIG,
        git: "git status",
    },
    Indirection {
        name: "a `.git` file in a folder",
        setup: "git init -q --separate-git-dir=data sub",
        path: "data/config",
        text: CONFIG,
        git: "git -C sub status",
    },
    Indirection {
        name: "a `.git` link",
        setup: "git init -q .; mv .git data; ln -s data .git",
        path: "data/config",
        text: CONFIG,
        git: "git status",
    },
    Indirection {
        name: "a link from the git directory",
        setup: "git init -q .; mv .git/config shared; ln -s ../shared .git/config",
        path: "shared",
        text: CONFIG,
        git: "git status",
    },
    Indirection {
        name: "`commondir`",
        setup: "git init -q .; mkdir data; mv .git/objects .git/refs .git/config data
            echo ../data > .git/commondir",
        path: "data/config",
        text: CONFIG,
        git: "git status",
    },
    Indirection {
        name: "`commondir` in a bare repository",
        setup: "git init -q --bare x; mkdir data; mv x/objects x/refs x/config data
            echo ../data > x/commondir",
        path: "data/config",
        text: "[core]\nrepositoryformatversion = 0\n[alias]\nx = !mark\n",
        git: "git -C x x",
    },
    Indirection {
        name: "`include.path`",
        setup: "git init -q .; git config include.path ../shared",
        path: "shared",
        text: CONFIG,
        git: "git status",
    },
    Indirection {
        name: "`includeIf` in an included file",
        setup: "git init -q .; git config include.path ../a; mkdir b
            git config --file a includeIf.gitdir:/.path b/c",
        path: "b/c",
        text: CONFIG,
        git: "git status",
    },
    Indirection {
        name: "a configuration of the user that is a link",
        setup: "git init -q .; echo > dotfile; ln -s \"$PWD/dotfile\" \"$HOME/.gitconfig\"",
        path: "dotfile",
        text: "[core]\nfsmonitor = mark; false\n",
        git: "git status",
    },
    Indirection {
        name: "a file that the user's configuration includes",
        setup: "git init -q .; git config --global include.path \"$PWD/dotfile\"",
        path: "dotfile",
        text: "[core]\nfsmonitor = mark; false\n",
        git: "git status",
    },
    Indirection {
        name: "`core.hooksPath`",
        setup: "git init -q .; git config core.hooksPath hooks; mkdir hooks
            echo > hooks/pre-commit; chmod +x hooks/pre-commit",
        path: "hooks/pre-commit",
        git: "git commit --allow-empty -m a",
        ..BASE
    },
    Indirection {
        name: "`core.hooksPath` of the user",
        setup: "git init -q .; git config --global core.hooksPath hooks; mkdir hooks
            echo > hooks/pre-commit; chmod +x hooks/pre-commit",
        path: "hooks/pre-commit",
        git: "git commit --allow-empty -m a",
        ..BASE
    },
    Indirection {
        name: "a hook that is a link",
        setup: "git init -q .; mkdir -p .git/hooks tools; ln -s ../../tools/a .git/hooks/pre-commit
            echo > tools/a; chmod +x tools/a",
        path: "tools/a",
        git: "git commit --allow-empty -m a",
        ..BASE
    },
    Indirection {
        name: "`core.fsmonitor`",
        setup: "git init -q .; git config core.fsmonitor tools/a; mkdir tools; echo > tools/a; chmod +x tools/a",
        path: "tools/a",
        git: "git status",
        ..BASE
    },
    Indirection {
        name: "a filter",
        setup: "git init -q .; git config filter.f.clean 'sh tools/a\\ b %f'; echo '* filter=f' > .gitattributes",
        path: "tools/a b",
        ..BASE
    },
    Indirection {
        name: "a filter in a repository below the workspace",
        setup: "git init -q sub; git -C sub config filter.f.clean 'sh tools/a'; echo x > sub/x
            echo '* filter=f' > sub/.gitattributes",
        path: "sub/tools/a",
        git: "echo >> sub/x; git -C sub add x",
        ..BASE
    },
    Indirection {
        name: "textconv",
        setup: "git init -q .; git config diff.d.textconv 'sh \"tools/a b\"'; echo '* diff=d' > .gitattributes
            git add notes.txt; echo > notes.txt",
        path: "tools/a b",
        git: "git diff",
        ..BASE
    },
    Indirection {
        name: "an alias",
        setup: "git init -q .; git config alias.x '!x=1; sh ./tools/a'",
        path: "tools/a",
        git: "git x",
        ..BASE
    },
    Indirection {
        name: "`core.attributesFile`",
        setup: "git init -q .; git config core.attributesFile shared; git config filter.f.clean mark",
        path: "shared",
        text: "* filter=f\n",
        ..BASE
    },
    Indirection {
        name: "a program in another work tree",
        setup: "mkdir sub; git init -q .; git config filter.f.clean 'sh ./a'
            git config core.worktree ../sub; echo x > sub/x; echo '* filter=f' > sub/.gitattributes",
        path: "sub/a",
        git: "echo >> sub/x; git add x",
        ..BASE
    },
];

/// A workspace with a file, and a program `mark` on the `PATH`.
fn world(rules: &RuleText<'_>) -> PolicyWorkspace {
    let world = rules.world();
    fs::write(world.root.join("notes.txt"), "notes\n").unwrap();
    fs::create_dir(world.home.join("bin")).unwrap();
    run_in(
        &world,
        "echo \"#!/bin/sh\n$TEXT\" > ~/bin/mark; chmod +x ~/bin/mark",
        &[("TEXT", MARK)],
    );
    world
}

fn edits() -> PolicyWorkspace {
    world(&RuleText {
        mode: PolicyMode::Edits,
        allow: &["write(**)", "write_file", "shell(echo)"],
        ..RuleText::default()
    })
}

/// Runs a script in the workspace, and returns its errors.
fn run_in(world: &PolicyWorkspace, script: &str, env: &[(&str, &str)]) -> String {
    let path = format!("{}/bin:{}", world.home.display(), std::env::var("PATH").unwrap());
    let output = Command::new("/bin/sh")
        .args(["-c", script])
        .current_dir(&world.root)
        .env_clear()
        .env("PATH", path)
        .env("HOME", &world.home)
        .env("MARK", mark(world))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@example.com")))
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn mark(world: &PolicyWorkspace) -> std::path::PathBuf {
    world.home.join("mark")
}

/// Whether the script makes a program leave its mark.
fn leaves_mark(world: &PolicyWorkspace, script: &str) -> Result<(), String> {
    let _ = fs::remove_file(mark(world));
    let errors = run_in(world, script, &[]);
    if mark(world).exists() { Ok(()) } else { Err(errors) }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn m_g4_a_file_that_git_reads_or_runs_under_another_name_asks() {
    let mut missed = Vec::new();
    for Indirection { name, setup, path, text, git } in INDIRECTIONS {
        let world = edits();
        let errors = run_in(&world, &format!("set -e; {setup}"), &[]);
        assert_eq!(errors, "", "{name}");
        let redirection = world.command(&format!("echo mark > '{path}'"));
        for judgement in [world.write(path), redirection] {
            let asks = judgement.verdict == Ask && judgement.why().starts_with("git would read it");
            missed.extend((!asks).then(|| format!("{name}: {judgement:?}")));
        }
        // The protection is for this file, not for the workspace.
        for other in ["notes.txt", "new/shared", "src/config", "config"] {
            assert_eq!(world.write(other).verdict, Allow, "{name}: {other}");
        }
        // It is needed: git runs a program because of this file.
        assert!(leaves_mark(&world, git).is_err(), "{name}: git runs it before the write");
        write(&world.root, path, if text.is_empty() { MARK } else { text });
        leaves_mark(&world, git).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The files of a git directory, of which git needs the last three.
const MEMBERS: [(&str, &str); 4] = [
    ("config", "[core]\nrepositoryformatversion = 0\nfsmonitor = mark; false\nworktree = ..\n"),
    ("HEAD", "ref: refs/heads/main\n"),
    ("objects/a", ""),
    ("refs/a", ""),
];

#[test]
fn m_g4_a_git_directory_is_not_created_without_an_ask_in_any_order() {
    let git = "git -C sub/x status";
    for order in 0..24_usize {
        let mut rest = MEMBERS.to_vec();
        let members = [order / 6, order / 2 % 3, order % 2, 0].map(|at| rest.remove(at));
        let world = edits();
        for (name, text) in members {
            let path = format!("sub/x/{name}");
            if world.write(&path).verdict == Allow {
                write(&world.root, &path, text);
            }
        }
        assert!(leaves_mark(&world, git).is_err(), "{members:?}");
        for (name, text) in MEMBERS {
            write(&world.root, &format!("sub/x/{name}"), text);
        }
        leaves_mark(&world, git).unwrap();
    }
}

/// A `.git` of the user's that leads to a folder without the members of a git directory.
#[test]
fn m_g4_a_folder_that_git_is_led_to_asks_before_it_is_complete() {
    for setup in [
        "echo 'gitdir: data' > .git",
        "printf 'gitdir: ./sub/../data\\r\\n' > .git",
        "echo \"gitdir: $PWD/data\" > .git",
        "ln -s data .git",
        "git init -q .; echo ../data > .git/commondir",
        "git init -q .; mkdir a; ln -s ../data a/link; echo ../a/link > .git/commondir",
    ] {
        let world = edits();
        assert_eq!(run_in(&world, setup, &[]), "", "{setup}");
        for path in ["data/config", "data/hooks/a", "data/new"] {
            assert_eq!(world.write(path).verdict, Ask, "{setup}: {path}");
        }
        assert_eq!(world.write("dat/config").verdict, Allow, "{setup}");
    }
}

#[test]
fn m_g4_ordinary_repositories_do_not_ask() {
    let world = edits();
    let setup = "set -e; git init -q .; git config remote.origin.url ../origin
        git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
        git config branch.src.remote docs; git config branch.src.merge refs/heads/src
        git config user.name 'src test'; git config core.editor 'code --wait'
        git config core.hooksPath /dev/null; git config alias.l 'log --oneline'
        git config --global core.excludesFile '~/ignore'; git init -q sub; echo HEAD > sub/HEAD";
    assert_eq!(run_in(&world, setup, &[]), "");
    for path in ["src/a", "docs/a", "code/a", "heads/a", "refs/a", "objects/a", "sub/a", "HEAD.md"]
    {
        assert_eq!(world.write(path).verdict, Allow, "{path}");
    }
    // The workspace is a work tree below a bare repository.
    let mut world = edits();
    let setup = "set -e; git init -q --bare .; git worktree add -q --orphan main
        mkdir -p main/src";
    assert_eq!(run_in(&world, setup, &[]), "");
    world.root.push("main");
    assert_eq!(world.write("src/a").verdict, Allow);
    assert_eq!(world.write("../config").verdict, Ask);
}

#[test]
fn m_g4_a_hostile_configuration_neither_blocks_nor_hides_a_file() {
    let fifo = |path: &Path| mkfifoat(CWD, path, Mode::from_raw_mode(0o600)).unwrap();
    // Pipes that nobody writes to.
    let world = edits();
    fifo(&world.root.join(".git"));
    assert_eq!(world.write("src/a").verdict, Allow);
    let world = edits();
    fs::create_dir(world.root.join(".git")).unwrap();
    for name in [".git/config", ".git/commondir", "HEAD", "src"] {
        fifo(&world.root.join(name));
    }
    assert_eq!(world.write("a/b").verdict, Allow);
    // A link that leads to itself, and a device.
    let world = edits();
    symlink(".git", world.root.join(".git")).unwrap();
    assert_eq!(world.write("src/a").verdict, Allow);
    let world = edits();
    run_in(&world, "mkdir .git; ln -s /dev/zero .git/config; ln -s /dev/zero HEAD", &[]);
    assert_eq!(world.write("a").verdict, Ask);
    // Too much text, names or includes: any file may be meant.
    let many = |count: usize, name: &str| -> String {
        (0..count).map(|at| format!("[a]\nb = {name}{at}\n")).collect()
    };
    for config in [
        " ".repeat(1 << 20),
        many(30_000, "a"),
        many(60_000, "x/y"),
        "[include]\npath = config\n".to_owned(),
        "[include]\npath = config\n".repeat(20_000),
    ] {
        let world = edits();
        write(&world.root, ".git/config", &config);
        let judgement = world.write("src/a");
        assert_eq!(judgement.verdict, Ask);
        assert!(judgement.why().contains("too many files"), "{}", judgement.why());
        let many: String = (0..8_000).map(|at| format!("echo > a{at};")).collect();
        assert_eq!(world.verdict(&many), Ask);
    }
    let world = edits();
    write(&world.root, ".git/config", &many(15_000, "branch"));
    let judgement = world.write("src/a");
    assert_eq!(judgement.verdict, Ask, "each name is tried in two folders");
    write(&world.root, ".git/config", &many(5_000, "branch"));
    assert_eq!(world.write("src/a").verdict, Allow);
    assert_eq!(world.write("branch77").verdict, Ask);
}

/// Prepares a repository with three commits, a bare one, hooks, and a submodule.
const REPOSITORY: &str = "set -e; git init -q .; git add notes.txt; git commit -q -m a
    git init -q --bare x; git push -q x HEAD
    git -c protocol.file.allow=always submodule --quiet add \"$PWD/x\" module
    git commit -q -m b; git commit -q --allow-empty -m c; mkdir -p tpl/hooks
    cp ~/bin/mark tpl/hooks/post-checkout; cp ~/bin/mark tpl/hooks/pre-commit
    git clone -q x sub";

/// Subcommands of git, harmless arguments, and arguments that run `mark`, in one or two
/// commands.
const OPTIONS: &[(&str, &str, &[&str])] = &[
    ("archive", "HEAD", &["--remote=. --exec=mark HEAD", "--remote . --exec mark HEAD"]),
    ("cat-file", "-p HEAD:notes.txt", &["--textconv HEAD:notes.txt", "--filters HEAD:notes.txt"]),
    (
        "clone",
        "-q x a",
        &[
            "-u mark --no-local . b",
            "-qumark --no-local . c",
            "--no-local --upload-pack=mark . d",
            "--no-local . e --upload mark",
            "--template=tpl x f",
            "--temp tpl x g",
            "-c core.hooksPath=\"$PWD/tpl/hooks\" x h",
            "--config=core.hooksPath=\"$PWD/tpl/hooks\" x i",
        ],
    ),
    ("fetch", "-q x", &["--upload-pack=mark x", "--upload-pack mark x", "x --upl=mark"]),
    ("fetch-pack", "x HEAD", &["--exec=mark x HEAD", "--upload-pack=mark x HEAD"]),
    (
        "grep",
        "notes",
        &["-Omark notes", "-nOmark notes", "--open-files-in-pager=mark notes", "--open=mark notes"],
    ),
    (
        "init",
        "-q n",
        &["-q --template=tpl o; git -C o commit -m a", "-q --templ tpl p; git -C p commit -m a"],
    ),
    ("log", "-p", &["-p --ext-diff", "--ext-diff -p"]),
    ("show", "HEAD~2", &["--ext-diff HEAD~2", "HEAD~2 --ext-diff"]),
    ("ls-remote", "x", &["--upload-pack=mark x", "--exec=mark x", "--upload mark x"]),
    ("pull", "-q x", &["--upload-pack=mark x", "-q x --upl mark"]),
    (
        "push",
        "-q x HEAD",
        &["--receive-pack=mark x HEAD", "--exec=mark x HEAD", "x HEAD --rece mark"],
    ),
    (
        "rebase",
        "-q HEAD~1",
        &["-x mark HEAD~1", "-xmark HEAD~1", "-fxmark HEAD~1", "--exec=mark HEAD~1"],
    ),
    ("bisect", "start", &["start HEAD HEAD~2; git bisect run mark"]),
    ("submodule", "status", &["foreach mark", "--quiet foreach --recursive mark"]),
];

#[test]
fn m_g4_an_option_of_git_that_runs_a_program_asks_despite_a_rule_for_the_subcommand() {
    let mut missed = Vec::new();
    for (subcommand, plain, options) in OPTIONS {
        let rule = format!("shell(git {subcommand} *)");
        let inside = format!("shell(git -C * {subcommand} *)");
        let allow = &[&rule, &inside, "shell(git -C * commit *)", "shell(mark)"];
        let world = world(&RuleText { allow, ..RuleText::default() });
        assert_eq!(run_in(&world, REPOSITORY, &[]), "");
        let configure = match *subcommand {
            "log" | "show" => "git config diff.external mark",
            "cat-file" => {
                "git config diff.d.textconv mark; git config filter.f.smudge mark
                echo '* diff=d filter=f' > .git/info/attributes"
            }
            _ => "",
        };
        assert_eq!(run_in(&world, configure, &[]), "");
        let plain = format!("git {subcommand} {plain}");
        assert_eq!(world.verdict(&plain), Allow, "{plain}");
        let ran = leaves_mark(&world, &plain);
        assert!(ran.is_err(), "{plain} runs a program without the option");
        for options in *options {
            let command = format!("git {subcommand} {options}");
            let ran = leaves_mark(&world, &command);
            missed.extend(ran.err().map(|errors| format!("{command} runs nothing: {errors}")));
            let elsewhere =
                command.replace(&format!("git {subcommand}"), &format!("git -C . {subcommand}"));
            for command in [command, elsewhere] {
                missed.extend((world.verdict(&command) != Ask).then_some(command));
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn m_g4_a_word_that_may_be_such_an_option_asks() {
    let allow = &[
        "shell(git fetch *)",
        "shell(git log *)",
        "shell(git bisect *)",
        "shell(git --no-pager * log *)",
    ];
    let world = world(&RuleText { allow, ..RuleText::default() });
    for command in [
        "git fetch $x",
        "git fetch \"$x\"",
        "git fetch origin -- $x",
        "git bisect $x",
        "ls | xargs git fetch",
        "git --no-pager --exec-path=x log",
        "git --no-pager --config-env=a=b log",
        "git --no-pager --paginate log",
    ] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    for command in ["git log $x", "git fetch origin -- x", "git --no-pager --bare log -c -p"] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
}

#[test]
fn m_g4_a_rule_that_frees_the_program_of_an_option_is_refused() {
    let problem = |rule: &str| {
        RuleText { allow: &[rule], ..RuleText::default() }.policy(None).err().map(|it| it.problem)
    };
    for rule in [
        "shell(git rebase -x *)",
        "shell(git rebase --exec *)",
        "shell(git rebase --exec=* main)",
        "shell(git -c * log)",
        "shell(git bisect run *)",
        "shell(git submodule foreach *)",
        "shell(git config *)",
        "shell(git config --get *)",
        "shell(git -C x difftool *)",
        "shell(git --new-option difftool *)",
        "shell(git-difftool *)",
        "shell(git-fetch --upload-pack *)",
        "shell(rg --pre *)",
    ] {
        let problem = problem(rule).unwrap_or_else(|| panic!("{rule} is accepted"));
        assert!(problem.contains("write the whole command"), "{rule}: {problem}");
    }
    // The program that the option runs needs a rule of its own, as any wrapped program.
    let allow = &[
        "shell(git rebase -x tool main)",
        "shell(git rebase --exec=tool *)",
        "shell(git -c core.pager=cat log *)",
        "shell(git bisect run tool *)",
        "shell(git config --get user.name)",
        "shell(git-fetch origin *)",
        "shell(tool)",
    ];
    let world = world(&RuleText { allow, ..RuleText::default() });
    for command in [
        "git rebase -x tool main",
        "git rebase --exec=tool main",
        "git -c core.pager=cat log -5",
        "git bisect run tool test",
        "git config --get user.name",
        "git-fetch origin main",
    ] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
    for command in [
        "git rebase -x tool other",
        "git rebase -x curl main",
        "git rebase --exec=tool main -x tool",
        "git rebase --exec=tool $x",
        "git bisect run curl",
        "git config --get user.email",
        "git-fetch origin --upload-pack=tool",
    ] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
}

#[test]
fn m_g4_a_denied_program_is_found_behind_an_option_of_git() {
    let deny = &["shell(curl)"];
    let world = world(&RuleText { mode: PolicyMode::All, deny, ..RuleText::default() });
    for command in [
        "git fetch --upload-pack=curl",
        "git fetch --upload-pack='x; curl a' .",
        "git -C a -c b=c fetch --upl curl",
        "git rebase -x 'curl a' main",
        "git rebase '-xcurl a' main",
        "git bisect run curl a",
        "git submodule foreach 'curl a'",
        "git grep -Ocurl a",
        "git-push --exec=curl a",
        "git config core.pager curl",
        "logsave a curl b",
    ] {
        assert_eq!(world.verdict(command), Verdict::Deny, "{command}");
    }
    for command in [
        "git -c core.pager=curl log",
        "git push \"$x\"",
        "git push $x curl",
        "git --unknown rebase -x $x",
        "go vet -vettool=./x",
        "kubectl --kubeconfig x get pods",
    ] {
        assert_eq!(world.verdict(command), Ask, "{command}");
    }
    for command in ["git log curl", "git log $x", "git commit -m \"$x\"", "git push origin curl"] {
        assert_eq!(world.verdict(command), Allow, "{command}");
    }
}

#[test]
fn m_g4_options_of_other_programs_that_run_a_program_ask() {
    for (rule, plain, runs) in [
        ("cargo test *", "cargo test $x", "cargo test --config build.rustc-wrapper='\"x\"'"),
        ("ctags", "ctags -R", "ctags --options=x -R"),
        ("eslint", "eslint $x", "eslint --rulesdir x"),
        ("go build *", "go build -v ./...", "go build -toolexec=x"),
        ("go vet *", "go vet ./...", "go vet --vettool x"),
        ("go vet *", "go vet x", "go vet $x"),
        ("kubectl get *", "kubectl get pods", "kubectl get pods --kubeconfig=x"),
        ("make test *", "make test -j2", "make test --eval=x"),
        ("npm run *", "npm run a $x", "npm run a --node-options=x"),
        ("patch", "patch -p1", "patch -p1e"),
        ("sdiff", "sdiff a b", "sdiff -so c a b"),
        ("ssh-keygen", "ssh-keygen -l", "ssh-keygen -D x"),
    ] {
        let rule = format!("shell({rule})");
        let world = world(&RuleText { allow: &[&rule], ..RuleText::default() });
        assert_eq!(world.verdict(plain), Allow, "{plain}");
        assert_eq!(world.verdict(runs), Ask, "{runs}");
    }
}

/// With work for each pair of words, a command of this size would take minutes.
#[test]
fn m_g4_a_command_with_very_many_options_is_judged_at_once() {
    let world = world(&RuleText { deny: &["shell(curl)"], ..RuleText::default() });
    for (command, word) in [
        ("git fetch", "--upload "),
        ("git rebase", "-x "),
        ("git submodule", "foreach "),
        ("git", "-c "),
        ("git submodule foreach", "git bisect run "),
    ] {
        let words = word.repeat(120_000 / word.len());
        let judgement = world.command(&format!("{command} {words}"));
        assert_eq!(judgement.verdict, Ask, "{command} {word}");
        assert!(judgement.parts.len() < 1_000, "{} parts", judgement.parts.len());
    }
}
