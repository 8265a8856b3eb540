//! Owns the records that keep what has no better form: log bytes, console text, torn lines, unknown events, notes.

fields! {
    /// Event of a type that this version does not know, kept as it stood.
    record UnknownEvent {
        /// Value of its `type` member.
        1 type_name: &'a [u8],
        /// The whole object.
        2 json: &'a [u8],
        /// Process, when it says one.
        3 pid: u32,
    }
}

fields! {
    /// A piece of the kernel's log.
    record LogChunk {
        /// The bytes, as they were logged.
        1 bytes: &'a [u8],
        /// Offset of the first among all bytes ever logged.
        2 log_offset: u64,
        /// Severity, 0 emergency to 7 debug.
        3 level: u8,
    }
}

open_enum! {
    /// What a kept text is.
    TextKind: u16 {
        /// Console output that is not an event.
        1 CONSOLE = "console",
        /// An event line that is cut or torn.
        2 TORN = "torn event",
        /// An event line that cannot be parsed.
        3 MALFORMED = "malformed event",
        /// The text of a panic.
        4 PANIC = "panic text",
        /// A printed register block.
        5 REGISTERS = "register text",
        /// A printed flight recorder.
        6 FLIGHT = "flight recorder text",
        /// A printed ring of system calls.
        7 SYSCALLS = "syscall text",
        /// A kernel log that was printed in base64, decoded.
        8 LOG_DUMP = "kernel log dump",
        /// An armoured line that is damaged or of another dump.
        9 ARMOUR = "armoured line",
        /// Bytes that are not text.
        10 BINARY = "binary",
        /// Output of the firmware or boot loader.
        11 FIRMWARE = "firmware",
    }
}

fields! {
    /// Input that is kept as it stood.
    record Text {
        /// What it is.
        1 kind: TextKind,
        /// The bytes, as they stood in the input.
        2 bytes: &'a [u8],
        /// Whether the next [`Text`] goes on with the same piece.
        3 continues: bool,
        /// Why it was not understood.
        4 problem: &'a [u8],
        /// Times the same bytes came in a row. Absent is 1.
        5 repeated: u64,
    }
}

fields! {
    /// What a recorder did not keep.
    record Drops {
        /// Name of the recorder, for example `flight`.
        1 recorder: &'a [u8],
        /// Events since boot.
        2 total: u64,
        /// Events that newer ones have overwritten.
        3 overwritten: u64,
        /// Events that could not be recorded.
        4 dropped: u64,
        /// Events the recorder can hold.
        5 capacity: u64,
        /// Process whose recorder it is.
        6 pid: u32,
    }
}

open_enum! {
    /// What a note is about.
    NoteKind: u16 {
        /// Something the writer could not get.
        1 MISSING = "missing",
        /// Damage found in the input or in the dump that this one was made from.
        2 DEFECT = "defect",
        /// Something the importer concluded rather than read.
        3 INFERRED = "inferred",
        /// Anything else a person should know.
        4 REMARK = "remark",
    }
}

fields! {
    /// A remark of the writer about the dump.
    record Note {
        /// What it is about.
        1 kind: NoteKind,
        /// The remark, in the words of the writer.
        2 text: &'a [u8],
        /// Kind of section it is about.
        3 section: u16,
        /// Where in the input, bytes.
        4 input_offset: u64,
        /// How many bytes of it.
        5 input_length: u64,
    }
}
