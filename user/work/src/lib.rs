//! The lab's workloads: each one operation at the boundary between user and kernel, repeated between two markers.
//!
//! The table below is all there is to know about them on the host; in the guest each entry has its function too. To add a
//! workload, write one small function that sets itself up and hands the operation to `Meter::each`, and one line here.
//!
//! The functions do not measure anything but the `time` register. What counts instructions, fences and mispredicted
//! returns is the lab's plugin of the emulator, which knows the markers.

#![cfg_attr(target_os = "none", no_std)]

#[cfg(target_os = "none")]
mod calls;
#[cfg(target_os = "none")]
mod marker;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod meter;
#[cfg(target_os = "none")]
mod processes;
#[cfg(target_os = "none")]
mod query;
#[cfg(target_os = "none")]
pub mod run;
#[cfg(target_os = "none")]
mod threads;
#[cfg(target_os = "none")]
mod vector;

#[cfg(target_os = "none")]
pub use meter::{Lack, Meter, Outcome};

/// One workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name, in reports and on command lines.
    pub name: &'static str,
    /// How often the operation is done between the markers.
    pub operations: u32,
    /// Harts it needs.
    pub harts: u32,
    /// Memory it needs, in MiB, if that is more than any machine of the lab has; else 0.
    pub memory: u32,
    /// What one operation is.
    pub about: &'static str,
    /// Sets up, warms up, measures.
    #[cfg(target_os = "none")]
    pub run: fn(&mut Meter) -> Outcome,
}

macro_rules! workloads {
    ($($name:literal, $operations:literal, harts $harts:literal $(, memory $memory:literal)?: $about:literal => $run:expr;)*) => {
        /// All workloads, in the order in which they run and are shown.
        pub const WORKLOADS: &[Workload] = &[$(Workload {
            name: $name,
            operations: $operations,
            harts: $harts,
            memory: 0 $(+ $memory)?,
            about: $about,
            #[cfg(target_os = "none")]
            run: $run,
        }),*];
    };
}

workloads! {
    "getppid", 20_000, harts 1: "getppid, in a loop of 4 instructions" => calls::getppid;
    "getppid_vsetvli", 20_000, harts 1: "the same with a vsetvli in the loop" => vector::after_vsetvli;
    "getppid_vector", 20_000, harts 1: "the same with v0-v15 written in the loop" => vector::after_writes;
    "nested_0", 20_000, harts 1: "getppid in a function" => |meter| calls::nested(meter, 0);
    "nested_4", 20_000, harts 1: "getppid under 4 nested calls" => |meter| calls::nested(meter, 4);
    "nested_8", 20_000, harts 1: "getppid under 8 nested calls" => |meter| calls::nested(meter, 8);
    "nested_12", 20_000, harts 1: "getppid under 12 nested calls" => |meter| calls::nested(meter, 12);
    "nested_16", 20_000, harts 1: "getppid under 16 nested calls" => |meter| calls::nested(meter, 16);
    "nested_24", 20_000, harts 1: "getppid under 24 nested calls" => |meter| calls::nested(meter, 24);
    "nested_32", 20_000, harts 1: "getppid under 32 nested calls" => |meter| calls::nested(meter, 32);
    "read_zero", 10_000, harts 1: "read 1 byte of /dev/zero" => calls::read_zero;
    "write_null", 10_000, harts 1: "write 1 byte to /dev/null" => calls::write_null;
    "sched_yield", 10_000, harts 1: "sched_yield with nobody to yield to" => calls::sched_yield;
    "clock_gettime_vdso", 10_000, harts 1: "clock_gettime by the vDSO" => query::clock_gettime;
    "hwprobe_vdso", 10_000, harts 1: "hwprobe, one key, all harts, by the vDSO" => query::hwprobe_vdso;
    "hwprobe_call", 5_000, harts 1: "hwprobe, one key, all harts, by the system call" => query::hwprobe_call;
    "hwprobe_set", 5_000, harts 1: "hwprobe, one key, a set of harts, by the vDSO's function" => query::hwprobe_set;
    "hwprobe_others", 5_000, harts 1: "the same, the set of all harts but the first" => query::hwprobe_others;
    "hwprobe_six", 5_000, harts 1: "hwprobe, six keys, all harts, by the vDSO" => query::hwprobe_six;
    "hwprobe_all_set", 5_000, harts 1: "hwprobe, one key, the set of all harts, by the vDSO's function" => query::hwprobe_all_set;
    "hwprobe_which", 5_000, harts 1: "hwprobe, which harts have a key's value, by the vDSO's function" => query::hwprobe_which;
    "hwprobe_which_all", 5_000, harts 1: "the same among all harts" => query::hwprobe_which_all;
    "open_read_close", 2_000, harts 1: "open, read, close /sys/kernel/cpu_byteorder" => query::open_read_close;
    "access", 2_000, harts 1: "access /sys/kernel/cpu_byteorder" => query::access;
    "signal", 5_000, harts 1: "a signal to oneself: kill, handler, return" => calls::signal;
    "anonymous_fault", 4_096, harts 1: "first write to a page of a private mapping" => memory::anonymous_fault;
    "faults_4", 8_192, harts 4: "the same by 4 threads of one program on 4 harts, each in its quarter" => |meter| memory::faults(meter, 4);
    "faults_1_of_4", 8_192, harts 4: "the same by one thread, 3 harts being idle" => |meter| memory::faults(meter, 1);
    "file_fault", 2_048, harts 1: "first read of a page of a mapped file, in order" => memory::file_fault;
    "map_unmap", 2_000, harts 1: "map and unmap 16 pages that nobody touches" => memory::map_unmap;
    "map_write_unmap_16", 500, harts 1: "map 16 pages, write to each, unmap" => memory::map_write_unmap;
    "map_write_unmap_4", 2_000, harts 4: "the same by 4 programs on 4 harts" => |meter| memory::map_write_unmap_apart(meter, 4);
    "mprotect", 2_000, harts 1: "mprotect a page read-only and back, write to it" => |meter| memory::mprotect(meter, 1);
    "mprotect_2", 20, harts 2: "the same while a thread runs on another hart" => |meter| memory::mprotect(meter, 2);
    "mprotect_4", 10, harts 4: "the same while threads run on 3 other harts" => |meter| memory::mprotect(meter, 4);
    "mprotect_left_4", 50, harts 4: "the same after the only thread has visited all of 4 harts" => memory::mprotect_left;
    "pipe_round_trip", 2_000, harts 1: "one byte to another process and one back, by pipes" => processes::pipe_round_trip;
    "futex_round_trip", 2_000, harts 1: "a word handed to another thread and back, by futex" => threads::futex_round_trip;
    "switch_processes", 5_000, harts 1: "two processes yield to each other, once each" => processes::switch;
    "switch_threads", 5_000, harts 1: "two threads yield to each other, once each" => threads::switch;
    "fork_exit_wait", 200, harts 1: "fork, exit, wait" => processes::fork_exit_wait;
    "fork_exit_wait_32", 200, harts 1: "the same by a program with 32 written pages more" => |meter| processes::fork_with(meter, 32);
    "fork_100", 100, harts 1: "the same with 100 pages" => |meter| processes::fork_with(meter, 100);
    "fork_1000", 50, harts 1: "the same with 1 000 pages" => |meter| processes::fork_with(meter, 1_000);
    "fork_10000", 10, harts 1: "the same with 10 000 pages" => |meter| processes::fork_with(meter, 10_000);
    "fork_262144", 2, harts 1, memory 2_048: "the same with 262 144 pages, 1 GiB" => |meter| processes::fork_with(meter, 262_144);
    "fork_exec_wait", 50, harts 1: "fork, exec busybox true, wait" => processes::fork_exec_wait;
}

/// The number of the region that belongs to a workload: its place in the table, from 1 on.
pub fn region(workload: &Workload) -> u16 {
    let index = WORKLOADS.iter().position(|known| known.name == workload.name).unwrap_or(0);
    index as u16 + 1
}

/// The workload of this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_their_column() {
        for (index, workload) in WORKLOADS.iter().enumerate() {
            assert!(workload.name.len() <= 18, "{}", workload.name);
            assert!(WORKLOADS[..index].iter().all(|other| other.name != workload.name), "{}", workload.name);
        }
    }
}
