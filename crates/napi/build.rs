//! Build script: tells the linker that Node provides the missing symbols.

fn main() {
    napi_build::setup();
}
