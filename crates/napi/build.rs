//! Tells the linker that Node has what is missing.

fn main() {
    napi_build::setup();
}
