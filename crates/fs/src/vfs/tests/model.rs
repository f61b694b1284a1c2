//! Random calls on a small set of paths, against a naive model: a map from path to content, walked component by
//! component with the rules written out.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;
use uapi::Errno;
use uapi::open::{AT_FDCWD, AT_SYMLINK_NOFOLLOW, RENAME_EXCHANGE, RENAME_NOREPLACE};

use crate::testing::Process;
use crate::vfs;

#[derive(Clone, Debug)]
enum Call {
    Mkdir(String),
    Write(String, u8),
    Unlink(String),
    Rmdir(String),
    Link(String, String),
    Symlink(String, String),
    Rename(String, String, u32),
    Stat(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Thing {
    Dir(BTreeMap<String, usize>),
    File(u8),
    Link(String),
}

/// Things by number; 0 is the root. Parents are found by search.
struct Model {
    things: Vec<Thing>,
}

/// What a walk ends with: the directory, and the last name or nothing.
type End = (usize, Option<String>);

impl Model {
    fn dir(&self, n: usize) -> Result<&BTreeMap<String, usize>, Errno> {
        match &self.things[n] {
            Thing::Dir(entries) => Ok(entries),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn dir_mut(&mut self, n: usize) -> &mut BTreeMap<String, usize> {
        match &mut self.things[n] {
            Thing::Dir(entries) => entries,
            _ => panic!("no directory"),
        }
    }

    fn parent(&self, n: usize) -> usize {
        (0..self.things.len()).find(|d| self.dir(*d).is_ok_and(|e| e.values().any(|v| *v == n))).unwrap_or(0)
    }

    /// Walks all but the last name, or with `follow` all of it.
    fn walk(&self, from: usize, path: &str, follow: bool, depth: u32) -> Result<End, Errno> {
        if depth > 40 {
            return Err(Errno::ELOOP);
        }
        let mut at = if path.starts_with('/') { 0 } else { from };
        let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).collect();
        for (i, part) in parts.iter().enumerate() {
            let entries = self.dir(at)?;
            let last = i + 1 == parts.len();
            if *part == ".." {
                at = self.parent(at);
                continue;
            }
            let found = entries.get(*part).copied();
            if last && !follow {
                return Ok((at, Some(part.to_string())));
            }
            match found.map(|n| (n, &self.things[n])) {
                None if last => return Ok((at, Some(part.to_string()))),
                None => return Err(Errno::ENOENT),
                Some((_, Thing::Link(target))) => {
                    let rest = parts[i + 1..].join("/");
                    let path = if last { target.clone() } else { std::format!("{target}/{rest}") };
                    return self.walk(at, &path, follow, depth + 1);
                }
                Some((n, _)) if last => {
                    let _ = n;
                    return Ok((at, Some(part.to_string())));
                }
                Some((n, _)) => at = n,
            }
        }
        Ok((at, None))
    }

    fn lookup(&self, path: &str, follow: bool) -> Result<usize, Errno> {
        match self.walk(0, path, follow, 0)? {
            (dir, Some(name)) => self.dir(dir)?.get(&name).copied().ok_or(Errno::ENOENT),
            (dir, None) => Ok(dir),
        }
    }

    fn within(&self, mut n: usize, above: usize) -> bool {
        loop {
            if n == above {
                return true;
            }
            if n == 0 {
                return false;
            }
            n = self.parent(n);
        }
    }

    fn add(&mut self, path: &str, thing: Thing) -> Result<(), Errno> {
        let (dir, name) = self.walk(0, path, false, 0)?;
        let name = name.ok_or(Errno::EEXIST)?;
        if self.dir(dir)?.contains_key(&name) {
            return Err(Errno::EEXIST);
        }
        self.things.push(thing);
        let n = self.things.len() - 1;
        self.dir_mut(dir).insert(name, n);
        Ok(())
    }

    fn run(&mut self, call: &Call) -> Result<String, Errno> {
        let done = Ok(String::new());
        match call {
            Call::Mkdir(path) => self.add(path, Thing::Dir(BTreeMap::new()))?,
            Call::Symlink(target, path) => self.add(path, Thing::Link(target.clone()))?,
            Call::Write(path, byte) => {
                let (dir, name) = self.walk(0, path, true, 0)?;
                let name = name.ok_or(Errno::EISDIR)?;
                match self.dir(dir)?.get(&name).copied() {
                    Some(n) => match &mut self.things[n] {
                        Thing::File(content) => *content = *byte,
                        _ => return Err(Errno::EISDIR),
                    },
                    None => {
                        self.things.push(Thing::File(*byte));
                        let n = self.things.len() - 1;
                        self.dir_mut(dir).insert(name, n);
                    }
                }
            }
            Call::Unlink(path) | Call::Rmdir(path) => {
                let rmdir = matches!(call, Call::Rmdir(_));
                let (dir, name) = self.walk(0, path, false, 0)?;
                let other = if path.ends_with("..") { Errno::ENOTEMPTY } else { Errno::EBUSY };
                let name = name.ok_or(if rmdir { other } else { Errno::EISDIR })?;
                let n = *self.dir(dir)?.get(&name).ok_or(Errno::ENOENT)?;
                match (&self.things[n], rmdir) {
                    (Thing::Dir(_), false) => return Err(Errno::EISDIR),
                    (Thing::Dir(entries), true) if !entries.is_empty() => return Err(Errno::ENOTEMPTY),
                    (Thing::File(_) | Thing::Link(_), true) => return Err(Errno::ENOTDIR),
                    _ => {}
                }
                self.dir_mut(dir).remove(&name);
            }
            Call::Link(old, new) => {
                let n = self.lookup(old, false)?;
                let (dir, name) = self.walk(0, new, false, 0)?;
                let name = name.ok_or(Errno::EEXIST)?;
                if self.dir(dir)?.contains_key(&name) {
                    return Err(Errno::EEXIST);
                }
                if self.dir(n).is_ok() {
                    return Err(Errno::EPERM);
                }
                self.dir_mut(dir).insert(name, n);
            }
            Call::Rename(old, new, flags) => self.rename(old, new, *flags)?,
            Call::Stat(path) => {
                let n = self.lookup(path, true)?;
                return Ok(match &self.things[n] {
                    Thing::Dir(entries) => entries.keys().cloned().collect::<Vec<_>>().join(" "),
                    Thing::File(byte) => std::format!("file {byte}"),
                    Thing::Link(_) => return Err(Errno::ELOOP),
                });
            }
        }
        done
    }

    fn rename(&mut self, old: &str, new: &str, flags: u32) -> Result<(), Errno> {
        let (from, from_name) = self.walk(0, old, false, 0)?;
        let (to, to_name) = self.walk(0, new, false, 0)?;
        let from_name = from_name.ok_or(Errno::EBUSY)?;
        let to_name = to_name.ok_or(if flags == RENAME_NOREPLACE { Errno::EEXIST } else { Errno::EBUSY })?;
        let moved = *self.dir(from)?.get(&from_name).ok_or(Errno::ENOENT)?;
        let target = self.dir(to)?.get(&to_name).copied();
        match (target, flags) {
            (Some(_), RENAME_NOREPLACE) => return Err(Errno::EEXIST),
            (None, RENAME_EXCHANGE) => return Err(Errno::ENOENT),
            _ => {}
        }
        let exchange = flags == RENAME_EXCHANGE;
        let is_dir = |n: usize| self.dir(n).is_ok();
        if is_dir(moved) && self.within(to, moved) {
            return Err(Errno::EINVAL);
        }
        if let Some(target) = target {
            if is_dir(target) && self.within(from, target) {
                return Err(if exchange { Errno::EINVAL } else { Errno::ENOTEMPTY });
            }
            if target == moved {
                return Ok(());
            }
            if !exchange {
                match (is_dir(moved), &self.things[target]) {
                    (true, Thing::Dir(entries)) if !entries.is_empty() => return Err(Errno::ENOTEMPTY),
                    (true, Thing::Dir(_)) => {}
                    (true, _) => return Err(Errno::ENOTDIR),
                    (false, Thing::Dir(_)) => return Err(Errno::EISDIR),
                    _ => {}
                }
            }
        }
        self.dir_mut(from).remove(&from_name);
        self.dir_mut(to).insert(to_name, moved);
        if let (Some(target), true) = (target, exchange) {
            self.dir_mut(from).insert(from_name, target);
        }
        Ok(())
    }
}

fn real(p: &Process, call: &Call) -> Result<String, Errno> {
    let who = p.who();
    let done = String::new();
    match call {
        Call::Mkdir(path) => p.mkdir(path)?,
        Call::Write(path, byte) => p.write_file(path, &byte.to_string())?,
        Call::Unlink(path) => vfs::unlink(&who, AT_FDCWD, path.as_bytes())?,
        Call::Rmdir(path) => vfs::rmdir(&who, AT_FDCWD, path.as_bytes())?,
        Call::Link(old, new) => vfs::link(&who, AT_FDCWD, old.as_bytes(), AT_FDCWD, new.as_bytes(), 0)?,
        Call::Symlink(target, path) => vfs::symlink(&who, target.as_bytes(), AT_FDCWD, path.as_bytes())?,
        Call::Rename(old, new, flags) => vfs::rename(&who, AT_FDCWD, old.as_bytes(), AT_FDCWD, new.as_bytes(), *flags)?,
        Call::Stat(path) => {
            let stat = p.stat(path)?;
            if stat.st_mode & uapi::fs::S_IFMT != uapi::fs::S_IFDIR {
                return Ok(std::format!("file {}", p.read_file(path)?));
            }
            let mut names = p.list(path)?;
            names.sort();
            return Ok(names.join(" "));
        }
    }
    Ok(done)
}

fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![8 => Just("a"), 8 => Just("b"), 8 => Just("c"), 1 => Just("..")];
    proptest::collection::vec(part, 1..5).prop_map(|parts| std::format!("/{}", parts.join("/")))
}

fn call() -> impl Strategy<Value = Call> {
    let flags = prop_oneof![3 => Just(0), 1 => Just(RENAME_EXCHANGE), 1 => Just(RENAME_NOREPLACE)];
    prop_oneof![
        6 => path().prop_map(Call::Mkdir),
        3 => (path(), any::<u8>()).prop_map(|(p, b)| Call::Write(p, b)),
        2 => path().prop_map(Call::Unlink),
        2 => path().prop_map(Call::Rmdir),
        2 => (path(), path()).prop_map(|(a, b)| Call::Link(a, b)),
        2 => (prop_oneof![path(), Just("..".into()), Just("../b".into()), Just("a".into())], path())
            .prop_map(|(a, b)| Call::Symlink(a, b)),
        4 => (path(), path(), flags).prop_map(|(a, b, f)| Call::Rename(a, b, f)),
        3 => path().prop_map(Call::Stat),
    ]
}

/// Link counts are what the tree says.
fn check_counts(p: &Process, path: &str) {
    let mut subdirs = 0;
    for name in p.list(&std::format!("{path}/")).unwrap() {
        let below = std::format!("{path}/{name}");
        let stat = vfs::stat(&p.who(), AT_FDCWD, below.as_bytes(), AT_SYMLINK_NOFOLLOW).unwrap();
        if stat.st_mode & uapi::fs::S_IFMT == uapi::fs::S_IFDIR {
            subdirs += 1;
            check_counts(p, &below);
        }
    }
    assert_eq!(p.stat(&std::format!("{path}/")).unwrap().st_nlink, subdirs + 2, "{path}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn the_tree_does_what_the_model_does(calls in proptest::collection::vec(call(), 1..60)) {
        let p = Process::new();
        let mut model = Model { things: std::vec![Thing::Dir(BTreeMap::new())] };
        for call in &calls {
            prop_assert_eq!(real(&p, call), model.run(call), "{:?}", call);
        }
        check_counts(&p, "");
    }
}
