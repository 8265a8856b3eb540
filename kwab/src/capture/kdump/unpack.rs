//! Unpacks a page of a kdump-compressed file. It becomes a page exactly or is an error, so no claim takes memory.

use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::PAGE;

/// How a page is packed (`DUMP_DH_COMPRESSED_…`).
pub(super) const ZLIB: u32 = 1;
pub(super) const LZO: u32 = 2;
pub(super) const SNAPPY: u32 = 4;
pub(super) const ZSTD: u32 = 0x20;
/// The largest window of a zstd frame; one of a page needs no more than its content.
const LARGEST_WINDOW: u64 = 128 << 10;

/// The page that these bytes are.
///
/// # Errors
/// Why they are none.
pub(super) fn page(bytes: &[u8], flags: u32) -> Result<Box<[u8]>, String> {
    let mut page = vec![0; PAGE as usize];
    let unpacked = match flags {
        0 => {
            page.truncate(bytes.len());
            page.copy_from_slice(bytes);
            Ok(bytes.len())
        }
        ZLIB => zlib(bytes, &mut page),
        LZO => lzokay::decompress::decompress(bytes, &mut page).map_err(|error| format!("not LZO: {error}")),
        SNAPPY => {
            let unpacked = snap::raw::Decoder::new().decompress(bytes, &mut page);
            unpacked.map_err(|error| format!("not snappy: {error}"))
        }
        ZSTD => zstd(bytes, &mut page),
        other => Err(format!("packed in a way that is not known, {other:#x}")),
    }?;
    if unpacked as u64 != PAGE {
        return Err(format!("they are {unpacked} bytes, not a page"));
    }
    Ok(page.into_boxed_slice())
}

fn zlib(bytes: &[u8], page: &mut [u8]) -> Result<usize, String> {
    let mut stream = Decompress::new(true);
    let status =
        stream.decompress(bytes, page, FlushDecompress::Finish).map_err(|error| format!("not zlib: {error}"))?;
    if status == Status::StreamEnd {
        Ok(stream.total_out() as usize)
    } else {
        Err(format!("zlib data without its end, or of more than {} bytes", page.len()))
    }
}

fn zstd(mut bytes: &[u8], page: &mut [u8]) -> Result<usize, String> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(LARGEST_WINDOW);
    let not = |error: FrameDecoderError| format!("not zstd: {error}");
    decoder.init(&mut bytes).map_err(not)?;
    // A block has at most 128 KiB, so that a page of nothing but long runs costs no more than one of them.
    let whole = decoder.decode_blocks(&mut bytes, BlockDecodingStrategy::UptoBytes(page.len() + 1)).map_err(not)?;
    if !whole || decoder.can_collect() > page.len() {
        return Err(format!("zstd data without its end, or of more than {} bytes", page.len()));
    }
    std::io::Read::read(&mut decoder, page).map_err(|error| format!("not zstd: {error}"))
}
