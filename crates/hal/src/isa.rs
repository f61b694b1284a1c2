//! What the harts can do: the extensions of the device tree that Limen lets programs rely on.
//!
//! The table of extensions, with what they imply and need, is the `riscv-hwprobe` crate's. Here is the choice: vector and
//! what depends on it is not shown, since the kernel does not keep vector state; nor is what needs the kernel's help in
//! other ways that Limen does not give. A cache-block extension without a block size is of no use and is not shown either.

pub use riscv_hwprobe::isa::Isa;

/// Shadow stacks, landing pads, pointer masking.
const HIDDEN: [&str; 3] = ["zicfiss", "zicfilp", "supm"];

/// Names of the cache-block extensions, in the order of [`Blocks`].
const BLOCK: [&str; 3] = ["zicbom", "zicboz", "zicbop"];

/// Block sizes in bytes of Zicbom, Zicboz and Zicbop; 0 where the tree does not tell.
pub type Blocks = [u32; 3];

/// The extensions of one hart: the strings of `riscv,isa-extensions` where `riscv,isa-base` names a base that Limen runs
/// on, else the older `riscv,isa`.
pub(crate) fn find(base: &str, extensions: &[u8], text: &str, blocks: Blocks) -> Isa {
    let isa = if base == "rv64i" && !extensions.is_empty() {
        let names = extensions.split(|&b| b == 0);
        Isa::from_names(names.filter_map(|name| core::str::from_utf8(name).ok()))
    } else {
        Isa::from_old_text(text)
    };
    let mut isa = isa.without_vector().without(&HIDDEN);
    for (name, size) in BLOCK.iter().zip(blocks) {
        if !size.is_power_of_two() {
            isa = isa.without(&[name]);
        }
    }
    isa
}

#[cfg(test)]
mod tests {
    use super::{Isa, find};
    use std::string::ToString;

    #[test]
    fn the_list_counts_where_its_base_is_known() {
        let list = b"i\0m\0a\0f\0d\0c\0zba\0";
        let found = |base, text| find(base, list, text, [0; 3]);
        assert_eq!(found("rv64i", "rv64imac"), Isa::from_names(["i", "m", "a", "f", "d", "c", "zba"]));
        assert_eq!(found("", "rv64imac"), Isa::from_old_text("rv64imac"));
        assert_eq!(find("rv64i", b"", "rv64imac", [0; 3]), Isa::from_old_text("rv64imac"));
    }

    #[test]
    fn vector_and_what_needs_the_kernel_are_not_shown() {
        let isa = find("", b"", "rv64imafdcvh_zve64d_zvbb_zicfilp_zicfiss_supm_xtheadvector", [0; 3]);
        assert_eq!(isa, Isa::from_old_text("rv64imafdch"));
        assert!(!isa.to_string()[4..].contains('v'), "{isa}");
    }

    #[test]
    fn cache_blocks_need_a_size() {
        let text = "rv64i_zicbom_zicboz_zicbop";
        let isa = find("", b"", text, [64, 0, 48]);
        assert!(isa.has("zicbom") && !isa.has("zicboz") && !isa.has("zicbop"));
    }
}
