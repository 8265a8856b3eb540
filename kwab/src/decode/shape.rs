//! What instructions do, whatever address a build puts them at: the same code of two builds has the same shape.
//!
//! A branch inside its function is told by the number of the instruction it goes to, an address outside by the name of
//! what lies there, a small constant in memory by its bytes. An address that nothing names is the same as any other.

use std::hash::{DefaultHasher, Hash, Hasher};

use iced_x86::{Decoder, DecoderOptions, Instruction as Decoded, OpKind, Register};

/// What an instruction's operands are looked up in.
pub trait Surroundings {
    /// Whether a number that an instruction contains is the address of something.
    fn is_address(&self, value: u64) -> bool;

    /// A number for the function or variable at an address and the place in it; the same in both builds.
    fn named(&self, addr: u64) -> Option<u64>;

    /// Fills `out` with bytes that cannot change while the code runs; whether they are known.
    fn constant(&self, addr: u64, out: &mut [u8]) -> bool;
}

/// What one instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Where it is.
    pub at: u64,
    /// All of it, but addresses.
    pub exact: u64,
    /// What of it does not depend on where the compiler keeps values: no registers, no stack slots, no distances.
    pub loose: u64,
}

/// The longest constant that is compared: a register of AVX-512.
const LONGEST: usize = 64;

/// The shapes of consecutive instructions. Bytes that are not an instruction end the list.
#[must_use]
pub fn shapes(bytes: &[u8], start: u64, around: &dyn Surroundings) -> Vec<Shape> {
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut code = Vec::new();
    while decoder.can_decode() {
        let decoded = decoder.decode();
        if decoded.is_invalid() {
            break;
        }
        code.push(decoded);
    }
    let number = |addr: u64| code.binary_search_by_key(&addr, Decoded::ip).ok();
    let shape = |(own, decoded): (usize, &Decoded)| {
        let (mut exact, mut loose) = (DefaultHasher::new(), DefaultHasher::new());
        decoded.code().hash(&mut exact);
        decoded.mnemonic().hash(&mut loose);
        (decoded.has_lock_prefix(), decoded.has_rep_prefix()).hash(&mut exact);
        for operand in 0..decoded.op_count() {
            let mut both = |value: Told| {
                value.hash(&mut exact);
                match value {
                    Told::Inside(target) => (target > own).hash(&mut loose),
                    value => value.hash(&mut loose),
                }
            };
            match decoded.op_kind(operand) {
                OpKind::Register => decoded.op_register(operand).hash(&mut exact),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => {
                    let target = decoded.near_branch_target();
                    both(number(target).map_or_else(|| outside(target, around), Told::Inside));
                }
                OpKind::Memory => {
                    memory(decoded, around, &mut exact, &mut loose);
                }
                _ => match decoded.try_immediate(operand) {
                    Ok(value) if around.is_address(value) => both(outside(value, around)),
                    Ok(value) => both(Told::Number(value)),
                    // String instructions and far branches: the code says all of it.
                    Err(_) => {}
                },
            }
        }
        Shape { at: decoded.ip(), exact: exact.finish(), loose: loose.finish() }
    };
    code.iter().enumerate().map(shape).collect()
}

/// What a number in an instruction means.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Told {
    /// The instruction of this number, in the same function.
    Inside(usize),
    /// Something with a name.
    Named(u64),
    /// An address without a name.
    Elsewhere,
    /// The number itself.
    Number(u64),
    /// Bytes that the instruction reads.
    Bytes(Vec<u8>),
}

fn outside(addr: u64, around: &dyn Surroundings) -> Told {
    around.named(addr).map_or(Told::Elsewhere, Told::Named)
}

/// Adds an operand in memory.
fn memory(decoded: &Decoded, around: &dyn Surroundings, exact: &mut DefaultHasher, loose: &mut DefaultHasher) {
    let (base, displacement) = (decoded.memory_base(), decoded.memory_displacement64());
    (decoded.memory_segment(), decoded.memory_index_scale()).hash(exact);
    (decoded.memory_index(), decoded.memory_size()).hash(exact);
    if matches!(base, Register::RIP | Register::EIP) || around.is_address(displacement) {
        let told = constant(decoded, displacement, around).unwrap_or_else(|| outside(displacement, around));
        told.hash(exact);
        told.hash(loose);
        return;
    }
    (base, displacement).hash(exact);
    if !matches!(base, Register::RSP | Register::RBP) {
        displacement.hash(loose);
    }
}

/// The bytes that an instruction reads from a nameless constant; a pointer among them counts as what it points to.
fn constant(decoded: &Decoded, addr: u64, around: &dyn Surroundings) -> Option<Told> {
    let size = decoded.memory_size().size();
    if size == 0 || size > LONGEST || decoded.memory_index() != Register::None || around.named(addr).is_some() {
        return None;
    }
    let mut bytes = [0; LONGEST];
    let bytes = bytes.get_mut(..size).filter(|_| decoded.mnemonic() != iced_x86::Mnemonic::Lea)?;
    if !around.constant(addr, bytes) {
        return None;
    }
    let word = <[u8; 8]>::try_from(&*bytes).ok().map(u64::from_le_bytes).filter(|word| around.is_address(*word));
    Some(word.map_or_else(|| Told::Bytes(bytes.to_vec()), |word| outside(word, around)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One function, at an address of each build.
    struct Build(u64);

    impl Surroundings for Build {
        fn is_address(&self, value: u64) -> bool {
            (0x10_0000..0x20_0000).contains(&value)
        }

        fn named(&self, addr: u64) -> Option<u64> {
            (addr == self.0).then_some(7)
        }

        fn constant(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }

    /// `cmp edi,BOUND; ja +5; call CALLED; ret`
    fn code(bound: u8, branch: u8, at: u64, called: u64) -> Vec<u8> {
        let distance = called.wrapping_sub(at + 10) as u32;
        let mut bytes = vec![0x83, 0xff, bound, branch, 5, 0xe8];
        bytes.extend(distance.to_le_bytes());
        bytes.push(0xc3);
        bytes
    }

    fn of(bound: u8, branch: u8, at: u64, called: u64) -> Vec<(u64, u64)> {
        let all = shapes(&code(bound, branch, at, called), at, &Build(called));
        all.iter().map(|shape| (shape.exact, shape.loose)).collect()
    }

    #[test]
    fn code_that_only_moved_keeps_its_shape() {
        let (here, there) = (of(4, 0x77, 0x10_1000, 0x10_5000), of(4, 0x77, 0x10_2340, 0x10_9000));
        assert_eq!((here.len(), &here), (4, &there));
    }

    #[test]
    fn a_bound_a_condition_and_a_callee_are_seen() {
        let old = of(4, 0x77, 0x10_1000, 0x10_5000);
        let differing = |new: &[(u64, u64)]| -> Vec<usize> {
            old.iter().zip(new).enumerate().filter(|(_, (a, b))| a.0 != b.0 && a.1 != b.1).map(|(at, _)| at).collect()
        };
        assert_eq!(differing(&of(5, 0x77, 0x10_1000, 0x10_5000)), [0]);
        assert_eq!(differing(&of(4, 0x73, 0x10_1000, 0x10_5000)), [1]);
        let other = shapes(&code(4, 0x77, 0x10_1000, 0x10_6000), 0x10_1000, &Build(0x10_5000));
        let other: Vec<(u64, u64)> = other.iter().map(|shape| (shape.exact, shape.loose)).collect();
        assert_eq!(differing(&other), [2]);
    }

    #[test]
    fn another_register_is_seen_but_not_loosely() {
        // mov rax,[rdi+8]; mov rcx,[rdi+8]; mov rax,[rdi+16]
        let build = Build(0);
        let one = |bytes: &[u8]| shapes(bytes, 0x10_1000, &build)[0];
        let (rax, rcx, other) =
            (one(&[0x48, 0x8b, 0x47, 8]), one(&[0x48, 0x8b, 0x4f, 8]), one(&[0x48, 0x8b, 0x47, 16]));
        assert!(rax.exact != rcx.exact && rax.loose == rcx.loose);
        assert!(rax.loose != other.loose);
    }
}
