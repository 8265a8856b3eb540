//! Kernel rules that run anywhere; the kernel carries them out.
#![no_std]
