//! Throwaway: raw speed of lines -> records -> sections.
use kwab::import::{emit::DumpWriter, event::*, lex::Lexer, lines::Lines};
use kwab_format::wire::RecordType;
use kwab_format::{BootId, DumpId, FileHeader, SectionKind, record::Stamp};
struct Sink<W>(DumpWriter<W>, u64);
impl<W: std::io::Write> EventSink for Sink<W> {
    #[inline(always)]
    fn event<'a, T: RecordType<'a>>(&mut self, _kind: EventKind, record: &T) {
        self.1 += 1;
        self.0.put(SectionKind::EVENTS, record);
    }
}
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let out = std::fs::File::create(std::env::args().nth(2).unwrap()).unwrap();
    let start = std::time::Instant::now();
    let mut lines = Lines::new(std::fs::File::open(path).unwrap());
    let mut sink = Sink(DumpWriter::new(out, FileHeader::new(DumpId(1), BootId([0; 16]))), 0);
    let mut scratch = vec![0; 2 << 20];
    let mut extra = Extra::default();
    let mut bad = 0;
    let mut bytes = 0;
    while let Some(line) = lines.next_line().unwrap() {
        bytes += line.bytes.len() + 1;
        if line.bytes.starts_with(b"DBG {") {
            let mut lexer = Lexer::new(line.bytes, 4, &mut scratch);
            let stamp = Stamp { line: Some(line.number), ..Stamp::default() };
            if read_event(&mut lexer, stamp, &mut extra, &mut sink).is_err() || lexer.at() != line.bytes.len() {
                bad += 1;
            }
        }
    }
    let n = sink.1;
    sink.0.finish().unwrap();
    let t = start.elapsed().as_secs_f64();
    println!("{n} events {bad} bad {bytes} bytes {t:.3} s {:.0} MB/s", bytes as f64 / t / 1e6);
}
