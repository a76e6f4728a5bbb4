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

/// The same number everywhere.
const FCHMODAT2: c_long = 452;

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
    // What they are asked for lies in memory, where no filter looks; without them programs fall back to `clone` and `openat`.
    let unseen = BTreeMap::from([(libc::SYS_clone3, vec![]), (libc::SYS_openat2, vec![])]);
    seccompiler::apply_filter(&program(unseen, libc::ENOSYS)?)?;
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
    refused.extend(privileged_files()?);
    #[cfg(target_arch = "x86_64")]
    for (call, rules) in refused.clone() {
        refused.insert(call | X32, rules);
    }
    Ok(refused)
}

/// Files that run with the rights of their owner or group: whoever runs one later would run what the command wrote.
fn privileged_files() -> Result<BTreeMap<c_long, Vec<Rule>>, BackendError> {
    // The call, which of its arguments is the mode, and which says whether the mode counts.
    let calls: &[(c_long, u8, Option<u8>)] = &[
        (libc::SYS_fchmod, 1, None),
        (libc::SYS_fchmodat, 2, None),
        (FCHMODAT2, 2, None),
        (libc::SYS_mknodat, 2, None),
        (libc::SYS_openat, 3, Some(2)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1, None),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, 1, None),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1, None),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, 2, Some(1)),
    ];
    let mut refused = BTreeMap::new();
    for &(call, mode, flags) in calls {
        let mut rules = Vec::new();
        for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
            let has_bit = Condition::new(mode, Len::Dword, Op::MaskedEq(bit), bit)?;
            match flags {
                None => rules.push(Rule::new(vec![has_bit])?),
                Some(flags) => {
                    // The bit of `O_TMPFILE` that it does not share with `O_DIRECTORY`.
                    for makes in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY].map(|flag| flag as u64) {
                        let makes = Condition::new(flags, Len::Dword, Op::MaskedEq(makes), makes)?;
                        rules.push(Rule::new(vec![has_bit.clone(), makes])?);
                    }
                }
            }
        }
        refused.insert(call, rules);
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
