//! Sleeping: wait queues of threads and hooks, and a mutex whose waiters sleep.

pub mod mutex;
mod reason;
pub mod wait;

pub use mutex::Mutex;
pub use reason::WaitReason;
