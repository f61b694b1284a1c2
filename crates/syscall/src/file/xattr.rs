//! Extended attributes: xattr(7). No file has any, so all there is to do is to find the file.

use fs::user_path::with_user_path;
use fs::vfs;
use hal::addr::UserAddr;
use uapi::open::{AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use uapi::{Errno, Result};

use crate::caller::{Me, file};
use crate::table::calls;

calls! {
    fast {
        LISTXATTR = listxattr;
        LLISTXATTR = llistxattr;
        FLISTXATTR = flistxattr;
        GETXATTR = on_path, lacks "attributes: EOPNOTSUPP";
        LGETXATTR = on_link, lacks "attributes: EOPNOTSUPP";
        FGETXATTR = on_file, lacks "attributes: EOPNOTSUPP";
        SETXATTR = on_path, lacks "attributes: EOPNOTSUPP";
        LSETXATTR = on_link, lacks "attributes: EOPNOTSUPP";
        FSETXATTR = on_file, lacks "attributes: EOPNOTSUPP";
        REMOVEXATTR = on_path, lacks "attributes: EOPNOTSUPP";
        LREMOVEXATTR = on_link, lacks "attributes: EOPNOTSUPP";
        FREMOVEXATTR = on_file, lacks "attributes: EOPNOTSUPP";
    }
}

/// Whether the file is there.
fn find(path: UserAddr, flags: u32) -> Result<()> {
    with_user_path(path, |path| vfs::stat(&Me::new().caller(), AT_FDCWD, path, flags)).map(drop)
}

fn listxattr(path: UserAddr) -> Result<usize> {
    find(path, 0).map(|()| 0)
}

fn llistxattr(path: UserAddr) -> Result<usize> {
    find(path, AT_SYMLINK_NOFOLLOW).map(|()| 0)
}

fn flistxattr(fd: i32) -> Result<usize> {
    if file(fd)?.is_path_only() { Err(Errno::EBADF) } else { Ok(0) }
}

fn on_path(path: UserAddr) -> Result<()> {
    find(path, 0).and(Err(Errno::EOPNOTSUPP))
}

fn on_link(path: UserAddr) -> Result<()> {
    find(path, AT_SYMLINK_NOFOLLOW).and(Err(Errno::EOPNOTSUPP))
}

fn on_file(fd: i32) -> Result<()> {
    flistxattr(fd).and(Err(Errno::EOPNOTSUPP))
}
