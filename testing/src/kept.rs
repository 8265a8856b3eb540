//! Feeds the user's store of images with what is built, so that every dump of it has names without a flag.
//!
//! The store keeps the latest GiB. An image that cannot be kept costs the flag `--symbols`, not the build.

use std::path::Path;

use kwab::symbols::{ImageBytes, Store};

/// Bytes of the store beyond which the images that were added first go: about a hundred kernels.
const MOST_BYTES: u64 = 1 << 30;

/// Keeps an image.
pub fn keep(image: &Path) {
    let store = Store::of_user();
    if store.add(&ImageBytes::File(image.to_owned())).is_ok_and(|added| added.is_new) {
        for old in store.beyond(MOST_BYTES) {
            // Another build may have removed it meanwhile.
            let _ = store.remove(&old);
        }
    }
}
