//! Inter-process communication: pipes, FIFOs, event counters, UNIX sockets, message queues, poll, select and epoll.

pub mod buffer;
pub mod charge;
pub mod epoll;
pub mod eventfd;
pub mod mqueue;
pub mod pipe;
pub mod poll;
pub mod signalfd;
pub mod timerfd;
pub mod unix;
