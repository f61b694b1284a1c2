//! The lab's eye in QEMU: a plugin that counts what each hart executes and prints it as one JSON document at exit.
//!
//! Use, arguments and output are described in `lab/README.md`; what is concluded from what is seen, in the crate
//! `limen-lab-model`. Here is only the glue: each block of guest code is decoded when QEMU translates it, with the mode
//! read at that moment (QEMU never runs one translation in two modes), and one callback at its start tells the model that
//! a hart enters it. A marker has a callback of its own, and so has the last instruction of a few blocks.

mod api;
mod registers;

use model::{Block, Blocks, DEPTHS, Hart, Machine, Open, Register, Report};
use registers::{Buffer, Handles};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, OnceLock};

/// Read by QEMU before anything else.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = api::VERSION;

static STATE: OnceLock<State> = OnceLock::new();

struct State {
    harts: Box<[Seat]>,
    blocks: Mutex<(Blocks, Buffer)>,
    handles: OnceLock<Handles>,
    open: Open,
    target: String,
    output: Mutex<(String, File)>,
}

/// A hart, what it is read with, and whether the last instruction of its block was begun, for blocks that want it.
struct Seat(UnsafeCell<(Hart, Buffer, bool)>);

// SAFETY: only the callbacks of the CPU with the same number use it (see `arrived`), and QEMU runs one of these at a time;
// at exit all CPUs have been stopped.
unsafe impl Sync for Seat {}

/// The machine as the model sees it.
struct Live<'a> {
    state: &'a State,
    buffer: &'a mut Buffer,
    reached_end: bool,
}

impl Machine for Live<'_> {
    fn read(&mut self, register: Register) -> u64 {
        self.state.handles.get().map_or(0, |handles| self.buffer.read(handles, register))
    }

    fn reached_end(&mut self) -> bool {
        self.reached_end
    }
}

/// Says what is wrong and ends QEMU, whose own message would not help.
fn refuse(message: &str) -> ! {
    eprintln!("limen-lab-plugin: {message}");
    std::process::exit(1)
}

/// The file named by `out=FILE`, the only argument.
fn output_path(arguments: &[String]) -> Result<String, String> {
    let mut path = None;
    for argument in arguments {
        match argument.split_once('=') {
            Some(("out", "")) => return Err("out= names no file".into()),
            Some(("out", _)) if path.is_some() => return Err("out= is given twice".into()),
            Some(("out", file)) => path = Some(file.to_owned()),
            _ => return Err(format!("unknown argument {argument:?}; there is only out=FILE")),
        }
    }
    path.ok_or_else(|| "where to? out=FILE is missing".into())
}

/// Called by QEMU once, before the machine starts.
///
/// # Safety
/// QEMU's promise: `info` and the `argc` strings at `argv` are valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: api::Id,
    info: *const api::Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (info, target, arguments) = unsafe {
        let info = &*info;
        let text = |string: *const c_char| CStr::from_ptr(string).to_string_lossy().into_owned();
        let count = usize::try_from(argc).unwrap_or(0);
        let arguments: Vec<String> = (0..count).map(|index| text(*argv.add(index))).collect();
        (info, text(info.target_name), arguments)
    };
    if target != "riscv64" || !info.system_emulation {
        refuse(&format!("this is for machines of qemu-system-riscv64, not for {target}"));
    }
    let path = output_path(&arguments).unwrap_or_else(|error| refuse(&error));
    let file = File::create(&path).unwrap_or_else(|error| refuse(&format!("cannot create {path}: {error}")));
    let harts = usize::try_from(info.cpus[1]).unwrap_or(1).max(1);
    let state = State {
        harts: (0..harts).map(|_| Seat(UnsafeCell::new((Hart::default(), Buffer::new(), false)))).collect(),
        blocks: Mutex::new((Blocks::default(), Buffer::new())),
        handles: OnceLock::new(),
        open: Open::new(),
        target,
        output: Mutex::new((path, file)),
    };
    if STATE.set(state).is_err() {
        refuse("loaded twice");
    }
    // SAFETY: the callbacks have the types that the interface asks for and live as long as the plugin, which is never
    // unloaded.
    unsafe {
        api::qemu_plugin_register_vcpu_init_cb(id, on_cpu);
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
        api::qemu_plugin_register_atexit_cb(id, on_exit, std::ptr::null_mut());
    }
    0
}

extern "C" fn on_cpu(_: api::Id, _: c_uint) {
    let Some(state) = STATE.get() else { return };
    state.handles.get_or_init(|| Handles::find().unwrap_or_else(|error| refuse(&error)));
}

extern "C" fn on_translation(_: api::Id, block: *mut api::TranslationBlock) {
    let Some(state) = STATE.get() else { return };
    let Some(handles) = state.handles.get() else { return };
    let Ok(mut guard) = state.blocks.lock() else { return };
    let (blocks, buffer) = &mut *guard;
    // SAFETY: QEMU hands over a block that is valid during this call, with as many instructions as it says.
    let (pc, instructions) = unsafe {
        let count = api::qemu_plugin_tb_n_insns(block);
        let instructions = (0..count).map(|index| api::qemu_plugin_tb_get_insn(block, index));
        (api::qemu_plugin_tb_vaddr(block), instructions.collect::<Vec<_>>())
    };
    let words: Vec<u32> = instructions.iter().map(|instruction| word(*instruction)).collect();
    let known: &'static Block = blocks.block(pc, buffer.mode(handles), &words);
    // SAFETY: block and instructions as above; the data handed over is a block that lives for ever, or a number. Reading
    // registers at a block's start is announced.
    unsafe {
        let data = std::ptr::from_ref(known).cast_mut().cast();
        api::qemu_plugin_register_vcpu_tb_exec_cb(block, on_entry, api::flags::READ, data);
        for (index, number) in known.markers() {
            let data = std::ptr::without_provenance_mut(index << 16 | usize::from(number));
            api::qemu_plugin_register_vcpu_insn_exec_cb(instructions[index], on_marker, api::flags::NONE, data);
        }
        if known.wants_end()
            && let [_, .., last] = instructions[..]
        {
            let none = std::ptr::null_mut();
            api::qemu_plugin_register_vcpu_insn_exec_cb(last, on_last, api::flags::NONE, none);
        }
    }
}

fn word(instruction: *mut api::Instruction) -> u32 {
    let mut bytes = [0; 4];
    // SAFETY: QEMU writes at most as many bytes as it is told.
    unsafe { api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len()) };
    u32::from_le_bytes(bytes)
}

thread_local! {
    /// The hart whose block this thread of QEMU entered last.
    static HART: Cell<usize> = const { Cell::new(0) };
    static NUMBER: RefCell<Buffer> = RefCell::new(Buffer::new());
}

/// Which hart enters a block. QEMU 10 says so only if each CPU has a thread: where they take turns on one, as with
/// `-icount`, callbacks get the number of the CPU for which the block was translated, whoever runs it. So the hart itself
/// is asked, if there are several; they are numbered from 0.
fn arrived(state: &State) -> usize {
    if state.harts.len() > 1
        && let Some(handles) = state.handles.get()
    {
        HART.set(NUMBER.with_borrow_mut(|buffer| buffer.number(handles)));
    }
    HART.get()
}

extern "C" fn on_entry(_: c_uint, block: *mut c_void) {
    let Some(state) = STATE.get() else { return };
    let Some(seat) = state.harts.get(arrived(state)) else { return };
    // SAFETY: see `Seat`; and the data is what `on_translation` handed over, a block that lives for ever.
    let ((hart, buffer, reached), block) = unsafe { (&mut *seat.0.get(), &*block.cast_const().cast::<Block>()) };
    let reached_end = std::mem::take(reached);
    hart.enter(block, &state.open, &mut Live { state, buffer, reached_end });
}

/// The last instruction of a block that wants to know is begun. A store that QEMU generates itself would be cheaper, but
/// goes astray on machines of several harts for the reason given at `arrived`.
extern "C" fn on_last(_: c_uint, _: *mut c_void) {
    let Some(seat) = STATE.get().and_then(|state| state.harts.get(HART.get())) else { return };
    // SAFETY: see `Seat`.
    unsafe { (*seat.0.get()).2 = true };
}

extern "C" fn on_marker(_: c_uint, data: *mut c_void) {
    let Some(state) = STATE.get() else { return };
    let Some(seat) = state.harts.get(HART.get()) else { return };
    // SAFETY: see `Seat`.
    let (hart, ..) = unsafe { &mut *seat.0.get() };
    hart.marker(data.addr() >> 16, (data.addr() & 0xffff) as u16, &state.open);
}

extern "C" fn on_exit(_: api::Id, _: *mut c_void) {
    let Some(state) = STATE.get() else { return };
    let (Ok(guard), Ok(mut output)) = (state.blocks.lock(), state.output.lock()) else { return };
    // SAFETY: see `Seat`: QEMU has stopped its CPUs.
    let harts = state.harts.iter().map(|seat| unsafe { &(*seat.0.get()).0 });
    let report = Report {
        format: Report::FORMAT,
        plugin: env!("CARGO_PKG_VERSION").into(),
        target: state.target.clone(),
        harts: state.harts.len() as u32,
        depths: DEPTHS.to_vec(),
        regions: model::regions(harts, &guard.0),
    };
    let (path, file) = &mut *output;
    let written = serde_json::to_string_pretty(&report)
        .map_err(std::io::Error::from)
        .and_then(|text| file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")));
    if let Err(error) = written {
        eprintln!("limen-lab-plugin: cannot write {path}: {error}");
        // SAFETY: ends the process; the exit handlers, of which this is one, are not run again.
        unsafe { api::_exit(1) }
    }
}
