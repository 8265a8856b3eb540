//! Takes the files of images out of a dump that carries them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kwab_format::record::ImageFile;

use super::quote::text;
use crate::model::{Case, Located};
use crate::symbols::{BuildId, ImageBytes};

/// The files that a dump carries, and a sentence for each that is not there whole.
pub(super) fn files(case: &Case<'_>) -> (Vec<ImageBytes>, Vec<String>) {
    let mut pieces: BTreeMap<&[u8], Vec<&Located<ImageFile<'_>>>> = BTreeMap::new();
    for piece in &case.image_files {
        // A redacted dump has lost the bytes, and says so elsewhere.
        if let Some(id) = piece.build_id.filter(|id| !id.is_empty() && piece.bytes.is_some()) {
            pieces.entry(id).or_default().push(piece);
        }
    }
    let (mut whole, mut problems) = (Vec::new(), Vec::new());
    for (id, mut pieces) in pieces {
        pieces.sort_by_key(|piece| piece.file_offset);
        let name = text(pieces.first().and_then(|piece| piece.name));
        match joined(&pieces) {
            Some(bytes) => {
                // The name is a key too: the build-id tells two files of one name apart.
                let name = format!("in the dump ({:.8}):{name}", BuildId(id.to_vec()).to_string());
                whole.push(ImageBytes::Memory { name, bytes: Arc::from(bytes) });
            }
            None => {
                let id = BuildId(id.to_vec());
                problems.push(format!("the dump carries only a part of {name} with build-id {id}"));
            }
        }
    }
    (whole, problems)
}

/// The bytes of a file, if its pieces follow each other from its first byte to its last. Allocates what they hold, not
/// what they claim.
fn joined(pieces: &[&Located<ImageFile<'_>>]) -> Option<Vec<u8>> {
    let length = pieces.first()?.length?;
    let held: usize = pieces.iter().filter_map(|piece| piece.bytes).map(<[u8]>::len).sum();
    if u64::try_from(held).ok()? != length {
        return None;
    }
    let mut bytes = Vec::with_capacity(held);
    for piece in pieces {
        if piece.file_offset? != bytes.len() as u64 || piece.length? != length {
            return None;
        }
        bytes.extend_from_slice(piece.bytes?);
    }
    Some(bytes)
}
