//! execve(2): a new program in the place of the old one.
//!
//! Three steps. The file is found and read, scripts and interpreters are resolved. A new address space is built, with
//! the stack as the program will find it. Only when nothing can fail any more does the task crate end the other
//! threads and switch over ([`task::exec::replace_image`]). So a failed execve(2) leaves the caller as it was, where
//! Linux, which tears down first, kills.

mod elf;
mod load;
mod script;
mod stack;
mod strings;
pub(crate) mod vdso;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use fs::user_path::with_user_path;
use fs::{Caller, Credentials, FdTable, File, FsContext, cap, vfs};
use hal::addr::{PAGE_SIZE, UserAddr};
use hal::sync::Once;
use hal::task::UserFrame;
use hal::user::OutBuf;
use mm::{AddressSpace, Layout as Places, Limits};
use task::{current, process_flag};
use uapi::elf::{PF_W, PF_X};
use uapi::fs::{MS_NOSUID, S_ISGID, S_ISUID, S_IXGRP};
use uapi::open::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, O_RDWR};
use uapi::resource::RLIMIT_STACK;
use uapi::system::ADDR_NO_RANDOMIZE;
use uapi::{Errno, Result};
use zerocopy::IntoBytes;

use crate::caller::Me;
use crate::table::{arguments, calls};
use load::Program;
use stack::Aux;
use strings::Strings;

calls! {
    full {
        EXECVE = execve;
        EXECVEAT = execveat;
    }
}

/// Most interpreters that are resolved one after the other.
const INTERPRETERS_MAX: usize = 5;
/// Stack that is mapped beyond what the arguments take; it grows from there.
const STACK_ROOM: usize = 32 * PAGE_SIZE;

fn execve(frame: &mut UserFrame) -> Result<()> {
    let [path, argv, envp, ..] = arguments(frame).map(UserAddr);
    with_user_path(path, |path| from_user(frame, AT_FDCWD, path, argv, envp, 0))
}

fn execveat(frame: &mut UserFrame) -> Result<()> {
    let [dirfd, path, argv, envp, flags, _] = arguments(frame);
    let flags = flags as u32;
    if flags & !(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL);
    }
    let (argv, envp) = (UserAddr(argv), UserAddr(envp));
    with_user_path(UserAddr(path), |path| from_user(frame, dirfd as i32, path, argv, envp, flags))
}

fn from_user(frame: &mut UserFrame, dirfd: i32, path: &[u8], argv: UserAddr, envp: UserAddr, flags: u32) -> Result<()> {
    let me = Me::new();
    let process = &current().process;
    let file = vfs::open_exec(&me.caller(), dirfd, path, flags)?;
    let mut budget = strings::budget(process.limit(RLIMIT_STACK));
    let mut argv = Strings::read(argv, &mut budget)?;
    let envp = Strings::read(envp, &mut budget)?;
    if argv.len() == 0 {
        // A program may rely on having a name; Linux gives it an empty one, too.
        argv.push(b"", &mut budget)?;
    }
    let may_gain = !process.has_flag(process_flag::NO_NEW_PRIVS);
    let name = file_name(dirfd, path)?;
    // A script's interpreter could not open a descriptor that is closed by then.
    let hidden = name.starts_with(b"/dev/fd/") && dirfd != AT_FDCWD && me.fds.cloexec(dirfd).unwrap_or(false);
    let limits = crate::memory::limits(process);
    let random = process.personality.load(Ordering::Relaxed) & ADDR_NO_RANDOMIZE == 0;
    let request = Request { who: me.caller(), name: &name, hidden, argv, envp, budget, may_gain, limits, random };
    let image = request.load(file)?;
    task::exec::replace_image(image, frame)
}

/// What the program is told it was executed as.
fn file_name(dirfd: i32, path: &[u8]) -> Result<Vec<u8>> {
    let mut name = Vec::new();
    name.try_reserve(path.len() + 24).map_err(|_| Errno::ENOMEM)?;
    if dirfd != AT_FDCWD && path.first() != Some(&b'/') {
        name.extend_from_slice(alloc::format!("/dev/fd/{dirfd}").as_bytes());
        if !path.is_empty() {
            name.push(b'/');
        }
    }
    name.extend_from_slice(path);
    Ok(name)
}

/// A program to be loaded.
struct Request<'a> {
    who: Caller<'a>,
    /// The path it was executed by.
    name: &'a [u8],
    /// The path will lead nowhere once the program runs.
    hidden: bool,
    argv: Strings,
    envp: Strings,
    /// What argv and envp may still grow by.
    budget: usize,
    /// Set-id bits count.
    may_gain: bool,
    limits: Limits,
    /// Place everything by chance.
    random: bool,
}

impl Request<'_> {
    /// Resolves scripts from `file` on, builds the address space and gives what replaces the running program.
    fn load(mut self, file: Arc<File>) -> Result<task::exec::Image> {
        let (file, head) = self.resolve(file)?;
        let credentials = self.credentials(&file);
        let program = Program::read(file.clone(), &head)?;
        let interpreter = match program.interpreter()? {
            Some(path) => Some(self.interpreter(&path)?),
            None => None,
        };
        let (mm, frame) = self.build(&program, interpreter.as_ref(), &credentials)?;
        let start = self.name.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
        let name = self.name.get(start..).unwrap_or_default().to_vec();
        Ok(task::exec::Image { mm, frame, name, exe: Some(file), credentials: Some(credentials) })
    }

    /// Follows `#!` lines to a file that is none; gives it and its first bytes.
    fn resolve(&mut self, mut file: Arc<File>) -> Result<(Arc<File>, Vec<u8>)> {
        let mut script_name = self.name.to_vec();
        for _ in 0..=INTERPRETERS_MAX {
            let head = head_of(&file)?;
            if !script::is_script(&head) {
                return Ok((file, head));
            }
            let script = script::parse(&head).ok_or(Errno::ENOEXEC)?;
            if self.hidden {
                return Err(Errno::ENOENT);
            }
            let new = [Some(script.interpreter), script.argument, Some(&script_name)];
            let count = new.iter().flatten().count();
            let mut list: [&[u8]; 3] = [&[]; 3];
            for (slot, text) in list.iter_mut().zip(new.iter().flatten()) {
                *slot = text;
            }
            self.argv.replace_first(list.get(..count).unwrap_or_default(), &mut self.budget)?;
            file = vfs::open_exec(&self.who, AT_FDCWD, script.interpreter, 0)?;
            script_name = script.interpreter.to_vec();
        }
        Err(Errno::ELOOP)
    }

    fn interpreter(&self, path: &[u8]) -> Result<Program> {
        let file = vfs::open_exec(&self.who, AT_FDCWD, path, 0)?;
        let head = head_of(&file)?;
        let program = Program::read(file, &head);
        // elf(5): a library that cannot be loaded, not a program.
        program.map_err(|error| if error == Errno::ENOEXEC { Errno::ELIBBAD } else { error })
    }

    /// Who the program runs as: execve(2), capabilities(7).
    fn credentials(&self, file: &File) -> Credentials {
        let mut cred = self.who.cred.clone();
        let mode = file.inode().mode();
        let nosuid = file.path().is_none_or(|path| path.mount.flags() & MS_NOSUID != 0);
        if self.may_gain && !nosuid {
            if mode & S_ISUID != 0 {
                cred.euid = file.inode().uid();
            }
            if mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP {
                cred.egid = file.inode().gid();
            }
        }
        (cred.suid, cred.fsuid) = (cred.euid, cred.euid);
        (cred.sgid, cred.fsgid) = (cred.egid, cred.egid);
        cred.permitted = if cred.euid == 0 || cred.uid == 0 { cap::ALL } else { 0 };
        cred.effective = if cred.euid == 0 { cred.permitted } else { 0 };
        cred
    }

    fn build(
        &self,
        program: &Program,
        interpreter: Option<&Program>,
        cred: &Credentials,
    ) -> Result<(Arc<AddressSpace>, UserFrame)> {
        let mut random = [0u64; 4];
        fs::random::fill(random.as_mut_bytes());
        let [a, b, canary @ ..] = random;
        // Each place takes less than 32 bits, the last two of a word do not overlap.
        let random = self.random.then_some([a, a >> 32, b, b >> 32]);
        let places = Places::new(random, self.limits.stack);
        let padding = random.map_or(0, |_| b >> 48);
        let mm = AddressSpace::new(places, self.limits)?;

        let bias = program.bias_at(places.dyn_base)?;
        program.map(&mm, bias)?;
        let image = &program.image;
        mm.set_brk(bias.wrapping_add(image.high));
        let (mut pc, mut base) = (bias.wrapping_add(image.entry), 0);
        if let Some(interpreter) = interpreter {
            base = interpreter.bias_anywhere(&mm)?;
            interpreter.map(&mm, base)?;
            pc = base.wrapping_add(interpreter.image.entry);
        }
        let vdso = vdso::map(&mm)?;

        let aux = Aux {
            vdso,
            hwcap: hwcap(),
            phdr: image.phdr.map_or(0, |at| bias.wrapping_add(at)),
            phnum: image.phnum,
            base,
            entry: bias.wrapping_add(image.entry),
            ids: [cred.uid, cred.euid, cred.gid, cred.egid],
            secure: cred.euid != cred.uid || cred.egid != cred.gid,
        };
        let padding = padding as usize % PAGE_SIZE;
        let top = places.stack_top;
        let layout = stack::Layout::new(top, self.limits.stack, padding, &self.argv, &self.envp, self.name, &aux)?;
        mm.map_stack(top - layout.sp + STACK_ROOM, image.exec_stack)?;
        for (at, bytes) in [
            (layout.execfn, self.name),
            (layout.environment, self.envp.bytes()),
            (layout.arguments, self.argv.bytes()),
            (layout.random, canary.as_bytes()),
            (layout.sp, layout.words.as_bytes()),
        ] {
            if mm.write_remote(at, bytes) < bytes.len() {
                return Err(Errno::ENOMEM);
            }
        }
        let words = layout.words.len() * size_of::<u64>();
        mm.set_program(mm::Program {
            arguments: (layout.arguments, layout.arguments + self.argv.bytes().len()),
            environment: (layout.environment, layout.environment + self.envp.bytes().len()),
            auxv: (layout.sp + words - aux.size(), layout.sp + words),
            code: image.extent(bias, PF_X),
            data: image.extent(bias, PF_W),
            stack: layout.sp,
            vdso,
        });
        Ok((mm, UserFrame::start(pc, layout.sp)))
    }
}

/// The first bytes of a file. `ENOEXEC` for an empty one.
fn head_of(file: &File) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    head.try_reserve_exact(script::HEAD).map_err(|_| Errno::ENOMEM)?;
    head.resize(script::HEAD, 0);
    let len = file.read_at(0, &mut OutBuf::Kernel(&mut head))?;
    if len == 0 {
        return Err(Errno::ENOEXEC);
    }
    head.truncate(len);
    Ok(head)
}

/// `AT_HWCAP`: what all harts have; the same at every exec.
fn hwcap() -> u64 {
    static HWCAP: Once<u64> = Once::new();
    match HWCAP.get() {
        Some(&hwcap) => hwcap,
        None => {
            let hwcap = hal::boot::info().common_isa().hwcap();
            // Whoever comes second has computed the same.
            let _ = HWCAP.set(hwcap);
            hwcap
        }
    }
}

/// Makes the first process, which executes `path` with standard input, output and error on `/dev/console`. The caller
/// then goes idle. Once at boot. Errors are those of execve(2).
pub fn spawn_init(fs: FsContext, path: &[u8], argv: &[&[u8]], envp: &[&[u8]]) -> Result<()> {
    let (cred, files) = (Credentials::root(), FdTable::new());
    let who = Caller { fs: &fs, cred: &cred, fds: &files };
    if let Ok(console) = vfs::open(&who, AT_FDCWD, b"/dev/console", O_RDWR, 0) {
        for _ in 0..3 {
            files.install(console.clone(), false, u64::MAX)?;
        }
    }
    let limits = Limits::default();
    let mut budget = strings::budget(limits.stack as u64);
    let mut lists = [Strings::default(), Strings::default()];
    for (list, strings) in lists.iter_mut().zip([argv, envp]) {
        strings.iter().try_for_each(|string| list.push(string, &mut budget))?;
    }
    let [argv, envp] = lists;
    let file = vfs::open_exec(&who, AT_FDCWD, path, 0)?;
    let request = Request { who, name: path, hidden: false, argv, envp, budget, may_gain: false, limits, random: true };
    let image = request.load(file)?;
    task::boot(task::clone::Init { mm: image.mm, frame: image.frame, files, fs, exe: image.exe, name: image.name })
}
