//! The files of a process's directory that the process model renders.

/// A file in `/proc/PID`, or in `/proc/PID/task/TID`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum PidFile {
    Auxv,
    Cgroup,
    Cmdline,
    Comm,
    Environ,
    Limen,
    Limits,
    Loginuid,
    Maps,
    OomScore,
    OomScoreAdj,
    Schedstat,
    Smaps,
    SmapsRollup,
    Stat,
    Statm,
    Status,
    Wchan,
}

use PidFile::*;

/// Name, permissions and file. The order is that of a listing.
pub(super) const FILES: [(&str, u32, PidFile); 18] = [
    ("environ", 0o400, Environ),
    ("auxv", 0o400, Auxv),
    ("status", 0o444, Status),
    ("limits", 0o644, Limits),
    ("comm", 0o644, Comm),
    ("cmdline", 0o444, Cmdline),
    ("stat", 0o444, Stat),
    ("statm", 0o444, Statm),
    ("maps", 0o444, Maps),
    ("smaps", 0o444, Smaps),
    ("smaps_rollup", 0o444, SmapsRollup),
    ("wchan", 0o444, Wchan),
    ("schedstat", 0o444, Schedstat),
    ("cgroup", 0o444, Cgroup),
    ("oom_score", 0o444, OomScore),
    ("oom_score_adj", 0o644, OomScoreAdj),
    ("loginuid", 0o644, Loginuid),
    ("limen", 0o444, Limen),
];
