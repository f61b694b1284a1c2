//! FUTEX_WAKE_OP's little language: what to do to the second word, and what to ask of its old value (futex(2)).

use uapi::Errno;
use uapi::futex::*;

/// The decoded operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WakeOp {
    op: u32,
    cmp: u32,
    oparg: u32,
    cmparg: u32,
}

/// The 12-bit argument, sign-extended.
fn extend(value: u32) -> u32 {
    ((value << 20) as i32 >> 20) as u32
}

impl WakeOp {
    /// Decodes `val3` of futex(2). `ENOSYS` for an unknown operation or comparison.
    pub fn decode(word: u32) -> Result<Self, Errno> {
        let op = word >> 28 & 7;
        let cmp = word >> 24 & 15;
        let mut oparg = extend(word >> 12 & 0xfff);
        if op > FUTEX_OP_XOR || cmp > FUTEX_OP_CMP_GE {
            return Err(Errno::ENOSYS);
        }
        if word >> 28 & FUTEX_OP_OPARG_SHIFT != 0 {
            oparg = 1 << (oparg & 31);
        }
        Ok(Self { op, cmp, oparg, cmparg: extend(word & 0xfff) })
    }

    /// The second word's new value.
    pub fn apply(&self, old: u32) -> u32 {
        match self.op {
            FUTEX_OP_SET => self.oparg,
            FUTEX_OP_ADD => old.wrapping_add(self.oparg),
            FUTEX_OP_OR => old | self.oparg,
            FUTEX_OP_ANDN => old & !self.oparg,
            _ => old ^ self.oparg,
        }
    }

    /// Whether waiters on the second word are woken, by its old value. Comparisons are signed.
    pub fn holds(&self, old: u32) -> bool {
        let (old, arg) = (old as i32, self.cmparg as i32);
        match self.cmp {
            FUTEX_OP_CMP_EQ => old == arg,
            FUTEX_OP_CMP_NE => old != arg,
            FUTEX_OP_CMP_LT => old < arg,
            FUTEX_OP_CMP_LE => old <= arg,
            FUTEX_OP_CMP_GT => old > arg,
            _ => old >= arg,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(op: u32, cmp: u32, oparg: u32, cmparg: u32) -> u32 {
        op << 28 | cmp << 24 | (oparg & 0xfff) << 12 | cmparg & 0xfff
    }

    #[test]
    fn operations_and_comparisons() {
        let op = WakeOp::decode(encode(FUTEX_OP_ADD, FUTEX_OP_CMP_LT, -1i32 as u32, 0)).unwrap();
        assert_eq!(op.apply(5), 4);
        assert!(op.holds(-3i32 as u32) && !op.holds(0));
        let op = WakeOp::decode(encode(FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT, FUTEX_OP_CMP_GE, 5, -7i32 as u32)).unwrap();
        assert_eq!(op.apply(1), 33);
        assert!(op.holds(-7i32 as u32) && !op.holds(-8i32 as u32));
        assert_eq!(WakeOp::decode(encode(FUTEX_OP_ANDN, 0, 3, 0)).unwrap().apply(7), 4);
        assert_eq!(WakeOp::decode(encode(FUTEX_OP_SET, 0, 3, 0)).unwrap().apply(7), 3);
        assert_eq!(WakeOp::decode(encode(5, 0, 0, 0)), Err(Errno::ENOSYS));
        assert_eq!(WakeOp::decode(encode(0, 6, 0, 0)), Err(Errno::ENOSYS));
    }
}
