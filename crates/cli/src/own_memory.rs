//! The memory of this process, which holds API keys.

/// Keeps other processes of the user from reading this one's memory, environment and descriptors,
/// for example by `/proc/PID/mem` or with a debugger. There are no core files either. Root still
/// can. Programs that this one starts are not affected.
///
/// On other systems than Linux, only core files are prevented, also of the programs that this one
/// starts.
pub(crate) fn protect() {
    // Both calls can fail only where a system call filter refuses them.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    #[cfg(not(target_os = "linux"))]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Core);
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
    }
}
