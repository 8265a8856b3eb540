pub(crate) struct Mailbox;
impl Mailbox {
    pub(crate) const fn new() -> Self {
        Self
    }
}
pub(crate) fn kicked() {}
pub(crate) fn start_others() -> u32 {
    1
}
pub(crate) fn interrupt(_: &super::local::Local) {}
pub(crate) fn call(_: u64, f: &(dyn Fn() + Sync)) {
    f()
}
pub(crate) fn flush_kernel() {}
