//! `cargo xtask parquet [--spark]`: gives Parquet files of `kwab` to engines that know nothing of the writer.
//!
//! DuckDB and DataFusion must find in them what `kwab list`, `inspect` and `export` say of the repository's dumps, and
//! give for every query of `docs/parquet.md` what the page shows. With `--spark` Spark's local mode, which is large and
//! needs a Java runtime, reads a partitioned catalogue as well. The engines come from PyPI and stay in the cache.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::debian::NoSource;
use crate::process::Call;
use crate::{binary, paths};

/// ParquetArguments of `parquet`.
#[derive(Debug, Default, Args)]
pub struct ParquetArguments {
    /// Have Spark read a partitioned catalogue too.
    #[arg(long)]
    spark: bool,
    /// Put what the queries give into `docs/parquet.md` instead of comparing.
    #[arg(long)]
    write: bool,
}

/// The engines, and the module by which each is found.
const ENGINES: &[&str] = &["duckdb==2.0.1", "datafusion==55.0.0", "pyarrow==26.0.1"];
const SPARK: &[&str] = &["pyspark==4.3.0"];
/// The longest that fetching and judging may take.
const LIMIT: Duration = Duration::from_secs(900);

/// Runs the command.
pub fn run(arguments: &ParquetArguments) -> Result<ExitCode> {
    let kwab = binary::kwab()?;
    let python = python("parquet-python", ENGINES).context(NoSource::of("parquet"))?;
    let (folder, fleet) = fleet()?;
    let scripts = paths::root().join("testing/parquet");
    let judge = Call::new(&python).arg("-B").arg(scripts.join("judge.py")).arg(&kwab).arg(&fleet).arg(&folder);
    let judge = judge.arg(paths::root().join("docs/parquet.md")).limit(LIMIT);
    if arguments.write { judge.arg("--write") } else { judge }.show()?;
    if arguments.spark {
        let python = self::python("spark-python", SPARK).context(NoSource::of("parquet"))?;
        let spark = Call::new(&python).arg("-B").arg(scripts.join("spark.py")).arg(&kwab).arg(&folder);
        spark.env("PYSPARK_PYTHON", &python).limit(LIMIT).show()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A folder for tables, and in it one with the dumps of the repository.
fn fleet() -> Result<(PathBuf, PathBuf)> {
    let folder = paths::build("parquet")?;
    let fleet = folder.join("fleet");
    std::fs::remove_dir_all(&folder).context("clearing build/parquet")?;
    std::fs::create_dir_all(&fleet)?;
    for dump in std::fs::read_dir(paths::root().join("testing/dumps"))?.flatten() {
        let path = dump.path();
        if path.extension().is_some_and(|end| end == "kwab") {
            std::fs::copy(&path, fleet.join(dump.file_name())).with_context(|| paths::shown(&path))?;
        }
    }
    Ok((folder, fleet))
}

/// A Python with these packages, made once as long as their list stays the same.
fn python(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let kept = paths::cache(name)?;
    let (python, installed) = (kept.join("bin/python"), kept.join("installed.txt"));
    let wanted = packages.join("\n");
    if paths::read(&installed).is_ok_and(|have| have == wanted) {
        return Ok(python);
    }
    Call::new("python3").args(["-m", "venv", "--clear"]).arg(&kept).limit(LIMIT).capture()?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    Call::new(&python).args(install).args(packages).limit(LIMIT).capture()?;
    paths::write(&installed, wanted.as_bytes())?;
    Ok(python)
}
