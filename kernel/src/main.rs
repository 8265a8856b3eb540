//! The kernel proper.
#![no_std]
#![no_main]
