//! Waiting: queues of threads and of hooks that something is to be told to, and a mutex whose waiters sleep.

pub mod mutex;
pub mod wait;

pub use mutex::Mutex;
