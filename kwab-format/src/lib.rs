//! The bytes of a kwab dump: sections, records and the three envelopes; no_std, no alloc.
#![no_std]
