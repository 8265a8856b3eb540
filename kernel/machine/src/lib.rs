//! The room for unsafe code: everything that touches the processor or raw memory.
#![no_std]
