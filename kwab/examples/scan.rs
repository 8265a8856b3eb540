//! Throwaway.
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let dir = std::env::args().nth(2).map(std::path::PathBuf::from);
    let start = std::time::Instant::now();
    let options = kwab::import::Options { source: path.clone(), folder: dir.clone() };
    let (report, dumps) = kwab::import::import(std::fs::File::open(path).unwrap(), &options, &mut |_| {}).unwrap();
    let t = start.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string_pretty(&report).unwrap());
    println!("{t:.3} s {:.0} MB/s", report.bytes as f64 / t / 1e6);
    if let Some(dir) = dir {
        for (n, d) in dumps.into_iter().enumerate() {
            d.file.unwrap().persist(dir.join(format!("o{n}.kwab"))).unwrap();
        }
    }
}
