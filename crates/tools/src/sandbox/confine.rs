//! Restricts this process and every program that it starts from now on.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    Scope, path_beneath_rules,
};
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

/// The bit in the numbers of system calls with 32-bit pointers on x86-64 (x32), which reach the
/// same functions.
const X32_BIT: i64 = 0x4000_0000;

/// Restricts this process and every program that it starts from now on. It must have one thread.
///
/// # Errors
/// The kernel does not support the restrictions.
pub(crate) fn confine(confinement: &Confinement) -> Result<(), Box<dyn Error>> {
    let mut refused = BTreeMap::new();
    for operation in TYPING {
        refuse(&mut refused, libc::SYS_ioctl, Some((1, SeccompCmpOp::Eq, operation)))?;
    }
    for call in KEY_CALLS {
        refuse(&mut refused, call, None)?;
    }
    match confinement {
        Confinement::None => return Ok(()),
        Confinement::Bwrap => {}
        Confinement::Landlock { readable, writable, network } => {
            drop_capabilities()?;
            restrict_files(readable, writable)?;
            refuse_sockets(&mut refused, *network)?;
        }
    }
    let filter = SeccompFilter::new(
        refused,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        std::env::consts::ARCH.try_into()?,
    )?;
    apply_filter(&BpfProgram::try_from(filter)?)?;
    Ok(())
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

/// Restricts files by Landlock, and with a new kernel also signals and abstract sockets.
fn restrict_files(readable: &[PathBuf], writable: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(MIN_ABI))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(MAX_ABI))?
        .scope(Scope::from_all(MAX_ABI))?
        .create()?
        // A path that is gone in the meantime is left out.
        .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(readable, AccessFs::from_read(MAX_ABI)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(MAX_ABI)))?;
    rules.restrict_self()?;
    Ok(())
}

/// Refuses all sockets but pairs and, with the network, those of IP. Landlock lets a process connect
/// to the path of any socket. With `io_uring` a process can use sockets without further calls.
fn refuse_sockets(refused: &mut Refused, network: bool) -> Result<(), Box<dyn Error>> {
    let allowed: &[i32] = if network {
        &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
    } else {
        &[libc::AF_NETLINK]
    };
    let conditions =
        allowed.iter().map(|family| condition(0, SeccompCmpOp::Ne, family.unsigned_abs().into()));
    let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
    for call in both_numbers(libc::SYS_socket) {
        refused.entry(call).or_default().push(rule.clone());
    }
    refuse(refused, libc::SYS_io_uring_setup, None)
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
