//! Any fields of any kind of record survive writing and reading, byte for byte.

mod support;

use kwab_format::record::{SCHEMA, Stamp};
use kwab_format::*;
use proptest::prelude::*;
use proptest::sample::select;
use support::*;

fn cases(normal: u32) -> ProptestConfig {
    let cases = if cfg!(miri) { 4 } else { normal };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Integers of every width, limits included.
fn integer(bits: u32) -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..=bits).prop_map(|(v, keep)| if keep == 0 { 0 } else { v >> (64 - keep) })
}

fn value(shape: Shape) -> BoxedStrategy<Val> {
    match shape {
        Shape::Unsigned(bits) | Shape::Enum { bits, .. } => integer(bits).prop_map(Val::Int).boxed(),
        Shape::Signed => integer(64).prop_map(Val::Int).boxed(),
        Shape::Bool => (0..2u64).prop_map(Val::Int).boxed(),
        Shape::Bytes => {
            let bytes = |lengths| proptest::collection::vec(any::<u8>(), lengths);
            prop_oneof![8 => bytes(0..40), 1 => bytes(240..270)].prop_map(Val::Bytes).boxed()
        }
        Shape::List { fields: inner, .. } => proptest::collection::vec(fields(inner), 0..5).prop_map(Val::List).boxed(),
    }
}

/// Each field present or absent.
fn fields(schema: &'static [FieldSchema]) -> BoxedStrategy<Vec<(u8, Val)>> {
    let each: Vec<_> = schema
        .iter()
        .map(|f| {
            let number = f.number;
            proptest::option::weighted(0.7, value(f.shape).prop_map(move |v| (number, v)))
        })
        .collect();
    each.prop_map(|fields| fields.into_iter().flatten().collect()).boxed()
}

fn record() -> impl Strategy<Value = (u8, Vec<(u8, Val)>)> {
    select(SCHEMA).prop_flat_map(|schema| {
        (Just(schema.kind), fields(schema.fields), fields(Stamp::FIELDS)).prop_map(|(kind, mut own, stamp)| {
            own.extend(stamp);
            (kind, own)
        })
    })
}

/// Field numbers that neither the records of `kind` nor their stamps use.
fn unknown_fields(kind: u8) -> Vec<u8> {
    let own = SCHEMA.iter().find(|s| s.kind == kind).expect("a kind of the schema").fields;
    let used = |number| own.iter().chain(Stamp::FIELDS).any(|f| f.number == number);
    (1..=255).filter(|&number| !used(number)).collect()
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn any_record_survives((kind, fields) in record()) {
        let bytes = encode_record(kind, &fields);
        let decoded = only_record(&bytes).decode().expect("a sound record");
        prop_assert!(!matches!(decoded, AnyRecord::Unknown(_)));
        prop_assert_eq!(written(&decoded), bytes);
    }

    #[test]
    fn unknown_fields_and_any_order_do_not_change_what_is_read(
        (kind, fields) in record(), pick in any::<prop::sample::Index>(), v in any::<u64>(),
    ) {
        let free = unknown_fields(kind);
        let future = free[pick.index(free.len())];
        let plain = encode_record(kind, &fields);
        let known = only_record(&plain).decode();
        let more = encode_fields(&[(future, Val::Int(v))]);
        // Ascending order is the writer's duty, not something a reader may rely on.
        let mut body = more.clone();
        body.extend_from_slice(&plain[4..]);
        let raw = RawRecord { kind: RecordKind(kind), body: &body };
        prop_assert_eq!(raw.decode(), known);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(kind in any::<u8>(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(record) = (RawRecord { kind: RecordKind(kind), body: &body }).decode() {
            let again = written(&record);
            prop_assert_eq!(only_record(&again).decode(), Ok(record), "writing normalises and loses nothing");
        }
    }
}

#[test]
fn bytes_of_every_length_form_survive() {
    for len in [0, 1, 253, 254, 255, 256, 65_535, 65_536, 300_000] {
        if cfg!(miri) && len > 7000 {
            continue;
        }
        let bytes = vec![0xA5; len];
        let record = AnyRecord::from(record::Text { bytes: Some(&bytes), ..record::Text::default() });
        assert_eq!(written(&record), encode_record(48, &[(2, Val::Bytes(bytes.clone()))]), "{len}");
    }
}

#[test]
fn a_list_written_from_a_slice_equals_the_list_read_back() {
    let regs: Vec<_> = (0..300u16).map(|i| record::Reg::new(record::RegId(i), u64::from(i) << 40)).collect();
    let mine = record::Registers { regs: Some(List::new(&regs)), ..record::Registers::default() };
    let bytes = written(&mine.into());
    assert_eq!(only_record(&bytes).decode(), Ok(AnyRecord::Registers(mine)));
}
