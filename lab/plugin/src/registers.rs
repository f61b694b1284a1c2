//! Reading the guest's registers.

use crate::api;
use model::{Mode, Register};
use std::ffi::CStr;

/// The registers of a CPU that are read, by the names a debugger has for them.
const NAMES: [(&CStr, Register); 11] = [
    (c"a7", Register::A7),
    (c"sstatus", Register::Sstatus),
    (c"stvec", Register::Stvec),
    (c"sepc", Register::Sepc),
    (c"scause", Register::Scause),
    (c"stval", Register::Stval),
    (c"mstatus", Register::Mstatus),
    (c"mtvec", Register::Mtvec),
    (c"mepc", Register::Mepc),
    (c"mcause", Register::Mcause),
    (c"mtval", Register::Mtval),
];
const MODE: &CStr = c"priv";
const NUMBER: &CStr = c"mhartid";

/// What registers are read by; the same for every CPU of a machine.
#[derive(Clone, Copy)]
pub struct Handles {
    mode: *mut api::RegisterHandle,
    number: *mut api::RegisterHandle,
    by_register: [*mut api::RegisterHandle; NAMES.len()],
}

// SAFETY: handles are names of registers, not addresses of any state; QEMU takes them on every CPU's thread.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}

impl Handles {
    /// Looks the registers up. To be called where a CPU exists.
    ///
    /// # Errors
    /// The name of a register that the CPU has not.
    pub fn find() -> Result<Self, String> {
        // SAFETY: the caller is QEMU's callback for a new CPU, where the list may be asked for. It is not freed: once a run.
        let list = unsafe { api::qemu_plugin_get_registers().as_ref() }.ok_or("no list of registers")?;
        let all: &[api::RegisterDescriptor] = match list.len {
            0 => &[],
            // SAFETY: QEMU's array holds `len` descriptors.
            len => unsafe { std::slice::from_raw_parts(list.data.cast(), len as usize) },
        };
        let find = |name: &CStr| {
            // SAFETY: names are strings that end with a zero byte.
            let found = all.iter().find(|one| !one.name.is_null() && unsafe { CStr::from_ptr(one.name) } == name);
            found.map(|one| one.handle).ok_or_else(|| format!("the CPU has no register {}", name.to_string_lossy()))
        };
        let mut by_register = [std::ptr::null_mut(); NAMES.len()];
        for (name, register) in NAMES {
            by_register[register as usize] = find(name)?;
        }
        Ok(Self { mode: find(MODE)?, number: find(NUMBER)?, by_register })
    }
}

/// A place that registers are read to.
pub struct Buffer(*mut api::ByteArray);

// SAFETY: the array is reached through this value only, and GLib's arrays do not care for threads.
unsafe impl Send for Buffer {}

impl Buffer {
    /// An empty one.
    pub fn new() -> Self {
        // SAFETY: GLib is there wherever QEMU is.
        Self(unsafe { api::g_byte_array_new() })
    }

    /// The value of a register of the CPU whose callback this is.
    pub fn read(&mut self, handles: &Handles, register: Register) -> u64 {
        self.value(handles.by_register[register as usize])
    }

    /// The mode that this CPU is in; a hypervisor's guest counts as the mode it thinks it is in.
    pub fn mode(&mut self, handles: &Handles) -> Mode {
        match self.value(handles.mode) & 3 {
            0 => Mode::User,
            1 => Mode::Kernel,
            _ => Mode::Firmware,
        }
    }

    /// The number of this CPU.
    pub fn number(&mut self, handles: &Handles) -> usize {
        usize::try_from(self.value(handles.number)).unwrap_or(usize::MAX)
    }

    fn value(&mut self, handle: *mut api::RegisterHandle) -> u64 {
        // SAFETY: the array is ours and the handle QEMU's. Reading appends to the array; its bytes are there until the
        // next change. Only callbacks come here, so there is a current CPU.
        let bytes = unsafe {
            api::g_byte_array_set_size(self.0, 0);
            let count = api::qemu_plugin_read_register(handle, self.0);
            match usize::try_from(count) {
                Ok(count) if count > 0 && count <= (*self.0).len as usize => {
                    std::slice::from_raw_parts((*self.0).data, count)
                }
                _ => &[],
            }
        };
        bytes.iter().take(8).rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}
