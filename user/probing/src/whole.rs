//! The answers and the rest of the system tell the same.

use crate::entry::{Pair, ask, by_call, by_vdso, entries, is_linux, online, plain, which};
use kit::check::{Must, Outcome};
use kit::uapi::auxv::AT_HWCAP;
use kit::uapi::mman::{MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_READ, PROT_WRITE};
use kit::{clock, ensure, equal, file, memory};
use riscv_hwprobe::isa::Isa;
use riscv_hwprobe::keys::{IMA_EXT_0, IMA_EXT_1};
use rt::tap::Test;

pub const TESTS: &[Test] = &[
    Test::new("whole/cpuinfo-and-hwcap-agree", strings),
    Test::new("whole/cpuinfo-has-the-identities", identities),
    Test::new("whole/sysfs-has-as-many-harts", sysfs),
    Test::new("whole/highest-address", highest),
    Test::new("whole/time-frequency", frequency),
    Test::new("whole/misaligned-accesses-are-measured", misaligned),
    Test::new("whole/no-query-makes-a-call", no_call),
];

/// The value of the line of `/proc/cpuinfo` that begins with `name`, of processor `hart`.
fn line<'a>(text: &'a str, hart: usize, name: &str) -> Option<&'a str> {
    let section = text.split("\n\n").nth(hart)?;
    let line = section.lines().find(|line| line.split(['\t', ':']).next() == Some(name))?;
    line.split_once(": ").map(|(_, value)| value)
}

fn strings() -> Outcome {
    let mut buffer = [0; 16_384];
    let text = file::text(c"/proc/cpuinfo", &mut buffer).must("read cpuinfo")?;
    let mut pairs = [IMA_EXT_0, IMA_EXT_1].map(|key| ask(key as i64));
    plain(by_call, &mut pairs, None);
    let common = Isa::from_text(line(text, 0, "isa").ok_or("no isa line")?);
    // Linux shows pointer masking, shadow stacks and the like only where the kernel does its part.
    equal!(pairs[0].value & !(1 << 49), common.word(IMA_EXT_0), "extensions of all harts");
    equal!(pairs[1].value, common.word(IMA_EXT_1), "extensions of all harts, second word");
    let mut buffer = [0; 1024];
    let auxv = file::read(c"/proc/self/auxv", &mut buffer).must("read auxv")?;
    let word = |at: usize| auxv.get(at * 8..at * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes);
    let entry = (0..auxv.len() / 16).find(|entry| word(entry * 2) == AT_HWCAP);
    let hwcap = word(entry.ok_or("no AT_HWCAP")? * 2 + 1);
    equal!(hwcap, common.hwcap(), "AT_HWCAP");
    for hart in (0..8).filter(|hart| online() >> hart & 1 != 0) {
        plain(by_call, &mut pairs, Some(1 << hart));
        let own = Isa::from_text(line(text, hart, "hart isa").ok_or("no hart isa line")?);
        let shared = 0b111;
        equal!(pairs[0].value & !shared, own.word(IMA_EXT_0) & !shared, "extensions of a hart");
        equal!(pairs[0].value & shared, common.word(IMA_EXT_0) & shared, "floating point and C of all");
    }
    Ok(())
}

fn identities() -> Outcome {
    let mut buffer = [0; 16_384];
    let text = file::text(c"/proc/cpuinfo", &mut buffer).must("read cpuinfo")?;
    for hart in (0..8).filter(|hart| online() >> hart & 1 != 0) {
        let mut pairs = [0, 1, 2].map(ask);
        plain(by_call, &mut pairs, Some(1 << hart));
        for (pair, name) in pairs.iter().zip(["mvendorid", "marchid", "mimpid"]) {
            let shown = line(text, hart, name).and_then(riscv_hwprobe::number);
            equal!(shown, Some(pair.value), "an identity");
        }
    }
    Ok(())
}

fn sysfs() -> Outcome {
    let mut buffer = [0; 64];
    let text = file::text(c"/sys/devices/system/cpu/online", &mut buffer).must("read online")?;
    let mut set = 0_u64;
    for range in text.trim_end().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().unwrap_or(99);
        (number(first)..=number(last)).for_each(|hart| set |= 1 << hart);
    }
    equal!(set, online(), "harts online");
    Ok(())
}

fn highest() -> Outcome {
    let mut pair = [ask(7)];
    plain(by_call, &mut pair, None);
    let end = pair[0].value as usize;
    let map =
        |at| memory::map(at, memory::PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ensure!(map(end - memory::PAGE).is_ok(), "the last page cannot be mapped");
    ensure!(map(end).is_err(), "a page beyond can be mapped");
    Ok(())
}

fn frequency() -> Outcome {
    let mut pair = [ask(8)];
    plain(by_call, &mut pair, None);
    let (ticks, start) = (clock::ticks(), clock::now());
    clock::sleep(50_000_000);
    let (ticks, passed) = (clock::ticks() - ticks, clock::now() - start);
    let measured = u128::from(ticks) * 1_000_000_000 / u128::from(passed);
    let (measured, told) = (measured as u64, pair[0].value);
    ensure!(measured.abs_diff(told) < told / 20, "the clock does not tick as told");
    Ok(())
}

fn misaligned() -> Outcome {
    let mut pairs = [5, 9, 10].map(ask);
    plain(by_call, &mut pairs, None);
    equal!(pairs[0].value, pairs[1].value, "the old key and the new one");
    ensure!((1..=4).contains(&pairs[1].value), "nothing is known of scalar accesses");
    ensure!(pairs[2].value <= 4, "no such speed of vector accesses");
    Ok(())
}

/// Calls that all harts have served; what this costs is more calls.
fn calls() -> Result<u64, &'static str> {
    let mut buffer = [0; 32_768];
    let text = file::text(c"/proc/limen/boundary", &mut buffer).must("read the counters")?;
    Ok(text.lines().filter_map(|line| file::number(line.trim_start(), "calls_fast")).sum())
}

fn no_call() -> Outcome {
    const ROUNDS: u64 = 2_000;
    if is_linux() || entries().len() < 2 {
        return Ok(());
    }
    let before = calls()?;
    for round in 0..ROUNDS {
        let mut pairs = [ask(4), ask(5), ask(round as i64 % 20), ask(-1)];
        plain(by_vdso, &mut pairs, None);
        plain(by_vdso, &mut pairs, Some(1 << (round % 2) | 1));
        let mut pairs = [Pair { key: 4, value: 1 << (round % 64) }, ask(round as i64 % 20)];
        let mut set = round % 4;
        which(by_vdso, &mut pairs, &mut set);
        let (small, at) = (0xff_u8, pairs.as_mut_ptr().expose_provenance());
        by_vdso(at, 2, 1, core::ptr::from_ref(&small).addr(), 0);
        by_vdso(at, 0, 0, 0, 0);
        by_vdso(at, 1, 0, 0, 2);
    }
    ensure!(calls()? - before < ROUNDS / 4, "queries make calls");
    Ok(())
}
