//! The end of an address space.

use hal::hart;
use hal::mem::layout::user_top;

use super::area::Backing;
use super::{AddressSpace, Inner};

impl AddressSpace {
    /// The end of a space, by one who holds no lock that an interrupt's handler takes: interrupts are let in on the way.
    pub fn release(mut self) {
        self.tear_down(true);
    }

    fn tear_down(&mut self, windows: bool) {
        let Inner { areas, table, .. } = self.inner.get_mut();
        let pause = |chunk: usize| {
            if windows && chunk != 0 {
                hart::window();
            }
        };
        table.tear_down(|table, gather| {
            if windows {
                gather.allow_windows();
            }
            for (n, chunk) in areas.chunks().enumerate() {
                pause(n);
                for area in chunk.iter().filter(|area| area.past.is_touched()) {
                    table.clear(area.start, area.end, gather);
                }
            }
            // Page tables of areas that lie close together are freed in one go. What is below has been freed already,
            // so only what is still to come bounds the tables that may go. Areas that were never touched count too: a
            // neighbour that is gone may have left them its table.
            let (mut low, mut high) = (0, 0);
            for (n, chunk) in areas.chunks().enumerate() {
                pause(n);
                for area in chunk {
                    if area.start > high + (4 << 21) {
                        table.free_tables(low, high, 0, area.start, gather);
                        low = area.start;
                    }
                    high = area.end;
                }
            }
            table.free_tables(low, high, 0, user_top(), gather);
        });
        let mut n = 0;
        areas.clear(|chunk| {
            pause(n);
            n += 1;
            for area in chunk {
                if let Backing::Object(object) = &area.backing {
                    object.remove_area(area.slot);
                }
            }
        });
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        if self.inner.get_mut().areas.len() != 0 {
            self.tear_down(false);
        }
    }
}
