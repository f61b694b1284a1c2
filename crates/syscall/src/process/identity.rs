//! Who a process is: users, groups and capabilities: credentials(7), capabilities(7).
//!
//! Users and groups follow the same rules with different capabilities, so the rules are functions on a [`Ids`] of four
//! numbers, and a change of users then adjusts the capabilities.

use alloc::sync::Arc;
use alloc::vec::Vec;

use fs::{Credentials, cap};
use hal::addr::UserAddr;
use task::{current, find_process};
use uapi::system::*;
use uapi::{CapData, CapHeader, Errno, Result};
use zerocopy::IntoBytes;

use crate::caller::{credentials, get, need, put};
use crate::table::calls;

calls! {
    fast {
        GETUID = getuid;
        GETEUID = geteuid;
        GETGID = getgid;
        GETEGID = getegid;
        GETRESUID = getresuid;
        GETRESGID = getresgid;
        SETUID = setuid;
        SETGID = setgid;
        SETREUID = setreuid;
        SETREGID = setregid;
        SETRESUID = setresuid;
        SETRESGID = setresgid;
        SETFSUID = setfsuid;
        SETFSGID = setfsgid;
        GETGROUPS = getgroups;
        SETGROUPS = setgroups;
        CAPGET = capget;
        CAPSET = capset;
    }
}

/// No change, in the calls that take several ids.
const SAME: u32 = u32::MAX;
/// Most supplementary groups.
const NGROUPS_MAX: usize = 65536;

/// Real, effective, saved and file system id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ids {
    real: u32,
    effective: u32,
    saved: u32,
    file: u32,
}

impl Ids {
    fn has(&self, id: u32) -> bool {
        [self.real, self.effective, self.saved].contains(&id)
    }

    /// setuid(2): all of them if privileged, else the effective one to the real or saved one.
    fn set(self, id: u32, privileged: bool) -> Result<Self> {
        if id == SAME {
            return Err(Errno::EINVAL);
        }
        if privileged {
            return Ok(Self { real: id, effective: id, saved: id, file: id });
        }
        if id != self.real && id != self.saved {
            return Err(Errno::EPERM);
        }
        Ok(Self { effective: id, file: id, ..self })
    }

    /// setreuid(2).
    fn set_re(self, real: u32, effective: u32, privileged: bool) -> Result<Self> {
        let mut new = self;
        if real != SAME {
            if real != self.real && real != self.effective && !privileged {
                return Err(Errno::EPERM);
            }
            new.real = real;
        }
        if effective != SAME {
            if !self.has(effective) && !privileged {
                return Err(Errno::EPERM);
            }
            new.effective = effective;
        }
        if real != SAME || effective != SAME && effective != self.real {
            new.saved = new.effective;
        }
        new.file = new.effective;
        Ok(new)
    }

    /// setresuid(2).
    fn set_res(self, real: u32, effective: u32, saved: u32, privileged: bool) -> Result<Self> {
        let allowed = |id: u32| id == SAME || privileged || self.has(id);
        if ![real, effective, saved].into_iter().all(allowed) {
            return Err(Errno::EPERM);
        }
        let choose = |new: u32, old: u32| if new == SAME { old } else { new };
        let effective = choose(effective, self.effective);
        Ok(Self { real: choose(real, self.real), effective, saved: choose(saved, self.saved), file: effective })
    }

    /// setfsuid(2): what is not allowed changes nothing.
    fn set_file(self, id: u32, privileged: bool) -> Self {
        let allowed = id != SAME && (privileged || self.has(id) || id == self.file);
        if allowed { Self { file: id, ..self } } else { self }
    }
}

fn users(cred: &Credentials) -> Ids {
    Ids { real: cred.uid, effective: cred.euid, saved: cred.suid, file: cred.fsuid }
}

fn groups(cred: &Credentials) -> Ids {
    Ids { real: cred.gid, effective: cred.egid, saved: cred.sgid, file: cred.fsgid }
}

/// Capabilities that go with the file system user id.
const FILE_CAPS: u64 = 1 << cap::CHOWN
    | 1 << cap::DAC_OVERRIDE
    | 1 << cap::DAC_READ_SEARCH
    | 1 << cap::FOWNER
    | 1 << cap::FSETID
    | 1 << cap::MKNOD;

/// The credentials with new user ids, and the capabilities that a change between root and others brings (capabilities(7), "Effect of user
/// ID changes on capabilities").
fn with_users(cred: &Credentials, ids: Ids) -> Credentials {
    let old = users(cred);
    let mut new = Credentials { uid: ids.real, euid: ids.effective, suid: ids.saved, fsuid: ids.file, ..cred.clone() };
    if old.has(0) && !ids.has(0) {
        (new.permitted, new.effective) = (0, 0);
    }
    match (old.effective == 0, ids.effective == 0) {
        (true, false) => new.effective = 0,
        (false, true) => new.effective = new.permitted,
        _ => match (old.file == 0, ids.file == 0) {
            (true, false) => new.effective &= !FILE_CAPS,
            (false, true) => new.effective |= new.permitted & FILE_CAPS,
            _ => {}
        },
    }
    new
}

fn with_groups(cred: &Credentials, ids: Ids) -> Credentials {
    Credentials { gid: ids.real, egid: ids.effective, sgid: ids.saved, fsgid: ids.file, ..cred.clone() }
}

fn become_(new: Credentials) {
    current().process.set_credentials(Arc::new(new));
}

fn change_users(rule: impl FnOnce(Ids, bool) -> Result<Ids>) -> Result<()> {
    let cred = credentials();
    become_(with_users(&cred, rule(users(&cred), cred.has(cap::SETUID))?));
    Ok(())
}

fn change_groups(rule: impl FnOnce(Ids, bool) -> Result<Ids>) -> Result<()> {
    let cred = credentials();
    become_(with_groups(&cred, rule(groups(&cred), cred.has(cap::SETGID))?));
    Ok(())
}

fn getuid() -> u32 {
    credentials().uid
}

fn geteuid() -> u32 {
    credentials().euid
}

fn getgid() -> u32 {
    credentials().gid
}

fn getegid() -> u32 {
    credentials().egid
}

fn put_three(ids: Ids, to: [UserAddr; 3]) -> Result<()> {
    put(to[0], &ids.real)?;
    put(to[1], &ids.effective)?;
    put(to[2], &ids.saved)
}

fn getresuid(real: UserAddr, effective: UserAddr, saved: UserAddr) -> Result<()> {
    put_three(users(&credentials()), [real, effective, saved])
}

fn getresgid(real: UserAddr, effective: UserAddr, saved: UserAddr) -> Result<()> {
    put_three(groups(&credentials()), [real, effective, saved])
}

fn setuid(id: u32) -> Result<()> {
    change_users(|ids, privileged| ids.set(id, privileged))
}

fn setgid(id: u32) -> Result<()> {
    change_groups(|ids, privileged| ids.set(id, privileged))
}

fn setreuid(real: u32, effective: u32) -> Result<()> {
    change_users(|ids, privileged| ids.set_re(real, effective, privileged))
}

fn setregid(real: u32, effective: u32) -> Result<()> {
    change_groups(|ids, privileged| ids.set_re(real, effective, privileged))
}

fn setresuid(real: u32, effective: u32, saved: u32) -> Result<()> {
    change_users(|ids, privileged| ids.set_res(real, effective, saved, privileged))
}

fn setresgid(real: u32, effective: u32, saved: u32) -> Result<()> {
    change_groups(|ids, privileged| ids.set_res(real, effective, saved, privileged))
}

/// setfsuid(2): gives the old one, whether it changed or not.
fn setfsuid(id: u32) -> Result<u32> {
    let old = credentials().fsuid;
    change_users(|ids, privileged| Ok(ids.set_file(id, privileged)))?;
    Ok(old)
}

fn setfsgid(id: u32) -> Result<u32> {
    let old = credentials().fsgid;
    change_groups(|ids, privileged| Ok(ids.set_file(id, privileged)))?;
    Ok(old)
}

fn getgroups(size: i32, list: UserAddr) -> Result<usize> {
    let cred = credentials();
    let count = cred.groups.len();
    let size = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    if size != 0 {
        if count > size {
            return Err(Errno::EINVAL);
        }
        hal::user::copy_out(list, cred.groups.as_bytes())?;
    }
    Ok(count)
}

fn setgroups(size: i32, list: UserAddr) -> Result<()> {
    need(cap::SETGID)?;
    let size = usize::try_from(size).ok().filter(|&size| size <= NGROUPS_MAX).ok_or(Errno::EINVAL)?;
    let mut groups: Vec<u32> = Vec::new();
    groups.try_reserve_exact(size).map_err(|_| Errno::ENOMEM)?;
    groups.resize(size, 0);
    hal::user::copy_in(groups.as_mut_bytes(), list)?;
    groups.sort_unstable();
    become_(Credentials { groups: Arc::new(groups), ..(*credentials()).clone() });
    Ok(())
}

/// How many [`CapData`] a header's version has. For an unknown one the kernel's own is written back, and `None`.
fn cap_words(header: UserAddr) -> Result<(Option<usize>, CapHeader)> {
    let given: CapHeader = get(header)?;
    match given.version {
        LINUX_CAPABILITY_VERSION_1 => Ok((Some(1), given)),
        LINUX_CAPABILITY_VERSION_2 | LINUX_CAPABILITY_VERSION_3 => Ok((Some(2), given)),
        _ => {
            put(header, &CapHeader { version: LINUX_CAPABILITY_VERSION_3, ..given })?;
            Ok((None, given))
        }
    }
}

fn capget(header: UserAddr, data: UserAddr) -> Result<()> {
    let (words, header) = cap_words(header)?;
    let Some(words) = words else { return if data.is_null() { Ok(()) } else { Err(Errno::EINVAL) } };
    let pid = u32::try_from(header.pid).map_err(|_| Errno::EINVAL)?;
    let cred = match pid {
        0 => credentials(),
        pid => find_process(pid).ok_or(Errno::ESRCH)?.credentials(),
    };
    let word = |at: usize| CapData {
        effective: (cred.effective >> (at * 32)) as u32,
        permitted: (cred.permitted >> (at * 32)) as u32,
        inheritable: (cred.inheritable >> (at * 32)) as u32,
    };
    let all = [word(0), word(1)];
    if data.is_null() {
        return Ok(());
    }
    put(data, all.get(..words).unwrap_or_default())
}

fn capset(header: UserAddr, data: UserAddr) -> Result<()> {
    let (words, header) = cap_words(header)?;
    let words = words.ok_or(Errno::EINVAL)?;
    if header.pid != 0 && header.pid as u32 != current().process.tgid {
        return Err(Errno::EPERM);
    }
    let mut all = [CapData::default(); 2];
    hal::user::copy_in(all.get_mut(..words).unwrap_or_default().as_mut_bytes(), data)?;
    let join = |f: fn(&CapData) -> u32| (u64::from(f(&all[0])) | u64::from(f(&all[1])) << 32) & cap::ALL;
    let (effective, permitted) = (join(|d| d.effective), join(|d| d.permitted));
    let inheritable = join(|d| d.inheritable);
    let old = credentials();
    let grows = permitted & !old.permitted != 0 || effective & !permitted != 0;
    if grows || inheritable & !(old.inheritable | old.permitted) != 0 && !old.has(cap::SETPCAP) {
        return Err(Errno::EPERM);
    }
    become_(Credentials { effective, permitted, inheritable, ..(*old).clone() });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Ids = Ids { real: 10, effective: 20, saved: 30, file: 20 };

    #[test]
    fn an_unprivileged_process_moves_among_its_own_ids() {
        assert_eq!(ME.set(30, false), Ok(Ids { effective: 30, file: 30, ..ME }));
        assert_eq!(ME.set(20, false), Err(Errno::EPERM), "setuid(2) does not look at the effective one");
        assert_eq!(ME.set_re(SAME, 30, false).unwrap(), Ids { effective: 30, saved: 30, file: 30, ..ME });
        assert_eq!(ME.set_re(SAME, 10, false).unwrap(), Ids { effective: 10, file: 10, ..ME });
        assert_eq!(ME.set_re(30, SAME, false), Err(Errno::EPERM));
        assert_eq!(ME.set_res(30, 10, 20, false).unwrap(), Ids { real: 30, effective: 10, saved: 20, file: 10 });
        assert_eq!(ME.set_res(SAME, 40, SAME, false), Err(Errno::EPERM));
        assert_eq!(ME.set_file(40, false), ME);
        assert_eq!(ME.set_file(30, false).file, 30);
        assert_eq!(ME.set(SAME, true), Err(Errno::EINVAL));
    }

    #[test]
    fn leaving_root_leaves_the_capabilities() {
        let root = Credentials::root();
        let nobody = Ids { real: 1, effective: 1, saved: 1, file: 1 };
        let user = with_users(&root, nobody);
        assert_eq!((user.effective, user.permitted), (0, 0));
        let for_a_while = with_users(&root, Ids { real: 0, effective: 1, saved: 0, file: 1 });
        assert_eq!((for_a_while.effective, for_a_while.permitted), (0, cap::ALL));
        let back = with_users(&for_a_while, Ids { real: 0, effective: 0, saved: 0, file: 0 });
        assert_eq!(back.effective, cap::ALL);
        let files_only = with_users(&root, Ids { file: 1, ..users(&root) });
        assert_eq!(files_only.effective, cap::ALL & !FILE_CAPS);
    }
}
