//! The port: chosen once and kept, so that programs that already run find their tools again after a restart.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::Arc;

use consort_hub::Hub;
use uuid::Uuid;

use crate::serve;

/// Ports that systems do not hand out to outgoing connections, so that the one chosen is free again after a restart.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 10_000;

/// How many of them are tried before the system chooses one.
const TRIES: usize = 16;

/// A port that is held and not yet served.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    port: u16,
}

impl Endpoint {
    /// Takes the port of the last time, or another one where that is taken or there was none.
    pub fn bind(before: Option<u16>) -> io::Result<Self> {
        if let Some(port) = before {
            match Self::take(port) {
                Ok(endpoint) => return Ok(endpoint),
                Err(error) => tracing::warn!(
                    %error,
                    port,
                    "the port of the team tools is taken; agents that already run reach them again after a restart"
                ),
            }
        }
        let endpoint = random_ports().take(TRIES).find_map(|port| Self::take(port).ok());
        let endpoint = endpoint.map_or_else(|| Self::take(0), Ok)?;
        tracing::info!(port = endpoint.port, "the team tools have a new port");
        Ok(endpoint)
    }

    fn take(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Where it is.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves the tools of `hub` from now on, for as long as the runtime is there.
    pub fn serve(self, hub: Arc<Hub>) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        tokio::spawn(serve::run(listener, hub));
        Ok(())
    }
}

fn random_ports() -> impl Iterator<Item = u16> {
    std::iter::repeat_with(|| {
        let [high, low, ..] = *Uuid::new_v4().as_bytes();
        FIRST_PORT + u16::from_be_bytes([high, low]) % PORTS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_again_and_another_where_it_is_taken() {
        let first = Endpoint::bind(None).unwrap();
        let port = first.port();
        let second = Endpoint::bind(Some(port)).unwrap();
        assert_ne!(second.port(), port, "it is held by the first");
        drop(first);
        assert_eq!(Endpoint::bind(Some(port)).unwrap().port(), port);
    }
}
