//! riscv_hwprobe(2): the call, the vDSO, the slow reference and Linux say the same.

use crate::{BootTest, Expect, GuestFile, Outcome};

/// Four harts that differ: in extensions, in how the tree tells them, in block sizes; one cannot be told from the first.
const DIFFERENT: &[&str] = &[
    r#"/cpus/cpu@1 riscv,isa-extensions = "i", "m", "a", "f", "d", "c", "zba", "zbs", "zicboz", "zihpm", "svadu""#,
    "/cpus/cpu@1 riscv,cboz-block-size = <128>",
    r#"/cpus/cpu@2 riscv,isa = "rv64imafdc_zicbom1p0_zicboz_zkn_zfa""#,
    "/cpus/cpu@2 riscv,isa-extensions",
    "/cpus/cpu@2 riscv,isa-base",
    "/cpus/cpu@2 riscv,cboz-block-size",
];

/// Three kinds of harts as Linux understands them, too: all by lists (a hart without one it takes for one without any
/// extension, once another has one), and with blocks of one size (of different ones it takes the first for all).
pub const THREE_KINDS: &[&str] = &[
    r#"/cpus/cpu@1 riscv,isa-extensions = "i", "m", "a", "f", "d", "c", "zba", "zbs", "zicboz", "zihpm", "svadu""#,
    r#"/cpus/cpu@2 riscv,isa-extensions = "i", "m", "a", "f", "d", "c", "zicbom", "zicboz", "zkn", "zfa", "zicntr""#,
];

/// The tests.
pub const TESTS: &[BootTest] = &[
    BootTest::new("boot/hwprobe", &["/tests/probing"], Expect::Tap).timeout(120),
    BootTest::new("boot/hwprobe-different-harts", &["/tests/probing"], Expect::Tap).smp(4).tree(DIFFERENT).timeout(120),
    BootTest::new("boot/hwprobe-queries", &["/tests/probing", "--queries", "1000000"], Expect::Holds(same))
        .smp(4)
        .tree(DIFFERENT)
        .timeout(300),
    as_linux("boot/hwprobe-as-linux", None),
    as_linux("boot/hwprobe-as-linux-max", Some("max")),
    as_linux(
        "boot/hwprobe-as-linux-small",
        Some("rv64,zba=false,zbb=false,zbc=false,zicboz=false,zfa=false,sv57=false"),
    ),
    as_linux(
        "boot/hwprobe-as-linux-ids",
        Some("rv64,mvendorid=0x489,marchid=7,mimpid=1,zacas=true,zabha=true,zcb=true"),
    ),
    // The clock makes sure that the same hart boots both.
    as_linux("boot/hwprobe-as-linux-three-kinds", None).icount().smp(4).tree(THREE_KINDS),
    BootTest::new("boot/hwprobe-discovery", BOUNDARY, Expect::Holds(discovery)).icount(),
    BootTest::new("boot/hwprobe-discovery-8", BOUNDARY, Expect::Holds(discovery)).icount().smp(8),
    BootTest::new("boot/hwprobe-speed-given", &["/tests/probing", "--print"], Expect::Holds(slow))
        .append("unaligned_scalar_speed=slow"),
];

/// Others, and more.
pub const SOAK: &[BootTest] = &[BootTest::new(
    "soak/hwprobe-queries",
    &["/tests/probing", "--queries", "100000000", "--seed", "2"],
    Expect::Holds(same),
)
.smp(4)
.tree(DIFFERENT)
.timeout(3_600)];

/// What the call says of each hart and to random legal queries, here and on Linux 7.2. The
/// program leaves out what the book says that Limen does not show.
const fn as_linux(name: &'static str, cpu: Option<&'static str>) -> BootTest {
    let test = BootTest::new(name, &["/tests/probing", "--print"], Expect::SameAsLinux);
    // What is measured is not compared: on a busy host a Linux may find a hart slow.
    let test = test.linux("7.2").append("unaligned_scalar_speed=fast").timeout(180);
    match cpu {
        Some(cpu) => test.cpu(cpu),
        None => test,
    }
}

fn same(outcome: &Outcome) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let last = text.lines().last().unwrap_or_default();
    if outcome.status == 0 && last.starts_with("same: ") { Ok(()) } else { Err(format!("the last line is {last:?}")) }
}

const BOUNDARY: &[&str] = &["cat", "/proc/limen/boundary"];

/// What a hart may take to find out what it can do, and what the boot may: ticks of 100 ns, 100 instructions.
const DISCOVERY: u64 = 2_000;
const BOOT: u64 = 20_000;
const BOOT_OF_A_FURTHER_HART: u64 = 3_000;

fn discovery(outcome: &Outcome) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let ticks = |name: &str| -> Vec<u64> {
        text.lines().filter_map(|line| line.trim_start().strip_prefix(name)?.trim().parse().ok()).collect()
    };
    let harts = text.lines().filter(|line| line.starts_with("hart ")).count() as u64;
    let (each, entry, first_user) = (ticks("discovery_ticks "), ticks("entry_ticks "), ticks("first_user_ticks "));
    let boot = first_user.iter().sum::<u64>().saturating_sub(entry.iter().sum());
    println!("{harts} harts: discovery {each:?}, boot {boot} ticks of 100 ns");
    let all = harts != 0 && each.len() as u64 == harts;
    if !all || each.iter().any(|ticks| !(1..=DISCOVERY).contains(ticks)) {
        return Err(format!("discovery took {each:?} ticks, more than {DISCOVERY}"));
    }
    let most = BOOT + (harts - 1) * BOOT_OF_A_FURTHER_HART;
    if boot > most { Err(format!("the boot took {boot} ticks, more than {most}")) } else { Ok(()) }
}

fn slow(outcome: &Outcome) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stdout);
    let line = text.lines().find(|line| line.starts_with("MISALIGNED_SCALAR_PERF")).unwrap_or_default();
    if line.split_whitespace().skip(1).eq(["0x2", "0x2"]) { Ok(()) } else { Err(format!("not slow: {line:?}")) }
}

/// The command, on Linux as well as here.
pub const COMMAND: &[BootTest] = &[
    BootTest::new("boot/hwprobe-command", &["hwprobe", "--which", "IMA_EXT_0=FD+C"], Expect::Exactly(0, "0-1\n")),
    // What is measured is not compared.
    BootTest::new("boot/hwprobe-command-as-linux", &["sh", "/tests/hwprobe.sh"], Expect::SameAsLinux)
        .files(&[SCRIPT])
        .linux("7.2")
        .append("unaligned_scalar_speed=fast")
        .timeout(120),
];

const SCRIPT: GuestFile = ("/tests/hwprobe.sh", 0o644, include_bytes!("../scripts/hwprobe.sh"));
