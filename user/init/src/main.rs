//! The guest's first process, the same on every kernel: mounts, opens the terminal, runs one program, reaps, reports.
//!
//! The program and its arguments stand in `/.limen/run`, each ended by a zero byte; an empty file means a shell. Lines of
//! `key=value` in `/.limen/env` say more: `cwd=`, `uid=`, `echo=on|off`, `winsize=rows,columns`, `env=NAME=value`. The
//! program's output is framed on the console by the control character 0x1e and `[limen start]` before it, `[limen exit N]`
//! after it, N as a shell would give it. Then the machine is powered off.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod config;
#[cfg(target_os = "none")]
mod launch;
#[cfg(target_os = "none")]
mod system;

rt::program!(run);

#[cfg(target_os = "none")]
fn run(_args: rt::Args) -> u8 {
    system::mount_all();
    system::open_console();
    let config = config::Config::read();
    system::set_host_name();
    system::prepare_terminal(config);
    system::frame(format_args!("start"));
    let status = launch::run(config);
    system::drain_console();
    system::frame(format_args!("exit {status}"));
    system::drain_console();
    system::power_off()
}
