//! Ports that stay ours.
//!
//! Two Envoys that listen on one port share it in silence, and the port of a socket that was
//! closed a moment ago may be given to anybody. So a [`Reservation`] keeps a socket bound to its
//! port for as long as it lives, without listening on it: the kernel gives the port to nobody who
//! asks for any port, and the server for which it is reserved can bind it all the same, and again
//! after a restart, because both set `SO_REUSEADDR` and at most one listens.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};

/// A port on the loopback interface.
#[derive(Debug)]
pub struct Reservation {
    address: SocketAddr,
    _socket: Socket,
}

impl Reservation {
    /// Takes a free port.
    ///
    /// # Errors
    /// When the system has none.
    pub fn new() -> Result<Self> {
        let reserve = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            // Envoy sets this one too, and Linux wants it on both.
            socket.set_reuse_port(true)?;
            socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
            let address = socket.local_addr()?;
            std::io::Result::Ok((socket, address))
        };
        let (socket, address) = reserve().context("cannot reserve a port on 127.0.0.1")?;
        let address = address
            .as_socket()
            .context("a reserved port has no address")?;
        Ok(Self {
            address,
            _socket: socket,
        })
    }

    /// Where its server is to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::Reservation;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_server_can_bind_a_reserved_port_again_and_again() {
        let port = Reservation::new().expect("a port");
        assert!(
            TcpStream::connect(port.address()).is_err(),
            "nobody listens yet"
        );
        for _ in 0..3 {
            // The standard library sets SO_REUSEADDR, as tokio does.
            let server = TcpListener::bind(port.address()).expect("bound");
            let client = TcpStream::connect(port.address()).expect("connected");
            drop((server.accept().expect("accepted"), client));
        }
    }

    #[test]
    fn nobody_else_is_given_a_reserved_port() {
        // Far more than what chance would let pass if the kernel gave ports twice.
        let ports: Vec<_> = (0..2000)
            .map(|_| Reservation::new().expect("a port"))
            .collect();
        let mut numbers: Vec<_> = ports.iter().map(|port| port.address().port()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ports.len());
    }
}
