//! The judge: builds guests, boots them under QEMU, compares our kernel with Linux, and keeps the house rules.
//!
//! It is the body of `cargo xtask` (the binary only calls [`commands::main`]) as a library, so that its parts are
//! tested one by one. Each command is a module of [`commands`] whose first lines are its manual; below them lie the
//! parts: [`process`] runs programs, [`setup`] and [`debian`] get what is missing, [`guest`] and [`image`] build what
//! boots, [`kernel`] names the kernels and builds ours, [`mod@boot`] describes one boot, [`qemu`] runs it. What judges
//! is [`contracts`], [`suites`], [`crashes`], [`linux_crashes`], [`exam`], [`mutants`], [`readers`] and [`mod@bench`];
//! [`browser`] opens pages, [`screens`] draws terminals and [`recording`] what happens in them, [`links`] follows the
//! links of pages, [`jobs`] runs many programs in one guest, [`evidence`] keeps
//! dumps of machines that died, [`results`] is what judges leave and [`page`] renders it; [`house`] reads the sources.
//!
//! Errors are `anyhow` errors almost everywhere: nothing here is called by other crates, and what a user needs is the
//! chain of what was being done. Only [`process`] has a typed error, since its callers decide by it.

pub mod bench;
pub mod binary;
pub mod boot;
pub mod browser;
pub mod commands;
pub mod contracts;
pub mod crashes;
pub mod debian;
pub mod evidence;
pub mod exam;
pub mod fuzz;
pub mod gendumps;
pub mod genlog;
pub mod guest;
pub mod hostile;
pub mod house;
pub mod image;
pub mod jobs;
pub mod kept;
pub mod kernel;
pub mod links;
pub mod linux_crashes;
pub mod mutants;
pub mod npm;
pub mod page;
pub mod paths;
pub mod plugin;
pub mod process;
pub mod qemu;
pub mod readers;
pub mod readme;
pub mod recording;
pub mod results;
pub mod screens;
pub mod second;
pub mod setup;
pub mod suites;
pub mod synth;
pub mod ways;
