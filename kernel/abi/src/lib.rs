//! Linux's numbers and layouts, each with its source.
#![no_std]
