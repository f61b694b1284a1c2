//! Where a woken thread runs.

/// The hart for a thread that last ran on `last` and is woken from `here`. `idle` and `allowed` are sets of harts.
///
/// Its old hart if that is idle (its cache may be warm), else any idle one, else the waker's, where the data that it was
/// woken for was just written; a thread that may not run there goes to its old hart or the first it may use. `follow`:
/// the waker is about to sleep, as far as one can tell, so its hart is as good as an idle one, and nearer.
#[inline]
pub fn choose(last: usize, here: usize, idle: usize, allowed: usize, follow: bool) -> usize {
    let idle = idle & allowed;
    if follow && allowed >> here & 1 != 0 {
        here
    } else if idle >> last & 1 != 0 {
        last
    } else if idle != 0 {
        idle.trailing_zeros() as usize
    } else if allowed >> here & 1 != 0 {
        here
    } else if allowed >> last & 1 != 0 {
        last
    } else if allowed != 0 {
        allowed.trailing_zeros() as usize
    } else {
        here
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::choose;
    use proptest::prelude::*;

    #[test]
    fn prefers_an_idle_hart_then_the_waker() {
        assert_eq!(choose(2, 0, 0b1100, !0, false), 2);
        assert_eq!(choose(1, 0, 0b1000, !0, false), 3);
        assert_eq!(choose(1, 0, 0, !0, false), 0);
        assert_eq!(choose(1, 0, 0b1000, 0b0110, false), 1);
        assert_eq!(choose(2, 0, 0b1100, !0, true), 0);
        assert_eq!(choose(2, 0, 0b1100, !1, true), 2);
    }

    proptest! {
        #[test]
        fn never_leaves_the_allowed_set(last in 0usize..8, here in 0usize..8, idle in 0usize..256,
            allowed in 1usize..256, follow in any::<bool>()) {
            prop_assert!(allowed >> choose(last, here, idle, allowed, follow) & 1 != 0);
        }
    }
}
