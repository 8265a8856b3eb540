//! Consoles on sockets: QEMU's `-serial unix:PATH,server=on` and `-serial tcp:127.0.0.1:PORT,server=on`.
//!
//! A socket is connected to once, and its end is the console's. With `--reconnect` it is waited for, before the machine
//! is there and after it has gone.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::chunk::{Chunk, End, drain};
use crate::failure::{about, system};
use crate::output;

/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket that a machine's console is on.
#[derive(Debug, Clone)]
pub(super) enum Socket {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Socket {
    /// The socket that a path names; one that is not there yet is a Unix socket if it `may_come`.
    ///
    /// # Errors
    /// When the address is not one of this machine.
    pub(super) fn of(path: &Path, may_come: bool) -> Result<Option<Self>> {
        if let Some(address) = path.to_str().and_then(|text| text.strip_prefix("tcp:")) {
            return Ok(Some(Self::Tcp(local(address)?)));
        }
        let is_socket = match std::fs::metadata(path) {
            Ok(meta) => meta.file_type().is_socket(),
            Err(error) => may_come && path != Path::new("-") && error.kind() == io::ErrorKind::NotFound,
        };
        Ok(is_socket.then(|| Self::Unix(path.to_path_buf())))
    }

    fn connect(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Unix(path) => Box::new(UnixStream::connect(path)?),
            Self::Tcp(address) => Box::new(TcpStream::connect(address)?),
        })
    }

    /// Whether it has an address instead of a path.
    pub(super) const fn is_tcp(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Connects; what is given reads the connection, and with `again` those after it.
    ///
    /// # Errors
    /// When the other side is not there and is not waited for.
    pub(super) fn reader(self, path: &Path, again: bool) -> Result<impl FnOnce(&SyncSender<Chunk>) + Send + use<>> {
        let name = path.display().to_string();
        let first = match self.connect() {
            Ok(stream) => Some(stream),
            Err(error) if !again => return Err(about(path, system(&error))),
            Err(error) => {
                output::remark(&format!("kwab: {name}: {}; waiting for it\n", system(&error)));
                None
            }
        };
        Ok(move |sender: &SyncSender<Chunk>| self.read(first, &name, again, sender))
    }

    /// Reads the connection, and with `again` those after it.
    fn read(&self, first: Option<Box<dyn Read + Send>>, name: &str, again: bool, sender: &SyncSender<Chunk>) {
        let mut open = first;
        loop {
            if let Some(stream) = open.take() {
                let last = match drain(stream, sender) {
                    End::Unheard => return,
                    End::Failed(error) if !again => return drop(sender.send(Chunk::Failed(error))),
                    End::Closed(_) if !again => return,
                    End::Failed(_) => Some(b' '),
                    End::Closed(last) => last,
                };
                // A line that the end has cut goes on in no other connection.
                let is_cut = last.is_some_and(|byte| byte != b'\n');
                if is_cut && sender.send(Chunk::read(b"\n".to_vec())).is_err() {
                    return;
                }
                output::remark(&format!("kwab: {name}: closed; waiting for the next connection\n"));
            }
            // Also after a connection: a server that closes each at once is not asked without end.
            sleep(PAUSE);
            open = self.connect().ok();
        }
    }
}

/// The address of a port of this machine.
fn local(address: &str) -> Result<SocketAddr> {
    let address = address.strip_prefix("localhost:").map_or(address.to_string(), |port| format!("127.0.0.1:{port}"));
    let parsed: SocketAddr = address.parse().with_context(|| format!("tcp:{address}: expected tcp:127.0.0.1:PORT"))?;
    if !parsed.ip().is_loopback() {
        bail!("tcp:{address}: only this machine's own addresses are followed (127.0.0.1, [::1])");
    }
    Ok(parsed)
}
