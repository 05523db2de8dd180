# The checks that a developer runs. `just` alone lists them.

_default:
    @just --list --unsorted

# All checks that a change must pass.
check: format lint test doc

# The main job with the built-in defaults: no key, a rehearsed model, real tools, a pause.
demo:
    cargo run --release -p holdpoint -- run --asks approve --cwd "$(mktemp -d)" - < examples/first.rehearsal

# All tests, by nextest where it is installed; `just test-full` runs the long versions.
test *ARGS:
    ./scripts/test {{ARGS}}

test-full *ARGS:
    ./scripts/test --full {{ARGS}}

# The suite with a busy CPU, a slow disk, another user, or all: `just test-stressed [a] [b] [c] [d]`.
test-stressed *ARGS:
    ./scripts/test-stressed {{ARGS}}

# Build and test the Node.js package.
test-node:
    ./scripts/test-node

# The tests of the test plan, row by row (docs/testplan.md): `just testplan [--full] [ROW…]`.
testplan *ARGS:
    ./scripts/testplan {{ARGS}}

# Clients that use every verb at once, while the daemon is stopped and killed.
soak SECONDS="600" SEED="1":
    HOLDPOINT_SOAK_SECONDS={{SECONDS}} HOLDPOINT_SOAK_SEED={{SEED}} cargo test -p holdpoint --test it soak:: -- --nocapture

format:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets --features holdpoint-napi/test-support -- -D warnings

# Type-check and lint the macOS build on this machine.
check-macos:
    ./scripts/check-macos

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Check the licences, bans and sources of the dependencies (needs cargo-deny).
deny:
    cargo deny check bans licenses sources

# Package every crate and build it from its package; `just package --no-verify` does not build.
package *ARGS:
    ./scripts/package {{ARGS}}

# Measure every figure, beside its bound and a floor of the machine (docs/performance.md).
bench: bench-rust bench-node

# The figures of the crates and the program: `just bench-rust [PART_OF_A_NAME…]`.
bench-rust *ARGS:
    cargo bench -p holdpoint --bench figures -- {{ARGS}}

# The figures of the Node.js package, with its release build: `just bench-node [PART_OF_A_NAME…]`.
bench-node *ARGS:
    npm --prefix crates/napi run --silent bench -- {{ARGS}}

# Accept all snapshots; read the difference before you commit it.
snapshots:
    INSTA_UPDATE=always HOLDPOINT_SNAPSHOTS=overwrite TRYCMD=overwrite cargo test --workspace
