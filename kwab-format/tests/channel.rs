//! A dump channel holds dumps among padding, noise and the rests of older dumps; each comes out whole.

mod support;

use kwab_format::stream::{Dumps, slot_is_used};
use kwab_format::*;
use support::*;

#[test]
fn dumps_between_padding_and_noise_are_found_whole() {
    let mut channel = vec![0; 512];
    let mut places = Vec::new();
    for dump in DUMPS {
        places.push(channel.len());
        channel.extend_from_slice(dump);
        channel.extend_from_slice(b"noise \xF5KWS \x89KWAB\r\n\x1A\0\0");
        channel.resize(channel.len().next_multiple_of(512), 0);
    }
    let found: Vec<_> = Dumps::new(&channel).collect();
    assert_eq!(found.iter().map(|f| f.offset).collect::<Vec<_>>(), places);
    assert_eq!(found.iter().map(|f| f.bytes).collect::<Vec<_>>(), DUMPS);
}

#[test]
fn a_short_new_dump_over_a_long_old_one_is_told_apart_from_its_rest() {
    let mut region = DUMPS[1].to_vec();
    region[..DUMPS[0].len()].copy_from_slice(DUMPS[0]);
    let found: Vec<_> = Dumps::new(&region).collect();
    assert_eq!(found[0].bytes, DUMPS[0]);
    assert_eq!(found.len(), 2, "the rest of the old dump is a dump without a beginning");
    assert_eq!(found[1].dump_id, Reader::new(DUMPS[1]).unwrap().dump_id().unwrap());
    let (good, bad) = read(found[1].bytes);
    assert!(good.len() > 5 && bad[0].kind == DefectKind::BadFileHeader);
}

#[test]
fn a_cut_new_dump_over_an_old_one_keeps_its_whole_sections_for_every_cut() {
    let (old, new) = (DUMPS[1], DUMPS[2]);
    let (whole, _) = read(new);
    for cut in (48..new.len()).step_by(stride(97)) {
        let mut region = old.to_vec();
        region[..cut].copy_from_slice(&new[..cut]);
        let first = Dumps::new(&region).next().expect("the new dump");
        let (good, bad) = read(first.bytes);
        let before = whole.iter().filter(|s| s.offset + s.header.total_len() as usize <= cut).count();
        assert_eq!(good.len(), before, "cut at {cut}: {bad:?}");
        assert_eq!(bad.last().map(|d| d.kind), Some(DefectKind::NoEnd), "cut at {cut}");
    }
}

#[test]
fn a_second_panic_while_dumping_yields_both_dumps() {
    let mut channel = DUMPS[1][..2000].to_vec();
    channel.extend_from_slice(DUMPS[0]);
    let found: Vec<_> = Dumps::new(&channel).map(|f| f.bytes.len()).collect();
    assert_eq!(found, [2000, DUMPS[0].len()]);
}

#[test]
fn a_dump_whose_file_header_is_lost_is_still_found() {
    let found: Vec<_> = Dumps::new(&DUMPS[1][30..]).collect();
    assert_eq!(found.len(), 1);
    let (good, bad) = read(found[0].bytes);
    assert_eq!(good.len(), read(DUMPS[1]).0.len());
    assert_eq!(bad[0].kind, DefectKind::BadFileHeader);
}

#[test]
fn a_slot_is_in_use_while_a_sound_file_header_stands_in_it() {
    assert!(slot_is_used(DUMPS[0]));
    assert!(!slot_is_used(&[0; 4096]));
    assert!(!slot_is_used(&DUMPS[0][1..]));
    assert!(!slot_is_used(&DUMPS[0][..40]));
    assert_eq!(Dumps::new(&[0; 4096]).next(), None);
}
