//! What kwab concludes, as values; front ends put them into words and colours.

pub mod inspect;
pub mod signature;
