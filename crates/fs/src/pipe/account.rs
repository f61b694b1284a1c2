//! Pages that the pipes of a user may hold: proc_sys_fs(5), `pipe-user-pages-soft`.
//!
//! A pipe counts with its size, not with what is in it, for as long as it exists, for the user who made it. A user
//! without privileges who holds the limit gets the smallest pipes, and none of his grows; nobody is refused a pipe.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use hal::sync::SpinLock;
use uapi::{Errno, Result};

use crate::cred::{Credentials, cap};

/// Pages that a user's pipes have together before they are kept small (Linux's default).
const SOFT: usize = 16_384;
/// Pages of a pipe of a user at the limit.
const SMALL: usize = 2;

/// Users with pipes, and the pages of these.
static USERS: SpinLock<Vec<(u32, usize)>> = SpinLock::new(Vec::new());

/// What one pipe counts for its user.
pub(super) struct Share {
    uid: u32,
    pages: AtomicUsize,
}

fn is_privileged(cred: &Credentials) -> bool {
    cred.has(cap::SYS_RESOURCE) || cred.has(cap::SYS_ADMIN)
}

/// Exchanges `old` pages of a user for `new` ones; gives what the user has then.
fn exchange(users: &mut Vec<(u32, usize)>, uid: u32, old: usize, new: usize) -> Result<usize> {
    if let Some(at) = users.iter().position(|(user, _)| *user == uid) {
        let Some((_, pages)) = users.get_mut(at) else { return Err(Errno::EIO) };
        *pages = pages.saturating_sub(old).saturating_add(new);
        let pages = *pages;
        if pages == 0 {
            users.swap_remove(at);
        }
        return Ok(pages);
    }
    users.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
    users.push((uid, new));
    Ok(new)
}

impl Share {
    /// Takes a new pipe's share: `wanted` pages, or few for a user at the limit. `ENOMEM`.
    pub fn take(cred: &Credentials, wanted: usize) -> Result<(Self, usize)> {
        let mut users = USERS.lock();
        let mut pages = wanted;
        if exchange(&mut users, cred.uid, 0, pages)? > SOFT && !is_privileged(cred) {
            pages = SMALL;
            exchange(&mut users, cred.uid, wanted, pages)?;
        }
        Ok((Self { uid: cred.uid, pages: AtomicUsize::new(pages) }, pages))
    }

    /// Changes the share of a pipe that gets another size. `EPERM`: it would grow, and the user is at the limit.
    pub fn resize(&self, cred: &Credentials, pages: usize) -> Result<()> {
        let mut users = USERS.lock();
        let old = self.pages.load(Ordering::Relaxed);
        if exchange(&mut users, self.uid, old, pages)? > SOFT && pages > old && !is_privileged(cred) {
            exchange(&mut users, self.uid, pages, old)?;
            return Err(Errno::EPERM);
        }
        self.pages.store(pages, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // The user is in the list for as long as this share is, so nothing is added that could fail.
        let _ = exchange(&mut USERS.lock(), self.uid, self.pages.load(Ordering::Relaxed), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_at_the_limit_gets_small_pipes_that_do_not_grow() {
        let user = Credentials::user(4242, 4242);
        let (big, pages) = Share::take(&user, SOFT).unwrap();
        assert_eq!(pages, SOFT);
        let (small, pages) = Share::take(&user, 16).unwrap();
        assert_eq!(pages, SMALL);
        assert_eq!(small.resize(&user, 16), Err(Errno::EPERM));
        assert_eq!(small.resize(&Credentials::root(), 16), Ok(()));
        assert_eq!(small.resize(&user, 1), Ok(()));
        drop(big);
        assert_eq!(small.resize(&user, 256), Ok(()));
        drop(small);
        assert!(USERS.lock().iter().all(|(uid, _)| *uid != 4242));
    }
}
