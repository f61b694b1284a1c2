//! Names: links, renaming, directories and what is in them.

use super::{at, contents, error, home, open, status};
use core::ffi::CStr;
use kit::check::{Must, Outcome};
use kit::uapi::fs::{DT_DIR, DT_LNK, DT_REG, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use kit::uapi::open::{
    AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_PATH, O_RDONLY, O_RDWR,
    O_WRONLY, RENAME_EXCHANGE, RENAME_NOREPLACE, SEEK_SET,
};
use kit::uapi::{Stat, nr};
use kit::{attempt, call, ensure, equal, fails, file};
use rt::io;
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("names/unlinked-lives-while-open", unlinked),
    Test::new("names/hard-links", hard_links),
    Test::new("names/symbolic-links", symbolic_links),
    Test::new("names/rename", rename),
    Test::new("names/directories", directories),
    Test::new("names/listing", listing),
    Test::new("names/relative-to-descriptors", relative),
    Test::new("names/working-directory", working_directory),
    Test::new("names/names-too-long", long_names),
];

fn unlinked() -> Outcome {
    home()?;
    let file = open(c"f", O_RDWR | O_CREAT).must("open")?;
    io::write_all(file, b"still here").must("write")?;
    equal!(at(nr::UNLINKAT, c"f", 0), 0, "unlink");
    fails!(at(nr::UNLINKAT, c"f", 0), ENOENT, "unlink again");
    let mut bytes = [0; 10];
    equal!(call!(nr::PREAD64, file, bytes.as_mut_ptr(), 10, 0), 10, "pread");
    ensure!(&bytes == b"still here", "the bytes");
    let mut stat = Stat::default();
    equal!(call!(nr::FSTAT, file, &raw mut stat), 0, "fstat");
    equal!(stat.st_nlink, 0, "links");
    file::write(c"f", 0o644, b"another").must("write")?;
    ensure!(status(c"f", 0).must("stat")?.st_ino != stat.st_ino, "a new file of the name");
    Ok(())
}

fn link(from: &CStr, to: &CStr) -> isize {
    call!(nr::LINKAT, AT_FDCWD, from.as_ptr(), AT_FDCWD, to.as_ptr(), 0)
}

fn hard_links() -> Outcome {
    home()?;
    file::write(c"a", 0o644, b"one").must("write")?;
    equal!(link(c"a", c"b"), 0, "link");
    let (a, b) = (status(c"a", 0).must("stat")?, status(c"b", 0).must("stat")?);
    equal!((a.st_ino, a.st_nlink, b.st_nlink), (b.st_ino, 2, 2), "one file");
    file::write(c"b", 0o644, b"two").must("write")?;
    contents(c"a", b"two")?;
    equal!(at(nr::UNLINKAT, c"a", 0), 0, "unlink");
    contents(c"b", b"two")?;
    equal!(status(c"b", 0).must("stat")?.st_nlink, 1, "links");
    fails!(link(c"b", c"b"), EEXIST, "link to itself");
    fails!(link(c"no", c"c"), ENOENT, "link to nothing");
    fails!(link(c".", c"c"), EPERM, "link to a directory");
    Ok(())
}

fn symlink(target: &CStr, name: &CStr) -> isize {
    call!(nr::SYMLINKAT, target.as_ptr(), AT_FDCWD, name.as_ptr())
}

fn symbolic_links() -> Outcome {
    home()?;
    file::write(c"f", 0o644, b"target").must("write")?;
    equal!(symlink(c"f", c"l"), 0, "symlink");
    contents(c"l", b"target")?;
    let own = status(c"l", AT_SYMLINK_NOFOLLOW).must("lstat")?;
    equal!((own.st_mode & S_IFMT, own.st_size), (S_IFLNK, 1), "lstat");
    equal!(status(c"l", 0).must("stat")?.st_mode & S_IFMT, S_IFREG, "stat");
    let mut name = [9_u8; 8];
    equal!(call!(nr::READLINKAT, AT_FDCWD, c"l".as_ptr(), name.as_mut_ptr(), 8), 1, "readlink");
    equal!(name[..2], [b'f', 9], "the target, without an end");
    fails!(call!(nr::READLINKAT, AT_FDCWD, c"f".as_ptr(), name.as_mut_ptr(), 8), EINVAL, "readlink of a file");
    fails!(error(open(c"l", O_RDONLY | O_NOFOLLOW)), ELOOP, "open without following");
    equal!(symlink(c"y", c"x"), 0, "symlink");
    equal!(symlink(c"x", c"y"), 0, "symlink");
    fails!(error(open(c"x", O_RDONLY)), ELOOP, "a loop");
    equal!(symlink(c"gone", c"dangling"), 0, "symlink");
    fails!(error(open(c"dangling", O_RDONLY)), ENOENT, "a link to nothing");
    fails!(error(open(c"dangling", O_RDONLY | O_CREAT | O_EXCL)), EEXIST, "an exclusive open through a link");
    open(c"dangling", O_WRONLY | O_CREAT).must("create through a link")?;
    ensure!(status(c"gone", 0).is_ok(), "the target exists now");
    equal!(at(nr::MKDIRAT, c"d", 0o755), 0, "mkdir");
    equal!(symlink(c"d/../f", c"long"), 0, "symlink");
    contents(c"long", b"target")?;
    equal!(at(nr::UNLINKAT, c"l", 0), 0, "unlink of a link");
    contents(c"f", b"target")
}

fn rename_flags(from: &CStr, to: &CStr, flags: u32) -> isize {
    call!(nr::RENAMEAT2, AT_FDCWD, from.as_ptr(), AT_FDCWD, to.as_ptr(), flags)
}

fn rename() -> Outcome {
    home()?;
    let rename = |from, to| rename_flags(from, to, 0);
    file::write(c"a", 0o644, b"a").must("write")?;
    file::write(c"b", 0o644, b"b").must("write")?;
    fails!(rename_flags(c"a", c"b", RENAME_NOREPLACE), EEXIST, "without replacing");
    equal!(rename_flags(c"a", c"b", RENAME_EXCHANGE), 0, "exchange");
    contents(c"a", b"b")?;
    equal!(rename(c"a", c"b"), 0, "replace");
    contents(c"b", b"b")?;
    fails!(rename(c"a", c"c"), ENOENT, "rename of nothing");
    equal!((at(nr::MKDIRAT, c"d", 0o755), at(nr::MKDIRAT, c"e", 0o755)), (0, 0), "mkdir");
    equal!(rename(c"b", c"d/b"), 0, "into a directory");
    fails!(rename(c"d", c"d/x"), EINVAL, "a directory into itself");
    fails!(rename(c"e", c"d"), ENOTEMPTY, "onto a directory that is not empty");
    fails!(rename(c"d/b", c"e"), EISDIR, "a file onto a directory");
    fails!(rename(c"e", c"d/b"), ENOTDIR, "a directory onto a file");
    equal!(rename(c"d", c"e"), 0, "onto an empty directory");
    contents(c"e/b", b"b")?;
    equal!(rename(c"e/b", c"e/b"), 0, "onto itself");
    fails!(rename_flags(c"e", c"f", 64), EINVAL, "flags that are none");
    Ok(())
}

fn directories() -> Outcome {
    home()?;
    equal!(at(nr::MKDIRAT, c"d", 0o777), 0, "mkdir");
    fails!(at(nr::MKDIRAT, c"d", 0o777), EEXIST, "mkdir again");
    equal!(status(c"d", 0).must("stat")?.st_mode, S_IFDIR | 0o755, "the mode, less the mask");
    equal!(status(c"d", 0).must("stat")?.st_nlink, 2, "links of an empty directory");
    equal!(at(nr::MKDIRAT, c"d/e", 0o777), 0, "mkdir within");
    equal!(status(c"d", 0).must("stat")?.st_nlink, 3, "links of one with a directory");
    fails!(at(nr::UNLINKAT, c"d", AT_REMOVEDIR as usize), ENOTEMPTY, "rmdir of one that is not empty");
    fails!(at(nr::UNLINKAT, c"d", 0), EISDIR, "unlink of a directory");
    equal!(at(nr::UNLINKAT, c"d/e", AT_REMOVEDIR as usize), 0, "rmdir");
    file::write(c"f", 0o644, b"").must("write")?;
    fails!(at(nr::UNLINKAT, c"f", AT_REMOVEDIR as usize), ENOTDIR, "rmdir of a file");
    fails!(at(nr::UNLINKAT, c"d/.", AT_REMOVEDIR as usize), EINVAL, "rmdir of a dot");
    equal!(at(nr::UNLINKAT, c"d", AT_REMOVEDIR as usize), 0, "rmdir");
    fails!(at(nr::MKDIRAT, c"no/such", 0o777), ENOENT, "mkdir in nothing");
    fails!(at(nr::MKDIRAT, c"f/d", 0o777), ENOTDIR, "mkdir in a file");
    Ok(())
}

fn listing() -> Outcome {
    home()?;
    let mut name = *b"file-00\0";
    for number in 0..60_u8 {
        (name[5], name[6]) = (b'0' + number / 10, b'0' + number % 10);
        file::write(CStr::from_bytes_with_nul(&name).map_err(|_| "a name")?, 0o644, b"").must("write")?;
    }
    equal!((at(nr::MKDIRAT, c"dir", 0o755), symlink(c"dir", c"link")), (0, 0), "mkdir, symlink");
    let directory = open(c".", O_RDONLY | O_DIRECTORY).must("open")?;
    for _ in 0..2 {
        let (mut files, mut kinds, mut dots) = (0_u64, [0; 3], 0);
        let mut buffer = [0_u8; 300];
        loop {
            let count = attempt!(nr::GETDENTS64, directory, buffer.as_mut_ptr(), buffer.len()).must("getdents64")?;
            if count == 0 {
                break;
            }
            let mut entry = &buffer[..count];
            while !entry.is_empty() {
                let length = usize::from(u16::from_le_bytes([entry[16], entry[17]]));
                ensure!(length % 8 == 0 && length >= 24 && length <= entry.len(), "a record's length");
                let name = CStr::from_bytes_until_nul(&entry[19..length]).map_err(|_| "a name without an end")?;
                match (entry[18], name.to_bytes()) {
                    (DT_REG, [b'f', b'i', b'l', b'e', b'-', tens, ones]) => {
                        files |= 1 << ((tens - b'0') * 10 + ones - b'0');
                        kinds[0] += 1;
                    }
                    (DT_DIR, b"dir") => kinds[1] += 1,
                    (DT_LNK, b"link") => kinds[2] += 1,
                    (DT_DIR, b"." | b"..") => dots += 1,
                    _ => return Err("an entry that should not be there"),
                }
                entry = &entry[length..];
            }
        }
        equal!((files, kinds, dots), ((1 << 60) - 1, [60, 1, 1], 2), "entries");
        equal!(call!(nr::LSEEK, directory, 0, SEEK_SET), 0, "from the beginning");
    }
    let mut small = [0_u8; 16];
    fails!(call!(nr::GETDENTS64, directory, small.as_mut_ptr(), small.len()), EINVAL, "too little room");
    let file = open(c"file-00", O_RDONLY).must("open")?;
    fails!(call!(nr::GETDENTS64, file, small.as_mut_ptr(), small.len()), ENOTDIR, "entries of a file");
    Ok(())
}

fn relative() -> Outcome {
    home()?;
    equal!(at(nr::MKDIRAT, c"d", 0o755), 0, "mkdir");
    let directory = open(c"d", O_RDONLY | O_DIRECTORY).must("open")?;
    let path_only = open(c"d", O_PATH).must("open")?;
    for (descriptor, name) in [(directory, c"x"), (path_only, c"y")] {
        let made = call!(nr::OPENAT, descriptor, name.as_ptr(), O_WRONLY | O_CREAT, 0o644);
        ensure!(made >= 0, "openat");
    }
    ensure!(status(c"d/x", 0).is_ok() && status(c"d/y", 0).is_ok(), "where they are");
    fails!(call!(nr::READ, path_only, 8, 1), EBADF, "read of a path");
    fails!(call!(nr::OPENAT, 77, c"x".as_ptr(), 0, 0), EBADF, "relative to nothing");
    let file = open(c"d/x", O_RDONLY).must("open")?;
    fails!(call!(nr::OPENAT, file, c"x".as_ptr(), 0, 0), ENOTDIR, "relative to a file");
    ensure!(call!(nr::OPENAT, 77, c"/dev/null".as_ptr(), 0, 0) >= 0, "an absolute path needs no descriptor");
    Ok(())
}

fn working_directory() -> Outcome {
    home()?;
    let mut path = [0_u8; 64];
    let length = attempt!(nr::GETCWD, path.as_mut_ptr(), path.len()).must("getcwd")?;
    equal!((length, path[17], path.starts_with(b"/tmp/files-")), (18, 0, true), "getcwd");
    fails!(call!(nr::GETCWD, path.as_mut_ptr(), 4), ERANGE, "too little room");
    equal!(at(nr::MKDIRAT, c"d", 0o755), 0, "mkdir");
    let directory = open(c"d", O_RDONLY).must("open")?;
    equal!(call!(nr::FCHDIR, directory), 0, "fchdir");
    file::write(c"f", 0o644, b"x").must("write")?;
    equal!(call!(nr::CHDIR, c"..".as_ptr()), 0, "chdir");
    contents(c"d/f", b"x")?;
    fails!(call!(nr::CHDIR, c"d/f".as_ptr()), ENOTDIR, "into a file");
    equal!((at(nr::UNLINKAT, c"d/f", 0), call!(nr::CHDIR, c"d".as_ptr())), (0, 0), "into the directory");
    equal!(at(nr::UNLINKAT, c"../d", AT_REMOVEDIR as usize), 0, "which is removed");
    fails!(call!(nr::GETCWD, path.as_mut_ptr(), path.len()), ENOENT, "a directory that is gone");
    fails!(error(open(c"g", O_WRONLY | O_CREAT)), ENOENT, "a file in it");
    Ok(())
}

fn long_names() -> Outcome {
    home()?;
    let mut name = [b'n'; 300];
    name[255] = 0;
    let path = |name: &[u8]| call!(nr::OPENAT, AT_FDCWD, name.as_ptr(), O_WRONLY | O_CREAT, 0o644);
    ensure!(path(&name) >= 0, "a name of 255 bytes");
    (name[255], name[256]) = (b'n', 0);
    fails!(path(&name), ENAMETOOLONG, "a name of 256 bytes");
    let mut long = [b'/'; 5_000];
    long[4_999] = 0;
    fails!(path(&long), ENAMETOOLONG, "a path of 4999 bytes");
    long[4_095] = 0;
    equal!(call!(nr::CHDIR, long.as_ptr()), 0, "a path of 4095 slashes is the root");
    Ok(())
}
