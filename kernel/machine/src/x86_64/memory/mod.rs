//! Page tables, what is mapped through them (stacks, spans, address spaces), and what runs on it (threads, the crash
//! stage).

pub(crate) mod bases;
pub(crate) mod early;
pub(crate) mod leaves;
pub(crate) mod paging;
pub(crate) mod probe;
pub(crate) mod pvh;
pub(crate) mod space;
pub(crate) mod spans;
pub(crate) mod stacks;
pub(crate) mod stage;
pub(crate) mod table;
pub(crate) mod thread;
