//! The devices of the machine: the serial console and the interrupt controller.

use drivers::plic::Plic;
use drivers::uart::Uart;
use fs::tty::ConsoleDevice;
use hal::boot::BootInfo;
use hal::sync::Once;
use uapi::Result;

struct Console {
    uart: Uart,
    interrupt: u32,
}

impl ConsoleDevice for Console {
    fn write(&self, bytes: &[u8]) {
        self.uart.write(bytes);
    }
}

/// A console without a device: output is lost, input never comes.
struct NoConsole;

impl ConsoleDevice for NoConsole {
    fn write(&self, _: &[u8]) {}
}

static CONSOLE: Once<Console> = Once::new();
static PLIC: Once<Plic> = Once::new();

/// Takes over the console from the firmware, and sends its interrupt to the boot hart.
pub fn init(info: &'static BootInfo) {
    if let Some(device) = info.uart {
        let _ = CONSOLE.set(Console { uart: Uart::new(device), interrupt: device.interrupt });
        hal::console::set_sink(|bytes| {
            if let Some(console) = CONSOLE.get() {
                console.uart.write(bytes);
            }
        });
    }
    if let Some(description) = info.plic {
        let plic = Plic::new(description);
        if let Some(console) = CONSOLE.get()
            && !plic.enable(console.interrupt, hal::hart::id())
        {
            hal::log!("console: interrupt {} cannot be enabled", console.interrupt);
        }
        let _ = PLIC.set(plic);
    }
}

/// Makes the console known to programs.
pub fn register() -> Result<()> {
    match CONSOLE.get() {
        Some(console) => fs::tty::init_console(console),
        None => fs::tty::init_console(&NoConsole),
    }
    .map(|_| ())
}

/// An external interrupt on this hart.
pub fn interrupt() {
    let Some(plic) = PLIC.get() else { return };
    while let Some(source) = plic.claim(hal::hart::id()) {
        if let Some(console) = CONSOLE.get().filter(|c| c.interrupt == source) {
            while let Some(byte) = console.uart.read() {
                fs::tty::input(&[byte]);
            }
        }
        plic.complete(hal::hart::id(), source);
    }
}
