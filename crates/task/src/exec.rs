//! execve(2), the part that concerns the task: the old image goes, the new one takes over. Loading is elsewhere.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use fs::Credentials;
use hal::task::{UserFrame, replace_frame};
use mm::AddressSpace;
use uapi::Errno;
use uapi::signal::SIGCHLD;

use crate::exit::end_others;
use crate::process::{flag, tree_lock};
use crate::seam::current;
use crate::signal::frame::NO_ALTSTACK;
use crate::thread::table_id;

/// A loaded program, ready to take over.
pub struct Image {
    /// Its address space.
    pub mm: Arc<AddressSpace>,
    /// Entry point and stack pointer; everything else zero ([`UserFrame::start`]).
    pub frame: UserFrame,
    /// The file's name without its directories.
    pub name: alloc::vec::Vec<u8>,
    /// What /proc/PID/exe names.
    pub exe: Option<Arc<fs::File>>,
    /// Who the process is from now on, if the file changes that.
    pub credentials: Option<Credentials>,
}

/// Replaces the running process's image; the current call then returns into the new one.
///
/// `EAGAIN` when the process is being ended, and `ENOMEM`: then nothing has changed but that other threads may be gone.
/// `regs` is the frame of the current call.
pub fn replace_image(image: Image, regs: &mut UserFrame) -> Result<(), Errno> {
    let me = current();
    let process = &me.process;
    // What can fail comes first.
    let unshared = me.files_slot().with(|files| match files {
        Some(files) if Arc::strong_count(files) > 1 => files.try_clone().map(|f| Some(Arc::new(f))),
        _ => Ok(None),
    })?;
    end_others()?;

    take_number();
    let hand = process.signals.hand();
    // Two references are this one and the group's own.
    let hand = if Arc::strong_count(&hand) > 2 {
        let own = Arc::new(hand.copy());
        process.signals.set_hand(own.clone());
        own
    } else {
        hand
    };
    hand.reset_caught();
    me.signals.set_altstack(NO_ALTSTACK);
    process.exit_signal.store(SIGCHLD, Ordering::Relaxed);
    process.set_flag(flag::EXECED, true);
    me.robust_list.store(0, Ordering::Relaxed);
    me.clear_child_tid.store(0, Ordering::Relaxed);
    me.take_restart();
    me.set_comm(&image.name);
    let old_exe = core::mem::replace(&mut *process.exe.lock(), image.exe);
    if let Some(credentials) = image.credentials {
        process.set_credentials(Arc::new(credentials));
    }

    let old = me.mm_slot().replace(Some(image.mm.clone()));
    image.mm.activate();
    if let Some(old) = &old {
        me.note_peak(old);
    }
    // The parent of a vfork has its space to itself again.
    if let Some(parent) = me.vfork.replace(None) {
        parent.complete();
    }
    if let Some(old) = old.and_then(Arc::into_inner) {
        old.release();
    }
    drop(old_exe);

    if let Some(files) = unshared {
        drop(me.files_slot().replace(Some(files)));
    }
    let files = me.files();
    files.close_on_exec(|file| fs::lock::close_file(file, table_id(&files)));
    me.context.reset_fp();
    replace_frame(regs, &image.frame);
    Ok(())
}

/// The thread that is left takes the process's number, if it was not its first thread.
fn take_number() {
    let me = current();
    let (old, new) = (me.tid(), me.process.tgid);
    if old != new {
        let mut tree = tree_lock();
        if let Some(thread) = tree.remove_thread(old) {
            tree.insert_thread(new, thread);
        }
        me.tid.store(new, Ordering::Relaxed);
    }
}
