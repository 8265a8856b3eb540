//! A server of the Model Context Protocol over stdin and stdout: a client asks for what the commands of kwab report.
//!
//! [`tools`] lists the tools, their parameters and the command that each runs; [`server`] answers the protocol's
//! requests; [`work`] runs a command in a process of its own, which is confined to the given folders
//! ([`crate::inputs`]) and cuts its report to a page ([`crate::page`]); [`transport`] stops reading from a client
//! that does not take its
//! answers, and [`lines`] finds requests that are too long. Stdout carries the protocol only.

mod answer;
mod lines;
mod server;
mod tools;
mod transport;
mod work;

pub(crate) use answer::Answer;
pub(crate) use server::serve;
pub(crate) use work::Worker;
