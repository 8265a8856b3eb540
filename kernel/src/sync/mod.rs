//! Sleeping: wait queues of threads and hooks, and a mutex whose waiters sleep.

pub mod mutex;
pub mod reason;
pub mod wait;

pub use mutex::Mutex;
pub use reason::WaitReason;
