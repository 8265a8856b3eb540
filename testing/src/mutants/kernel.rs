//! The image of a kernel with mutations: turning one on, and reading which were asked for from the memory of a guest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;

use super::switch::{HEAD, MAGIC};
use crate::paths;

/// A kernel with mutations in it.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its ELF, with no mutation on.
    pub file: PathBuf,
    image: Vec<u8>,
    /// Where the switches are in the image.
    switches: usize,
}

impl Kernel {
    /// Keeps a copy of an ELF as `kernel` in a folder.
    pub fn keep(program: &Path, folder: &Path) -> Result<Self> {
        let image = fs::read(program).with_context(|| format!("cannot read {}", paths::shown(program)))?;
        let found: Vec<usize> = memmem::find_iter(&image, MAGIC).collect();
        ensure!(found.len() == 1, "{} has {} tables of switches", paths::shown(program), found.len());
        let file = folder.join("kernel");
        paths::write(&file, &image)?;
        Ok(Self { file, switches: found[0], image })
    }

    /// Writes the image with mutation `number` on.
    pub fn write(&self, number: u32, to: &Path) -> Result<()> {
        let mut image = self.image.clone();
        image[self.switches + MAGIC.len()..self.switches + HEAD].copy_from_slice(&number.to_le_bytes());
        paths::write(to, &image)
    }

    /// The mutations that a guest asked for, from its memory. An error when the switches are not in it.
    pub fn asked(&self, memory: &[u8]) -> Result<BTreeSet<u32>> {
        let mut asked = BTreeSet::new();
        for at in memmem::find_iter(memory, MAGIC) {
            // A copy of the image that did not run has no mark, and neither has what lies behind the last switch.
            let marks = memory[at + HEAD..].iter().take_while(|mark| **mark <= 1);
            asked.extend((0..).zip(marks).filter(|(_, mark)| **mark == 1).map(|(number, _)| number));
        }
        ensure!(!asked.is_empty(), "no switch was asked for, or the memory of the guest is not all there");
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_changed_and_marks_are_read_where_the_kernel_ran() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let image = [b"ELF....", MAGIC.as_slice(), &u32::MAX.to_le_bytes(), &[0; 8], b"rest"].concat();
        fs::write(&program, &image).unwrap();
        let kernel = Kernel::keep(&program, folder.path()).unwrap();
        let other = folder.path().join("other");
        kernel.write(5, &other).unwrap();
        let changed = fs::read(&other).unwrap();
        assert_eq!(changed.len(), image.len());
        assert_eq!(changed[7 + MAGIC.len()..][..4], 5u32.to_le_bytes());
        let mut ran = image.clone();
        ran[7 + HEAD + 2] = 1;
        ran[7 + HEAD + 6] = 1;
        assert_eq!(kernel.asked(&[image.clone(), ran].concat()).unwrap(), BTreeSet::from([2, 6]));
        assert!(kernel.asked(&image).is_err());
        fs::write(&program, b"nothing").unwrap();
        assert!(Kernel::keep(&program, folder.path()).is_err());
    }
}
