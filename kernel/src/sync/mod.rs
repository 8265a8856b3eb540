//! Waiting: queues of threads and of hooks that something is to be told to.

pub mod wait;
