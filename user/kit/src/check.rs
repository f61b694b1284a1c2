//! Failing with a reason: tests return `Result<(), &'static str>` and say the details in a `#` line of the report.

use rt::uapi::Errno;

/// How a test ends.
pub type Outcome = Result<(), &'static str>;

/// Turns an error number into a test's reason.
pub trait Must<T> {
    /// The value; on an error, says which and fails with `what`.
    ///
    /// # Errors
    /// The result is an error.
    fn must(self, what: &'static str) -> Result<T, &'static str>;
}

impl<T> Must<T> for Result<T, Errno> {
    fn must(self, what: &'static str) -> Result<T, &'static str> {
        self.map_err(|error| {
            rt::println!("# {what}: errno {}", error.code());
            what
        })
    }
}

/// Fails the test with a reason unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $reason:expr) => {
        if !$condition {
            return Err($reason);
        }
    };
}

/// Fails the test with a reason, both values shown, unless they are equal.
#[macro_export]
macro_rules! equal {
    ($got:expr, $wanted:expr, $reason:expr) => {{
        let (got, wanted) = (&$got, &$wanted);
        if *got != *wanted {
            $crate::rt::println!("# {}: got {:?}, wanted {:?}", $reason, got, wanted);
            return Err($reason);
        }
    }};
}

/// Fails the test unless the raw result is this error.
#[macro_export]
macro_rules! fails {
    ($result:expr, $error:ident, $reason:expr) => {
        $crate::equal!($result as isize, $crate::uapi::Errno::$error.to_ret(), $reason)
    };
}
