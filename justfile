# Every check a person runs. `just` alone lists them.

_default:
    @just --list --unsorted

# Everything that has to pass before a change goes in.
check: format lint test doc

# The main job on the built-in defaults: no key, a rehearsed model, real tools, a pause.
demo:
    cargo run --release -p holdpoint -- run --asks approve --cwd "$(mktemp -d)" - < examples/first.rehearsal

# All tests, by nextest where it is installed; `just test-full` runs the long versions.
test *ARGS:
    ./scripts/test {{ARGS}}

test-full *ARGS:
    ./scripts/test --full {{ARGS}}

# The suite on a busy machine, on a slow disk, as another user, or all at once: `just test-stressed [a] [b] [c] [d]`.
test-stressed *ARGS:
    ./scripts/test-stressed {{ARGS}}

# The Node.js package, built and tested.
test-node:
    ./scripts/test-node

# What is promised under attack, fault and load, row by row (docs/testplan.md): `just testplan [--full] [ROW…]`.
testplan *ARGS:
    ./scripts/testplan {{ARGS}}

# People who do everything at once to a daemon that is stopped and killed under them.
soak SECONDS="600" SEED="1":
    HOLDPOINT_SOAK_SECONDS={{SECONDS}} HOLDPOINT_SOAK_SEED={{SEED}} cargo test -p holdpoint --test it soak:: -- --nocapture

format:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets --features holdpoint-napi/test-support -- -D warnings

# What macOS would build, type-checked and linted from here.
check-macos:
    ./scripts/check-macos

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences, bans and sources of what is built in (needs cargo-deny).
deny:
    cargo deny check bans licenses sources

# Every crate as it would be published, built from its package; `just package --no-verify` does not build.
package *ARGS:
    ./scripts/package {{ARGS}}

# Every figure there is, beside its bound and what the machine itself takes (docs/performance.md).
bench: bench-rust bench-node

# Those of the crates and of the program: `just bench-rust [PART_OF_A_NAME…]`.
bench-rust *ARGS:
    cargo bench -p holdpoint --bench figures -- {{ARGS}}

# Those of the Node.js package alone: `just bench-node [PART_OF_A_NAME…]`. What is built is the addon as it is released.
bench-node *ARGS:
    npm --prefix crates/napi run --silent bench -- {{ARGS}}

# Take the snapshots as they are now; look at the difference before you commit it.
snapshots:
    INSTA_UPDATE=always HOLDPOINT_SNAPSHOTS=overwrite TRYCMD=overwrite cargo test --workspace
