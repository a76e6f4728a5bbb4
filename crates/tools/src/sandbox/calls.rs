//! Seccomp: system calls that no command needs and that lead out. Refused with an error, so that programs can say so.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, TargetArch,
};

/// Never allowed: the kernel's own affairs, other processes, other namespaces, and ways around this filter.
const NEVER: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// The same where only this kind of machine has them, and those whose x32 numbers differ.
#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[c_long] = &[
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_kexec_file_load,
    libc::SYS_modify_ldt,
    521 | X32,
    528 | X32,
    539 | X32,
    540 | X32,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[c_long] = &[];

/// A second set of numbers for the same calls.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

const NEW_NAMESPACES: &[c_long] = &[
    libc::CLONE_NEWCGROUP as c_long,
    libc::CLONE_NEWIPC as c_long,
    libc::CLONE_NEWNET as c_long,
    libc::CLONE_NEWNS as c_long,
    libc::CLONE_NEWPID as c_long,
    libc::CLONE_NEWUSER as c_long,
    libc::CLONE_NEWUTS as c_long,
];

/// Makes the refusals hold for this process and all that it starts.
pub(super) fn confine(network: bool) -> Result<(), seccompiler::Error> {
    // Its flags lie in memory, where no filter looks; without it programs fall back to `clone`.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, vec![])]);
    seccompiler::apply_filter(&program(clone3, libc::ENOSYS)?)?;
    seccompiler::apply_filter(&program(refused(network)?, libc::EPERM)?)
}

fn refused(network: bool) -> Result<BTreeMap<c_long, Vec<Rule>>, BackendError> {
    let mut refused: BTreeMap<c_long, Vec<Rule>> = NEVER.iter().chain(NEVER_HERE).map(|call| (*call, vec![])).collect();
    let flags = NEW_NAMESPACES.iter().map(|&flag| masked(0, flag as u64, flag as u64));
    refused.insert(libc::SYS_clone, flags.collect::<Result<_, _>>()?);
    // Only the Internet: sockets of this machine lead to services that do as they are told, such as a container engine.
    let other = |family: i32| Condition::new(0, Len::Dword, Op::Ne, family as u64);
    let sockets = match network {
        true => vec![Rule::new(vec![other(libc::AF_INET)?, other(libc::AF_INET6)?])?],
        false => vec![],
    };
    refused.insert(libc::SYS_socket, sockets);
    // One end of such a pair could be turned to any such service.
    let pairs = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| masked(1, 0xf, kind as u64));
    refused.insert(libc::SYS_socketpair, pairs.into_iter().collect::<Result<_, _>>()?);
    #[cfg(target_arch = "x86_64")]
    for (call, rules) in refused.clone() {
        refused.insert(call | X32, rules);
    }
    Ok(refused)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<Rule, BackendError> {
    Rule::new(vec![Condition::new(argument, Len::Dword, Op::MaskedEq(mask), value)?])
}

fn program(rules: BTreeMap<c_long, Vec<Rule>>, error: i32) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error.unsigned_abs()), arch)?.try_into()
}
