//! Tasks as the trap path sees them: the task head, the saved registers, the kernel context.
//!
//! Every task has one 16 KiB block, aligned to its size. At its top lies the [`Head`], and `tp` points at it for as
//! long as the task is in the kernel; below the head lies the [`UserFrame`] of the trap that brought the task in, at a
//! fixed distance from `tp`, so that the entry code needs no address arithmetic; below that the kernel stack grows.
//!
//! ```text
//!   block + 16 KiB ──►┌────────────────┐
//!                     │ Head           │◄── tp in the kernel, sscratch always
//!                     ├────────────────┤
//!                     │ UserFrame      │◄── tp - 272
//!                     ├────────────────┤◄── sp when the handler is called
//!                     │ kernel stack ↓ │
//!   block ───────────►└────────────────┘
//! ```
//!
//! The block lies in the direct map, which is there from boot to power-off: nothing that the entry code touches can
//! fault. A trap from the kernel checks that its stack pointer is inside the block, which is all the guard there is.

mod frame;

use core::mem::{offset_of, size_of};
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

pub use frame::{FpState, UserFrame};

/// Size and alignment of a task's block in bytes.
pub const STACK_SIZE: usize = 16384;

/// Work to be done before a task returns to user mode. Any hart may raise it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work(u32);

impl Work {
    /// Another task should run.
    pub const RESCHED: Self = Self(1);
    /// A signal may be deliverable.
    pub const SIGNAL: Self = Self(2);
}

/// The hart's next return to user mode must write `sepc` from the frame: a nested trap or a switch has used it.
pub(crate) const LOCAL_RELOAD_PC: u32 = 1;
/// The frame was replaced (execve, rt_sigreturn): all registers come from it, `a0` too.
pub(crate) const LOCAL_REPLACED: u32 = 2;

/// What the trap path keeps for a task, at the address in `tp`.
#[repr(C, align(16))]
pub(crate) struct Head {
    /// [`Work`] bits: set and cleared atomically by any hart.
    pub work: AtomicU32,
    /// `LOCAL_*` bits: only the hart that runs the task writes them. The exit path tests both words with one load.
    pub local: AtomicU32,
    /// System calls that took the fast entry since the last switch.
    pub calls: AtomicU64,
    /// Those of them that spilled all registers.
    pub full_calls: AtomicU64,
    /// What the crates above call the task: see [`crate::current_task`].
    pub owner: AtomicUsize,
    /// The hart that the task runs on, or ran on last.
    pub hart: AtomicUsize,
    /// The kernel stack pointer while switched out.
    pub context_sp: AtomicUsize,
    /// 1 from the moment the task is switched to until its registers are saved again.
    pub on_hart: AtomicU32,
    _pad: u32,
    /// Room for the entry code to free a register, and the target of the dummy `sc`.
    pub scratch: [usize; 2],
    /// FP registers while switched out.
    pub fp: core::cell::UnsafeCell<FpState>,
    /// sstatus.FS while switched out (in place, bits 14:13).
    pub fs: AtomicUsize,
    /// Index of the hart whose registers last agreed with `fp`; [`NO_HART`] when none do.
    pub fp_hart: AtomicUsize,
}

pub(crate) const HEAD_SIZE: usize = size_of::<Head>();
pub(crate) const FRAME_SIZE: usize = size_of::<UserFrame>();
const _: () = assert!(offset_of!(Head, work) == 0 && offset_of!(Head, local) == 4, "tested with one 64-bit load");
const _: () = assert!(HEAD_SIZE.is_multiple_of(16));

// SAFETY: every field is atomic but `scratch`, which only the entry code of the running hart touches, and `fp`, which
// only the switch code touches for a task that `on_hart` shows to belong to it, and `Context::fp` under the same rule.
unsafe impl Sync for Head {}

/// A task's kernel context: its block, owned. Dropping it frees the stack, so it must not be the running one.
pub struct Context {
    head: ptr::NonNull<Head>,
    /// None for the stacks the harts booted on, which are never freed.
    block: Option<crate::mem::frame::Block>,
}

// SAFETY: the context owns its block; what other harts may touch of it through `&self` is atomic.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn head(&self) -> &Head {
        // SAFETY: the block lives as long as the context, and the head in it is initialised when the context is made.
        unsafe { self.head.as_ref() }
    }

    /// A context whose first switch calls `started` and then enters user mode with `frame` and `fp`.
    /// None when no memory is left.
    pub fn new_user(frame: &UserFrame, fp: Option<&FpState>, started: fn()) -> Option<Self> {
        let context = Self::allocate()?;
        context.set_frame(frame);
        if let Some(fp) = fp {
            context.set_fp(fp);
        }
        #[cfg(target_os = "none")]
        crate::arch::switch::prepare_user(context.head(), started as usize);
        #[cfg(not(target_os = "none"))]
        let _ = started;
        Some(context)
    }

    /// A context for a child of the running task, whose context this is: as [`Context::new_user`], with the parent's FP
    /// state. A parent that never used the unit has a child that never did.
    pub fn new_child(&self, frame: &UserFrame, started: fn()) -> Option<Self> {
        #[cfg(target_os = "none")]
        if crate::arch::fp::is_initial() {
            return Self::new_user(frame, None, started);
        }
        let child = Self::new_user(frame, None, started)?;
        #[cfg(target_os = "none")]
        crate::arch::fp::save_current(self.head());
        // SAFETY: the parent is the caller and the child is new, so nobody else touches either state.
        unsafe { *child.head().fp.get() = *self.head().fp.get() };
        child.head().fs.store(FS_CLEAN, Ordering::Relaxed);
        Some(child)
    }

    /// A context for a kernel thread: its first switch calls `entry`. None when no memory is left.
    pub fn new_kernel(entry: fn() -> !) -> Option<Self> {
        let context = Self::allocate()?;
        #[cfg(target_os = "none")]
        crate::arch::switch::prepare_kernel(context.head(), entry as usize);
        #[cfg(not(target_os = "none"))]
        let _ = entry;
        Some(context)
    }

    fn allocate() -> Option<Self> {
        let block = crate::mem::frame::Block::alloc(2, crate::mem::frame::Kind::Stack)?;
        let base = ptr::with_exposed_provenance_mut::<u8>(block.virt());
        // SAFETY: the block is 16 KiB, aligned and ours alone; the head lies in its last bytes.
        let head = unsafe {
            let head = base.add(STACK_SIZE - HEAD_SIZE).cast::<Head>();
            Self::init_head(head);
            ptr::NonNull::new_unchecked(head)
        };
        Some(Self { head, block: Some(block) })
    }

    /// # Safety
    /// `head` must be valid for writes and not in use.
    pub(crate) unsafe fn init_head(head: *mut Head) {
        // SAFETY: by the caller's promise.
        unsafe {
            head.write(Head {
                work: AtomicU32::new(0),
                local: AtomicU32::new(0),
                calls: AtomicU64::new(0),
                full_calls: AtomicU64::new(0),
                owner: AtomicUsize::new(0),
                hart: AtomicUsize::new(0),
                context_sp: AtomicUsize::new(0),
                on_hart: AtomicU32::new(0),
                _pad: 0,
                scratch: [0; 2],
                fp: core::cell::UnsafeCell::new(FpState::ZERO),
                fs: AtomicUsize::new(FS_INITIAL),
                fp_hart: AtomicUsize::new(NO_HART),
            });
        }
    }

    /// The context that the calling hart booted on, for its idle task. Once per hart.
    #[cfg(target_os = "none")]
    pub fn boot() -> Self {
        let head = crate::arch::head_pointer();
        assert!(crate::hart::this().claim_boot_context(), "the boot context is claimed once");
        // SAFETY: tp is never null in the kernel, and the boot block is never freed.
        Self { head: unsafe { ptr::NonNull::new_unchecked(head) }, block: None }
    }

    /// On the host: a context like any other.
    #[cfg(not(target_os = "none"))]
    pub fn boot() -> Self {
        Self::allocate().expect("the host has memory")
    }

    /// Ties the context to what the crates above call the task; used by [`crate::current_task`] only.
    #[doc(hidden)]
    pub fn set_owner(&self, owner: *const ()) {
        self.head().owner.store(owner.expose_provenance(), Ordering::Release);
    }

    /// Asks for `work` on the task's way to user mode.
    #[inline]
    pub fn raise(&self, work: Work) {
        self.head().work.fetch_or(work.0, Ordering::AcqRel);
    }

    /// Takes a request back, or marks it served.
    #[inline]
    pub fn clear(&self, work: Work) {
        self.head().work.fetch_and(!work.0, Ordering::AcqRel);
    }

    /// True while `work` is asked for.
    #[inline]
    pub fn has(&self, work: Work) -> bool {
        self.head().work.load(Ordering::Acquire) & work.0 != 0
    }

    /// True while a hart runs the task or is still saving its registers.
    #[inline]
    pub fn on_hart(&self) -> bool {
        self.head().on_hart.load(Ordering::Acquire) != 0
    }

    /// The registers of a task that is switched out, or of the caller inside a call that spills all of them.
    pub fn frame(&self) -> UserFrame {
        // SAFETY: the frame lies right below the head in the same block; it is plain data, and only the task itself
        // writes it, in the kernel, where it is not while it is switched out or is the caller.
        unsafe { *self.head.as_ptr().cast::<u8>().sub(FRAME_SIZE).cast::<UserFrame>() }
    }

    fn set_frame(&self, frame: &UserFrame) {
        // SAFETY: as in `frame`; the context is new, so nobody else knows it.
        unsafe { *self.head.as_ptr().cast::<u8>().sub(FRAME_SIZE).cast::<UserFrame>() = *frame };
    }

    /// The FP state of the task; for the running task its registers are saved first.
    pub fn fp(&self) -> FpState {
        #[cfg(target_os = "none")]
        if ptr::eq(self.head.as_ptr(), crate::arch::head_pointer()) {
            crate::arch::fp::save_current(self.head());
        }
        // SAFETY: nobody else writes it: the task is switched out, or is the caller.
        unsafe { *self.head().fp.get() }
    }

    /// Makes the FP state of the running task that of a program that begins: all zero and not used yet, so that a
    /// switch between such tasks loads nothing.
    pub fn reset_fp(&self) {
        // SAFETY: as in `fp`; this is the running task's own context, as its only caller, execve, knows.
        unsafe { *self.head().fp.get() = FpState::ZERO };
        self.head().fs.store(FS_INITIAL, Ordering::Relaxed);
        self.head().fp_hart.store(NO_HART, Ordering::Relaxed);
        #[cfg(target_os = "none")]
        if ptr::eq(self.head.as_ptr(), crate::arch::head_pointer()) {
            crate::arch::fp::zero_current(self.head());
        }
    }

    /// Sets the FP state of the task; for the running task it is live at once.
    pub fn set_fp(&self, fp: &FpState) {
        // SAFETY: as in `fp`.
        unsafe { *self.head().fp.get() = *fp };
        self.head().fs.store(FS_CLEAN, Ordering::Relaxed);
        self.head().fp_hart.store(NO_HART, Ordering::Relaxed);
        #[cfg(target_os = "none")]
        if ptr::eq(self.head.as_ptr(), crate::arch::head_pointer()) {
            crate::arch::fp::load_current(self.head());
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        assert!(self.block.is_none() || !self.on_hart(), "a running task's stack was freed");
    }
}

/// No hart's registers hold the state.
pub(crate) const NO_HART: usize = usize::MAX;
/// sstatus.FS = Initial, in place: the state is all zero.
pub(crate) const FS_INITIAL: usize = 1 << 13;
/// sstatus.FS = Clean, in place.
pub(crate) const FS_CLEAN: usize = 2 << 13;

/// Switches from the running task `prev` to `next` and returns when somebody switches back.
/// Interrupts are off and no spin lock is held.
#[cfg(target_os = "none")]
#[inline]
pub fn switch(prev: &Context, next: &Context) {
    crate::arch::switch::switch(prev, next);
}

/// There is nothing to switch on the host.
#[cfg(not(target_os = "none"))]
pub fn switch(prev: &Context, next: &Context) {
    let _ = (prev, next);
    panic!("no context switch on the host");
}

/// Replaces the running task's user registers: the current call returns to user mode with exactly `frame`.
/// Only meaningful in a call that spills all registers (execve, rt_sigreturn).
#[cfg(target_os = "none")]
pub fn replace_frame(frame: &mut UserFrame, with: &UserFrame) {
    *frame = *with;
    frame.forget_call();
    // SAFETY: tp points at the running task's head.
    let head = unsafe { &*crate::arch::head_pointer() };
    let local = head.local.load(Ordering::Relaxed);
    head.local.store(local | LOCAL_REPLACED | LOCAL_RELOAD_PC, Ordering::Relaxed);
}

/// On the host only the frame changes.
#[cfg(not(target_os = "none"))]
pub fn replace_frame(frame: &mut UserFrame, with: &UserFrame) {
    let _ = (LOCAL_REPLACED, LOCAL_RELOAD_PC);
    *frame = *with;
    frame.forget_call();
}

/// The address that [`current_task`] gave the running task's context.
#[doc(hidden)]
#[inline]
pub fn current_owner() -> *const () {
    #[cfg(target_os = "none")]
    {
        // SAFETY: tp points at the running task's head.
        let head = unsafe { &*crate::arch::head_pointer() };
        ptr::with_exposed_provenance(head.owner.load(Ordering::Relaxed))
    }
    #[cfg(not(target_os = "none"))]
    ptr::null()
}

/// Ties contexts to the one task type of the kernel. Expanded once, in `crates/task`; it defines
/// `current() -> Current`, a reference to the running task that cannot leave it, and `tie(&Arc<T>, &Context)`, which
/// must be called before the context is first switched to. A second expansion does not link.
#[macro_export]
macro_rules! current_task {
    ($task:ty) => {
        /// The running task. It lives at least as long as it runs, and this cannot be sent elsewhere.
        #[derive(Clone, Copy)]
        pub struct Current(*const $task);

        impl core::ops::Deref for Current {
            type Target = $task;
            #[inline]
            fn deref(&self) -> &$task {
                // SAFETY: `tie` stored a pointer to a value that the scheduler holds for as long as the task runs,
                // and `Current` stays on the task's own stack, as it is neither Send nor Sync.
                unsafe { &*self.0 }
            }
        }

        impl Current {
            /// A counted reference to the running task.
            #[inline]
            pub fn arc(self) -> alloc::sync::Arc<$task> {
                // SAFETY: the pointer came from an `Arc` in `tie`, and the scheduler holds a reference while the task
                // runs, so there is one to count up from.
                unsafe {
                    alloc::sync::Arc::increment_strong_count(self.0);
                    alloc::sync::Arc::from_raw(self.0)
                }
            }
        }

        /// The running task. Panics in tests on the host, which run none.
        #[inline]
        pub fn current() -> Current {
            let owner = $crate::task::current_owner().cast::<$task>();
            debug_assert!(!owner.is_null(), "no task runs here");
            Current(owner)
        }

        /// Makes `task` what [`current`] gives while `context` runs. The scheduler keeps `task` alive for that long.
        pub fn tie(task: &alloc::sync::Arc<$task>, context: &$crate::task::Context) {
            context.set_owner(alloc::sync::Arc::as_ptr(task).cast());
        }

        #[cfg(target_os = "none")]
        #[unsafe(no_mangle)]
        static LIMEN_ONE_TASK_TYPE: u8 = 0;
    };
}
