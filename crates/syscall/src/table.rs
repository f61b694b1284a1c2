//! From typed Rust functions to the call table and the coverage table.
//!
//! A family lists its calls in one [`calls!`]. The macro makes, for each, a wrapper with the C calling convention of
//! the fast path, which converts the registers to the function's parameter types ([`FromArg`]) and its result back
//! ([`IntoRet`]); after inlining nothing of that is left but the conversions that the ABI asks for (an `int` argument
//! is the low half of its register). The same list is the source of the published coverage table, so that it cannot
//! say anything else than the code does.

use hal::addr::UserAddr;
use hal::task::UserFrame;
use uapi::{Errno, Result};

/// A parameter as it arrives in a register.
pub(crate) trait FromArg {
    /// The value that register `arg` stands for.
    fn from_arg(arg: usize) -> Self;
}

macro_rules! from_arg {
    ($($t:ty),*) => {
        $(impl FromArg for $t {
            #[inline(always)]
            fn from_arg(arg: usize) -> Self {
                arg as $t
            }
        })*
    };
}
from_arg!(usize, isize, u64, i64, u32, i32, u16);

impl FromArg for UserAddr {
    #[inline(always)]
    fn from_arg(arg: usize) -> Self {
        UserAddr(arg)
    }
}

/// What a handler may return.
pub(crate) trait IntoRet {
    /// The result register: a value, or a negated errno.
    fn into_ret(self) -> isize;
}

macro_rules! into_ret {
    ($($t:ty),*) => {
        $(impl IntoRet for $t {
            #[inline(always)]
            fn into_ret(self) -> isize {
                self as isize
            }
        })*
    };
}
into_ret!(usize, isize, u64, i64, u32, i32);

impl IntoRet for () {
    #[inline(always)]
    fn into_ret(self) -> isize {
        0
    }
}

impl<T: IntoRet> IntoRet for Result<T> {
    #[inline(always)]
    fn into_ret(self) -> isize {
        match self {
            Ok(value) => value.into_ret(),
            Err(errno) => errno.to_ret(),
        }
    }
}

/// A function whose parameters and result have register forms. `Args` is the tuple of its parameters; it keeps the
/// implementations for different numbers of them apart.
pub(crate) trait Handler<Args> {
    /// Calls the function with the argument registers.
    fn call(self, args: [usize; 6]) -> isize;
}

macro_rules! handler {
    ($($t:ident @ $i:tt),*) => {
        impl<Func, Ret, $($t),*> Handler<($($t,)*)> for Func
        where
            Func: Fn($($t),*) -> Ret,
            Ret: IntoRet,
            $($t: FromArg,)*
        {
            #[inline(always)]
            fn call(self, args: [usize; 6]) -> isize {
                let _ = args;
                self($($t::from_arg(args[$i])),*).into_ret()
            }
        }
    };
}
handler!();
handler!(A @ 0);
handler!(A @ 0, B @ 1);
handler!(A @ 0, B @ 1, C @ 2);
handler!(A @ 0, B @ 1, C @ 2, D @ 3);
handler!(A @ 0, B @ 1, C @ 2, D @ 3, E @ 4);
handler!(A @ 0, B @ 1, C @ 2, D @ 3, E @ 4, F @ 5);

/// How far a call is supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Support {
    /// As in Linux 6.12.
    Full,
    /// But for what the note says.
    Partial,
    /// Answers with the error that the note gives.
    Absent,
}

impl core::fmt::Display for Support {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Self::Full => "yes",
            Self::Partial => "partly",
            Self::Absent => "no",
        })
    }
}

/// A row of the coverage table.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The number; its name is [`uapi::nr::name`] of it.
    pub number: usize,
    /// How far it is supported.
    pub support: Support,
    /// What is missing; empty when nothing is.
    pub note: &'static str,
}

impl Call {
    /// A row; a note makes a supported call a partly supported one.
    pub(crate) const fn new(number: usize, note: &'static str) -> Self {
        let support = if note.is_empty() { Support::Full } else { Support::Partial };
        Self { number, support, note }
    }
}

/// A family of calls.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// What it is about.
    pub name: &'static str,
    /// Its calls, in the order of the source.
    pub calls: &'static [Call],
}

/// Declares a family: `fast` handlers take their arguments, `full` ones the whole [`UserFrame`]; `lacks` names what is
/// missing. `absent` calls answer with an errno on purpose; calls that no family lists answer ENOSYS.
macro_rules! calls {
    (
        $(fast { $($f:ident = $fast:path $(, lacks $fnote:literal)?;)* })?
        $(full { $($u:ident = $full:path $(, lacks $unote:literal)?;)* })?
        $(absent { $($a:ident = $errno:ident, $anote:literal;)* })?
    ) => {
        /// Puts the family's handlers into `table`.
        pub(crate) const fn add(table: hal::calls::CallTable) -> hal::calls::CallTable {
            $($(
                let table = table.fast(uapi::nr::$f, {
                    extern "C" fn call(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
                        $crate::table::Handler::call($fast, [a, b, c, d, e, f])
                    }
                    call
                });
            )*)?
            $($(
                let table = table.full(uapi::nr::$u, {
                    extern "C" fn call(frame: &mut hal::task::UserFrame) -> isize {
                        $crate::table::IntoRet::into_ret($full(frame))
                    }
                    call
                });
            )*)?
            $($(
                let table = table.fast(uapi::nr::$a, {
                    extern "C" fn call(_: usize, _: usize, _: usize, _: usize, _: usize, _: usize) -> isize {
                        uapi::Errno::$errno.to_ret()
                    }
                    call
                });
            )*)?
            table
        }

        /// The family's rows of the coverage table.
        pub(crate) const CALLS: &[$crate::table::Call] = &[
            $($($crate::table::Call::new(uapi::nr::$f, concat!("" $(, $fnote)?)),)*)?
            $($($crate::table::Call::new(uapi::nr::$u, concat!("" $(, $unote)?)),)*)?
            $($($crate::table::Call {
                number: uapi::nr::$a,
                support: $crate::table::Support::Absent,
                note: concat!(stringify!($errno), ": ", $anote),
            },)*)?
        ];
    };
}
pub(crate) use calls;

/// The arguments of a call that takes the whole frame.
#[inline]
pub(crate) fn arguments(frame: &UserFrame) -> [usize; 6] {
    [frame.a0, frame.a1, frame.a2, frame.a3, frame.a4, frame.a5]
}

/// Calls without a handler.
pub(crate) extern "C" fn unknown(_: usize, _: usize, _: usize, _: usize, _: usize, _: usize) -> isize {
    Errno::ENOSYS.to_ret()
}
