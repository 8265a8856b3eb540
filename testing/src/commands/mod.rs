//! The command tree of `cargo xtask`: one module per command, its `//!` the manual.

pub mod bench;
pub mod bench_boot;
pub mod bench_import;
pub mod bench_symbols;
pub mod book;
pub mod boot;
pub mod browser;
pub mod contracts;
pub mod crashes;
pub mod demo;
pub mod dist;
pub mod events;
pub mod exam;
pub mod examples;
pub mod fuzz_syscalls;
pub mod gen_dumps;
pub mod gen_log;
pub mod hogs;
pub mod hostile;
pub mod house_rules;
pub mod image;
pub mod kernel;
pub mod kernel_names;
pub mod linux;
pub mod linux_crashes;
pub mod lost;
pub mod mutants;
pub mod outside;
pub mod package;
pub mod parquet;
pub mod perfetto;
pub mod python;
pub mod readers;
pub mod results;
pub mod sarif;
pub mod second_reader;
pub mod selftest;
pub mod setup;
pub mod showcase;
pub mod sizes;
pub mod soak;
pub mod suite;
pub mod test;

use std::process::ExitCode;

use clap::Parser;

use crate::setup::Consent;

/// Builds, boots and judges this workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct CommandLine {
    /// Install what is missing without asking.
    #[arg(long, global = true)]
    yes: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Install everything that any command needs.
    Setup,
    /// Boot a kernel in QEMU: an interactive shell, or one command whose status is returned.
    Boot(crate::boot::Options),
    /// Make the book of docs/, with a reference of all commands and pictures of screens.
    Book(book::BookArguments),
    /// Measure the benchmarks under our kernel and Linux.
    Bench(bench::BenchArguments),
    /// Open reports of kwab in a headless Chromium, hostile ones too.
    Browser(browser::BrowserArguments),
    /// Run the contracts under our kernel and compare with Linux.
    Contracts(contracts::ContractsArguments),
    /// Let our kernel die in every way and check what it tells.
    Crashes(crashes::CrashesArguments),
    /// Crash a program and our kernel, import the dumps and the log, inspect them.
    Demo,
    /// Make the release archive of kwab and try what is in it.
    Dist(dist::DistArguments),
    /// Boot our kernel with every debug category on and let kwab account for every event.
    Events,
    /// Plant known bugs in our kernel and ask whether triage names them.
    Exam(exam::ExamArguments),
    /// Let the example kernels in Rust and C die and compare what kwab says with their bugs.
    Examples(examples::ExamplesArguments),
    /// Let an unprivileged fuzzer of system calls attack a kernel.
    FuzzSyscalls(fuzz_syscalls::FuzzSyscallsArguments),
    /// Let an unprivileged user take all the memory it can get in every way.
    Hogs(hogs::HogsArguments),
    /// Build the Python package, install it in a virtual environment and run its tests.
    Python(python::PythonArguments),
    /// Open exported core files in gdb, eu-stack and drgn and compare their stacks with ours.
    Readers(readers::ReadersArguments),
    /// Give Perfetto traces to Perfetto's own descriptors and trace processor.
    Perfetto(perfetto::PerfettoArguments),
    /// Give Parquet files of kwab to DuckDB and DataFusion, and to Spark where that is asked for.
    Parquet(parquet::ParquetArguments),
    /// Pack the crates that can be published and look into the archives.
    Package {
        /// Compile each crate from its package and those of the others too, which takes minutes.
        #[arg(long)]
        verify: bool,
    },
    /// Check SARIF of `kwab ci` against the JSON schema of SARIF 2.1.0.
    Sarif,
    /// Check the house rules.
    HouseRules,
    /// Give mutated dumps to everything that kwab does with a dump.
    Hostile(hostile::HostileArguments),
    /// Compare the dump format's two readers on every dump and on mutated ones.
    SecondReader(second_reader::SecondReaderArguments),
    /// Run everything that must hold before a change lands.
    Test(test::TestArguments),
    /// Measure the time from QEMU's start to the first prompt beside Linux.
    BenchBoot(bench_boot::BenchBootArguments),
    /// Measure kwab import beside jq, Python's json and serde_json.
    BenchImport(bench_import::BenchImportArguments),
    /// Measure symbolisation beside addr2line and llvm-symbolizer.
    BenchSymbols(bench_symbols::BenchSymbolsArguments),
    /// Write small dumps of a fleet to index, the same for the same options.
    GenDumps(gen_dumps::GenDumpsArguments),
    /// Write a serial log to import, the same for the same options.
    GenLog(gen_log::GenLogArguments),
    /// Boot the machine crate's own tests.
    Selftest(selftest::SelftestArguments),
    /// Make the crash that the README begins with, and the symbols beside it.
    Showcase,
    /// Let the stress program run on a kernel.
    Soak(soak::SoakArguments),
    /// Run a third-party test suite under our kernel and compare with Linux.
    Suite(suite::SuiteArguments),
    /// Render the page of results from what the judges left.
    Results(results::ResultsArguments),
    /// Write the base initramfs to a file.
    Image(image::ImageArguments),
    /// Fetch Debian's Linux and print where it lies.
    Linux,
    /// Let Debian's Linux die in known ways and compare what kwab says of its logs with the truth.
    LinuxCrashes(linux_crashes::LinuxCrashesArguments),
    /// Change our kernel in random functions and ask whether kwab finds the changed function.
    Mutants(mutants::Arguments),
    /// Build our kernel and print where it lies.
    Kernel(kernel::KernelArguments),
}

/// Runs the command line; errors end with status 1, a guest's or a test's own status is passed on.
pub fn main() -> ExitCode {
    let arguments = CommandLine::parse();
    let consent = Consent { yes: arguments.yes };
    let result = match arguments.command {
        Command::Setup => setup::run(consent),
        Command::Book(arguments) => book::run(&arguments, consent),
        Command::Boot(arguments) => boot::run(&arguments, consent),
        Command::Bench(arguments) => bench::run(&arguments, consent),
        Command::Browser(arguments) => browser::run(&arguments, consent),
        Command::Contracts(arguments) => contracts::run(&arguments, consent),
        Command::Crashes(arguments) => crashes::run(&arguments, consent),
        Command::Demo => demo::run(consent),
        Command::Dist(arguments) => dist::run(&arguments, consent),
        Command::Events => events::run(consent),
        Command::Exam(arguments) => exam::run(&arguments, consent),
        Command::Examples(arguments) => examples::run(&arguments, consent),
        Command::FuzzSyscalls(arguments) => fuzz_syscalls::run(&arguments, consent),
        Command::Hogs(arguments) => hogs::run(&arguments, consent),
        Command::Python(arguments) => python::run(&arguments, consent),
        Command::Readers(arguments) => readers::run(&arguments, consent),
        Command::Perfetto(arguments) => perfetto::run(&arguments),
        Command::Parquet(arguments) => parquet::run(&arguments),
        Command::Package { verify } => package::run(verify),
        Command::Sarif => sarif::run(),
        Command::HouseRules => house_rules::run(),
        Command::Hostile(arguments) => hostile::run(&arguments),
        Command::SecondReader(arguments) => second_reader::run(&arguments),
        Command::Test(arguments) => test::run(&arguments, consent),
        Command::BenchBoot(arguments) => bench_boot::run(&arguments, consent),
        Command::BenchImport(arguments) => bench_import::run(&arguments),
        Command::BenchSymbols(arguments) => bench_symbols::run(&arguments),
        Command::GenDumps(arguments) => gen_dumps::run(&arguments),
        Command::GenLog(arguments) => gen_log::run(&arguments),
        Command::Selftest(arguments) => selftest::run(&arguments, consent),
        Command::Showcase => showcase::run(consent),
        Command::Soak(arguments) => soak::run(&arguments, consent),
        Command::Suite(arguments) => suite::run(&arguments, consent),
        Command::Results(arguments) => results::run(&arguments),
        Command::Image(arguments) => image::run(&arguments, consent),
        Command::Linux => linux::run(consent),
        Command::LinuxCrashes(arguments) => linux_crashes::run(&arguments, consent),
        Command::Mutants(arguments) => mutants::run(&arguments, consent),
        Command::Kernel(arguments) => kernel::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
