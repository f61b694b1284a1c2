//! Tasks: scheduler, threads and processes, signals, futexes, timers, waiting.
//!
//! Where to start reading: [`Thread`] is what runs, [`Process`] is a thread group with what its threads share; [`tree`]
//! has the numbers and the kinship; [`sched`] decides who runs where; [`wait`] is how a system call sleeps; [`signal`]
//! sends and delivers; [`clone`], [`exec`], [`exit`] and [`reap`] are the life of a process.
//!
//! The rules (which signal next, who is fair, what a clone may ask for, which child a wait takes) are functions over
//! plain data in modules of their own, tested on the host; the rest is wiring around them.
//!
//! Lock order, first taken first: the tree; a process's signal lock; its thread list; a thread's pending signals; signal
//! actions; futex buckets; timers; run queues last. A task that sleeps holds none.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod clone;
mod cputimer;
pub mod exec;
pub mod exit;
pub mod fault;
pub mod futex;
pub mod itimer;
pub mod jobs;
pub mod oom;
pub mod proc;
mod process;
pub mod reap;
pub mod sched;
mod seam;
pub mod signal;
mod slot;
mod terminal;
mod thread;
pub mod timer;
pub mod tree;
pub mod usage;
pub mod wait;

pub use cputimer::CpuTimer;
pub use process::flag as process_flag;
pub use process::{
    Process, State as ProcessState, boot, find_process, find_thread, for_each_process, max_threads, thread_total,
    threads_made, tree_lock,
};
pub use sched::timer_interrupt;
pub use seam::{Current, current};
pub use signal::user_work;
pub use slot::Slot;
pub use terminal::JobControl;
pub use thread::{Restart, Thread, table_id};
pub use wait::{Sleep, wait_more, wait_on};
