//! Dispatch: which function answers which number.
//!
//! Each area lists its calls once, in a `CALLS` table of (number, function) next to the functions; [`TABLE`] is put together
//! from those at compile time. A call that nobody lists leaves an `unimplemented_syscall` event and returns `ENOSYS`.

use linux_abi::Errno;
use machine::arch::UserFrame;
use machine::thread::Current;

use crate::task::Task;

/// What a call returns: a value for the result register, or an error.
pub type SysResult = Result<usize, Errno>;

/// One call as its function sees it.
pub struct Call<'a> {
    /// The calling thread.
    pub task: Current<Task>,
    /// Its user registers.
    pub frame: &'a mut UserFrame,
}

impl Call<'_> {
    /// The `index`th argument, 0 to 5, as it came in the register.
    #[inline(always)]
    pub fn arg(&self, index: usize) -> u64 {
        self.frame.args()[index]
    }

    /// The `index`th argument where the interface says `int`.
    #[inline(always)]
    pub fn int(&self, index: usize) -> i32 {
        self.frame.args()[index] as i32
    }
}

/// Answers a call.
pub type Handler = fn(&mut Call<'_>) -> SysResult;

/// An area's calls.
pub type Calls = &'static [(u64, Handler)];
