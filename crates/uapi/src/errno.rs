//! Error numbers: asm-generic/errno(3), and the kernel-internal restart codes.

use core::fmt;
use core::num::NonZeroI32;

/// An error number, 1..=4095. A system call returns it negated.
///
/// Codes from 512 up never reach user space: they tell the signal code how an interrupted call goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Errno(NonZeroI32);

/// The result of everything that can fail with an [`Errno`].
pub type Result<T, E = Errno> = core::result::Result<T, E>;

impl Errno {
    const fn new(code: i32) -> Self {
        match NonZeroI32::new(code) {
            Some(code) => Errno(code),
            None => panic!("errno 0"),
        }
    }

    /// The value a system call returns for this error: negative.
    #[inline]
    pub const fn to_ret(self) -> isize {
        -(self.0.get() as isize)
    }

    /// The positive number.
    #[inline]
    pub const fn code(self) -> i32 {
        self.0.get()
    }

    /// The error a return value stands for, if it lies in -4095..=-1.
    #[inline]
    pub const fn from_ret(ret: isize) -> Option<Self> {
        if ret < 0 && ret >= -4095 { Some(Errno::new(-(ret as i32))) } else { None }
    }

    /// Whether this is one of the internal codes of an interrupted call.
    #[inline]
    pub const fn is_restart(self) -> bool {
        matches!(self.0.get(), 512 | 513 | 514 | 516)
    }

    /// Interrupted before anything happened: restart if the handler has SA_RESTART or none ran, else EINTR.
    pub const ERESTARTSYS: Self = Self::new(512);
    /// Restart always, whatever the handler's flags.
    pub const ERESTARTNOINTR: Self = Self::new(513);
    /// Restart only if no handler ran, else EINTR.
    pub const ERESTARTNOHAND: Self = Self::new(514);
    /// Restart through restart_syscall(2) if no handler ran, else EINTR.
    pub const ERESTART_RESTARTBLOCK: Self = Self::new(516);
    /// Same number as [`Errno::EAGAIN`].
    pub const EWOULDBLOCK: Self = Self::EAGAIN;
    /// Same number as [`Errno::EDEADLK`].
    pub const EDEADLOCK: Self = Self::EDEADLK;
    /// Same number as [`Errno::EOPNOTSUPP`].
    pub const ENOTSUP: Self = Self::EOPNOTSUPP;
}

macro_rules! errnos {
    ($($name:ident = $code:literal,)*) => {
        impl Errno {
            $(pub const $name: Self = Self::new($code);)*

            /// The name used by the man pages, `None` for a number without one.
            pub const fn name(self) -> Option<&'static str> {
                Some(match self.0.get() {
                    $($code => stringify!($name),)*
                    512 => "ERESTARTSYS",
                    513 => "ERESTARTNOINTR",
                    514 => "ERESTARTNOHAND",
                    516 => "ERESTART_RESTARTBLOCK",
                    _ => return None,
                })
            }
        }
    };
}

errnos! {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, E2BIG = 7, ENOEXEC = 8, EBADF = 9, ECHILD = 10,
    EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, ENOTBLK = 15, EBUSY = 16, EEXIST = 17, EXDEV = 18,
    ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23, EMFILE = 24, ENOTTY = 25, ETXTBSY = 26,
    EFBIG = 27, ENOSPC = 28, ESPIPE = 29, EROFS = 30, EMLINK = 31, EPIPE = 32, EDOM = 33, ERANGE = 34, EDEADLK = 35,
    ENAMETOOLONG = 36, ENOLCK = 37, ENOSYS = 38, ENOTEMPTY = 39, ELOOP = 40, ENOMSG = 42, EIDRM = 43, ECHRNG = 44,
    EL2NSYNC = 45, EL3HLT = 46, EL3RST = 47, ELNRNG = 48, EUNATCH = 49, ENOCSI = 50, EL2HLT = 51, EBADE = 52,
    EBADR = 53, EXFULL = 54, ENOANO = 55, EBADRQC = 56, EBADSLT = 57, EBFONT = 59, ENOSTR = 60, ENODATA = 61,
    ETIME = 62, ENOSR = 63, ENONET = 64, ENOPKG = 65, EREMOTE = 66, ENOLINK = 67, EADV = 68, ESRMNT = 69,
    ECOMM = 70, EPROTO = 71, EMULTIHOP = 72, EDOTDOT = 73, EBADMSG = 74, EOVERFLOW = 75, ENOTUNIQ = 76, EBADFD = 77,
    EREMCHG = 78, ELIBACC = 79, ELIBBAD = 80, ELIBSCN = 81, ELIBMAX = 82, ELIBEXEC = 83, EILSEQ = 84, ERESTART = 85,
    ESTRPIPE = 86, EUSERS = 87, ENOTSOCK = 88, EDESTADDRREQ = 89, EMSGSIZE = 90, EPROTOTYPE = 91, ENOPROTOOPT = 92,
    EPROTONOSUPPORT = 93, ESOCKTNOSUPPORT = 94, EOPNOTSUPP = 95, EPFNOSUPPORT = 96, EAFNOSUPPORT = 97,
    EADDRINUSE = 98, EADDRNOTAVAIL = 99, ENETDOWN = 100, ENETUNREACH = 101, ENETRESET = 102, ECONNABORTED = 103,
    ECONNRESET = 104, ENOBUFS = 105, EISCONN = 106, ENOTCONN = 107, ESHUTDOWN = 108, ETOOMANYREFS = 109,
    ETIMEDOUT = 110, ECONNREFUSED = 111, EHOSTDOWN = 112, EHOSTUNREACH = 113, EALREADY = 114, EINPROGRESS = 115,
    ESTALE = 116, EUCLEAN = 117, ENOTNAM = 118, ENAVAIL = 119, EISNAM = 120, EREMOTEIO = 121, EDQUOT = 122,
    ENOMEDIUM = 123, EMEDIUMTYPE = 124, ECANCELED = 125, ENOKEY = 126, EKEYEXPIRED = 127, EKEYREVOKED = 128,
    EKEYREJECTED = 129, EOWNERDEAD = 130, ENOTRECOVERABLE = 131, ERFKILL = 132, EHWPOISON = 133,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Errno {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_return_values() {
        assert_eq!(Errno::EHWPOISON.code(), 133);
        assert_eq!(Errno::ENOSYS.to_ret(), -38);
        assert_eq!(Errno::from_ret(-38), Some(Errno::ENOSYS));
        assert_eq!(Errno::from_ret(-4096), None);
        assert_eq!(Errno::from_ret(0), None);
        assert_eq!(Errno::ENOTSUP.to_string(), "EOPNOTSUPP");
        assert!(Errno::ERESTARTSYS.is_restart() && !Errno::EINTR.is_restart());
        assert_eq!(size_of::<Result<()>>(), 4);
        assert!(matches!(Errno::EAGAIN, Errno::EWOULDBLOCK));
    }
}
