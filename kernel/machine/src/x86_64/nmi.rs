use super::regs::Registers;
pub(crate) struct Stopped;
impl Stopped {
    pub(crate) const fn new() -> Self {
        Self
    }
}
pub(crate) fn stop_requested() -> bool {
    false
}
pub(crate) fn stop(_: &Registers) -> ! {
    super::irq::halt_for_ever()
}
