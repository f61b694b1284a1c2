//! Who asks: credentials(7), capabilities(7), and the permission check of inode(7).

use alloc::sync::Arc;
use alloc::vec::Vec;

use uapi::fs::{S_IFDIR, S_IFMT};

/// Numbers of the capabilities that this crate and the layer above look at: capabilities(7).
#[allow(missing_docs)]
pub mod cap {
    pub const CHOWN: u32 = 0;
    pub const DAC_OVERRIDE: u32 = 1;
    pub const DAC_READ_SEARCH: u32 = 2;
    pub const FOWNER: u32 = 3;
    pub const FSETID: u32 = 4;
    pub const KILL: u32 = 5;
    pub const SETGID: u32 = 6;
    pub const SETUID: u32 = 7;
    pub const SETPCAP: u32 = 8;
    pub const SYS_RAWIO: u32 = 17;
    pub const SYS_CHROOT: u32 = 18;
    pub const SYS_PTRACE: u32 = 19;
    pub const SYS_ADMIN: u32 = 21;
    pub const SYS_BOOT: u32 = 22;
    pub const SYS_NICE: u32 = 23;
    pub const SYS_RESOURCE: u32 = 24;
    pub const SYS_TIME: u32 = 25;
    pub const SYS_TTY_CONFIG: u32 = 26;
    pub const MKNOD: u32 = 27;
    /// All 41 capabilities of Linux 6.x.
    pub const ALL: u64 = (1 << 41) - 1;
}

/// The identity of a process. Plain data: the process that owns it shares it by `Arc` and replaces it whole.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Real user.
    pub uid: u32,
    /// Effective user.
    pub euid: u32,
    /// Saved set-user.
    pub suid: u32,
    /// The user that file accesses are checked for; follows `euid`.
    pub fsuid: u32,
    /// Real group.
    pub gid: u32,
    /// Effective group.
    pub egid: u32,
    /// Saved set-group.
    pub sgid: u32,
    /// The group that file accesses are checked for; follows `egid`.
    pub fsgid: u32,
    /// Supplementary groups, sorted.
    pub groups: Arc<Vec<u32>>,
    /// Effective capabilities, bit n for number n.
    pub effective: u64,
    /// Permitted capabilities.
    pub permitted: u64,
    /// Inheritable capabilities.
    pub inheritable: u64,
}

impl Credentials {
    /// The superuser with every capability.
    pub fn root() -> Self {
        Self {
            uid: 0,
            euid: 0,
            suid: 0,
            fsuid: 0,
            gid: 0,
            egid: 0,
            sgid: 0,
            fsgid: 0,
            groups: Arc::new(Vec::new()),
            effective: cap::ALL,
            permitted: cap::ALL,
            inheritable: 0,
        }
    }

    /// An ordinary user of one group, with no capability.
    pub fn user(uid: u32, gid: u32) -> Self {
        Self {
            uid,
            euid: uid,
            suid: uid,
            fsuid: uid,
            gid,
            egid: gid,
            sgid: gid,
            fsgid: gid,
            effective: 0,
            permitted: 0,
            ..Self::root()
        }
    }

    /// True when capability number `cap` is in the effective set.
    #[inline]
    pub fn has(&self, cap: u32) -> bool {
        self.effective >> cap & 1 != 0
    }

    /// True when `gid` is the file system group or a supplementary one.
    pub fn in_group(&self, gid: u32) -> bool {
        self.fsgid == gid || self.groups.binary_search(&gid).is_ok()
    }

    /// The identity that access(2) checks for: the real user and group, with capabilities only if the real user is root.
    pub fn for_access(&self) -> Self {
        let effective = if self.uid == 0 { self.permitted } else { 0 };
        Self { fsuid: self.uid, fsgid: self.gid, effective, ..self.clone() }
    }

    /// Whether the owner-only operations on a file of `uid` are allowed.
    pub fn owns(&self, uid: u32) -> bool {
        self.fsuid == uid || self.has(cap::FOWNER)
    }

    /// Whether a file of `mode` (with its type) owned by `uid:gid` grants all of `want`, a sum of `R_OK` (4),
    /// `W_OK` (2) and `X_OK` (1): the owner's bits, else the group's, else the others', then the capabilities.
    #[inline]
    pub fn permits(&self, mode: u32, uid: u32, gid: u32, want: u32) -> bool {
        let granted = if self.fsuid == uid {
            mode >> 6
        } else if mode >> 3 & 7 != mode & 7 && self.in_group(gid) {
            mode >> 3
        } else {
            mode
        };
        granted & want == want || self.overrides(mode, want)
    }

    /// The superuser's exceptions: anything on a directory, read and write on a file, execute if anyone may.
    fn overrides(&self, mode: u32, want: u32) -> bool {
        let dir = mode & S_IFMT == S_IFDIR;
        if self.has(cap::DAC_OVERRIDE) && (want & 1 == 0 || dir || mode & 0o111 != 0) {
            return true;
        }
        self.has(cap::DAC_READ_SEARCH) && (want == 4 || dir && want & 2 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_group_other_and_root() {
        let me = Credentials { groups: Arc::new(std::vec![20, 30]), ..Credentials::user(1000, 10) };
        assert!(me.permits(0o100600, 1000, 0, 6));
        assert!(!me.permits(0o100077, 1000, 0, 4), "the owner's bits decide for the owner");
        assert!(me.permits(0o100040, 0, 20, 4));
        assert!(!me.permits(0o100004, 0, 30, 4), "the group's bits decide for the group");
        assert!(me.permits(0o100004, 0, 40, 4));
        let root = Credentials::root();
        assert!(root.permits(0o100000, 1, 1, 6));
        assert!(!root.permits(0o100666, 1, 1, 1), "root executes only what somebody may execute");
        assert!(root.permits(0o040000, 1, 1, 7));
        assert!(!Credentials { uid: 5, ..root }.for_access().permits(0o100000, 1, 1, 4));
    }
}
