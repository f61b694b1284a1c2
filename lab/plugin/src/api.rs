//! What is used of QEMU's plugin interface, version 4 (QEMU 9.2 to 10.1), and of the GLib that QEMU brings along.
//!
//! Written from the interface's documentation ("QEMU TCG Plugins"); no header is used. All is resolved when QEMU loads the
//! plugin. Opaque things are types without values, used behind pointers only.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the interface that is asked for.
pub const VERSION: c_int = 4;

/// The plugin's own number, to be handed back.
pub type Id = u64;

/// What a plugin is told about the emulator.
#[repr(C)]
pub struct Info {
    /// `riscv64` and so on.
    pub target_name: *const c_char,
    /// Oldest and newest interface version that the emulator serves.
    pub version: [c_int; 2],
    /// A machine, not a user program.
    pub system_emulation: bool,
    /// CPUs now and at most; meaningless for user programs.
    pub cpus: [c_int; 2],
}

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )*};
}

opaque! {
    /// A block being translated.
    TranslationBlock
    /// An instruction in it.
    Instruction
    /// A register.
    RegisterHandle
}

/// A register that can be read.
#[repr(C)]
pub struct RegisterDescriptor {
    /// What to read it by.
    pub handle: *mut RegisterHandle,
    /// Its name.
    pub name: *const c_char,
    /// The group of registers it belongs to.
    pub feature: *const c_char,
}

/// GLib's array of anything.
#[repr(C)]
pub struct Array {
    /// The elements.
    pub data: *mut c_char,
    /// How many.
    pub len: c_uint,
}

/// GLib's array of bytes.
#[repr(C)]
pub struct ByteArray {
    /// The bytes.
    pub data: *mut u8,
    /// How many.
    pub len: c_uint,
}

/// Registers that a callback touches.
pub mod flags {
    use super::c_int;
    /// None.
    pub const NONE: c_int = 0;
    /// It reads.
    pub const READ: c_int = 1;
}

/// Called for a CPU.
pub type OnCpu = extern "C" fn(Id, c_uint);
/// Called for a block being translated.
pub type OnTranslation = extern "C" fn(Id, *mut TranslationBlock);
/// Called when code is run.
pub type OnExecution = extern "C" fn(c_uint, *mut c_void);
/// Called with what was given.
pub type OnEvent = extern "C" fn(Id, *mut c_void);

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_init_cb(id: Id, callback: OnCpu);
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: OnTranslation);
    pub fn qemu_plugin_register_atexit_cb(id: Id, callback: OnEvent, data: *mut c_void);

    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut TranslationBlock,
        callback: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );

    pub fn qemu_plugin_tb_n_insns(block: *const TranslationBlock) -> usize;
    pub fn qemu_plugin_tb_vaddr(block: *const TranslationBlock) -> u64;
    pub fn qemu_plugin_tb_get_insn(block: *const TranslationBlock, index: usize) -> *mut Instruction;
    pub fn qemu_plugin_insn_data(instruction: *const Instruction, to: *mut c_void, length: usize) -> usize;

    pub fn qemu_plugin_get_registers() -> *mut Array;
    pub fn qemu_plugin_read_register(handle: *mut RegisterHandle, to: *mut ByteArray) -> c_int;

    pub fn g_byte_array_new() -> *mut ByteArray;
    pub fn g_byte_array_set_size(array: *mut ByteArray, length: c_uint) -> *mut ByteArray;

    pub fn _exit(status: c_int) -> !;
}
