//! The restrictions of a process and every program that it starts.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use super::confinement::Confinement;

/// The oldest version of Landlock that is used. Older ones let files outside be truncated.
const MIN_ABI: ABI = ABI::V3;

/// The newest version of Landlock that is used: with scopes for signals and abstract sockets.
const MAX_ABI: ABI = ABI::V6;

/// Operations on a terminal that type into it.
const TYPING: [u64; 2] = [libc::TIOCSTI, 0x541c /* TIOCLINUX */];

/// Calls that read or change the keys of the user in the kernel.
const KEY_CALLS: [i64; 3] = [libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key];

const IP: i32 = libc::AF_INET;
const IP6: i32 = libc::AF_INET6;
const NETLINK: i32 = libc::AF_NETLINK;

/// The bit in the numbers of system calls with 32-bit pointers on x86-64 (x32), which reach the
/// same functions.
const X32_BIT: i64 = 0x4000_0000;

/// `ioctl` has another number there.
const X32_IOCTL: i64 = X32_BIT | 514;

/// Restrictions that are ready to be applied.
pub(crate) struct Restrictions {
    /// For the level `landlock`.
    files: Option<RulesetCreated>,
    refused_calls: BpfProgram,
}

impl Restrictions {
    /// Prepares the restrictions; `None` if there are none. Programs that this process starts from
    /// now on inherit no other open files than those that are opened from now on.
    ///
    /// # Errors
    /// The kernel does not support the restrictions.
    pub(crate) fn new(confinement: &Confinement) -> Result<Option<Self>, Box<dyn Error>> {
        let mut refused = BTreeMap::new();
        for operation in TYPING {
            let types = Some((1, SeccompCmpOp::Eq, operation));
            refuse(&mut refused, libc::SYS_ioctl, types.clone())?;
            refuse(&mut refused, X32_IOCTL, types)?;
        }
        for call in KEY_CALLS {
            refuse(&mut refused, call, None)?;
        }
        let files = match confinement {
            Confinement::None => return Ok(None),
            Confinement::Bwrap { .. } => {
                refuse_sockets(&mut refused, &[libc::AF_UNIX, IP, IP6, NETLINK])?;
                None
            }
            Confinement::Landlock { readable, writable, network } => {
                let families: &[i32] = if *network { &[IP, IP6, NETLINK] } else { &[NETLINK] };
                refuse_sockets(&mut refused, families)?;
                refuse_reaching_out(&mut refused)?;
                Some(file_rules(readable, writable)?)
            }
        };
        let filter = SeccompFilter::new(
            refused,
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EPERM.unsigned_abs()),
            std::env::consts::ARCH.try_into()?,
        )?;
        close_inherited_at_exec()?;
        Ok(Some(Self { files, refused_calls: BpfProgram::try_from(filter)? }))
    }

    /// Restricts this process and every program that it starts from now on. It must have one
    /// thread.
    ///
    /// # Errors
    /// The kernel refuses the restrictions.
    pub(crate) fn apply(self) -> Result<(), Box<dyn Error>> {
        if let Some(rules) = self.files {
            drop_capabilities()?;
            rules.restrict_self()?;
        }
        apply_filter(&self.refused_calls)?;
        Ok(())
    }
}

/// Lets programs inherit standard input, output and error only. A folder that the user's shell has
/// left open would lead out of the sandbox.
#[allow(unsafe_code, reason = "a call of the kernel")]
pub(crate) fn close_inherited_at_exec() -> std::io::Result<()> {
    // SAFETY: the call only sets flags of descriptors, which stay open in this process.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Drops the capabilities of root that reach beyond files and own processes, such as reading the
/// memory of any process, or loading modules.
fn drop_capabilities() -> rustix::io::Result<()> {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::KILL
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID;
    let sets = capabilities(None)?;
    // Only with this capability can the bounding set be changed; without it, `exec` adds none.
    if sets.effective.contains(CapabilitySet::SETPCAP) {
        for capability in kept.complement().iter() {
            match remove_capability_from_bounding_set(capability) {
                // The kernel has no such capability.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
    }
    let CapabilitySets { effective, permitted, inheritable } = sets;
    set_capabilities(
        None,
        CapabilitySets {
            effective: effective & kept,
            permitted: permitted & kept,
            inheritable: inheritable & kept,
        },
    )
}

/// The rules of Landlock for files, and with a new kernel also for signals and abstract sockets.
fn file_rules(readable: &[PathBuf], writable: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(MIN_ABI))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(MAX_ABI))?
        .scope(Scope::from_all(MAX_ABI))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
        .add_rules(rules_without_links(readable, AccessFs::from_read(MAX_ABI)))?
        .add_rules(rules_without_links(writable, AccessFs::from_all(MAX_ABI)))
}

/// The rules that allow `access` to the paths. A path that is gone or a link in the meantime is
/// left out.
fn rules_without_links(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<PathFd>, RulesetError>> {
    paths.iter().filter_map(|path| open_without_links(path).ok()).filter_map(move |file| {
        let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
        path_beneath_rules([opened], access).next()
    })
}

/// Opens a path to refer to it. Fails if it contains a link: a process in another sandbox may have
/// put it there since the path was resolved.
pub(super) fn open_without_links(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Refuses sockets of all other families. Some are not separated by namespaces, such as those to
/// the host of a virtual machine.
fn refuse_sockets(refused: &mut Refused, families: &[i32]) -> Result<(), Box<dyn Error>> {
    let differs = |family: &i32| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()));
    let rule = SeccompRule::new(families.iter().map(differs).collect::<Result<_, _>>()?)?;
    for call in both_numbers(libc::SYS_socket) {
        refused.entry(call).or_default().push(rule.clone());
    }
    // A socket of a pair of TIPC could reach others.
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    refuse(refused, libc::SYS_socketpair, Some((0, SeccompCmpOp::Ne, unix)))?;
    // `io_uring` makes sockets of any family without these calls.
    refuse(refused, libc::SYS_io_uring_setup, None)
}

/// Refuses the calls that reach other programs in spite of Landlock. A socket of a pair for
/// datagrams can send to the path of any socket, and `prlimit` changes the limits of any process of
/// the user.
fn refuse_reaching_out(refused: &mut Refused) -> Result<(), Box<dyn Error>> {
    // For Unix sockets, the kernel takes "raw" for datagrams.
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let is_kind = (1, SeccompCmpOp::MaskedEq(0xf), u64::from(kind.unsigned_abs()));
        refuse(refused, libc::SYS_socketpair, Some(is_kind))?;
    }
    refuse(refused, libc::SYS_prlimit64, Some((0, SeccompCmpOp::Ne, 0)))
}

/// The rules of refused calls, by their numbers. A call without rules is always refused.
type Refused = BTreeMap<i64, Vec<SeccompRule>>;

/// Refuses a call; with a condition on an argument, only if it holds.
fn refuse(
    refused: &mut Refused,
    call: i64,
    only_if: Option<(u8, SeccompCmpOp, u64)>,
) -> Result<(), Box<dyn Error>> {
    for call in both_numbers(call) {
        let rules = refused.entry(call).or_default();
        if let Some((argument, operator, value)) = only_if.clone() {
            rules.push(SeccompRule::new(vec![condition(argument, operator, value)?])?);
        }
    }
    Ok(())
}

/// A condition on the lower half of an argument, which is the part that the kernel uses.
fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

/// The numbers of a system call.
fn both_numbers(call: i64) -> impl Iterator<Item = i64> {
    let x32 = cfg!(target_arch = "x86_64").then_some(call | X32_BIT);
    [call].into_iter().chain(x32)
}
