//! A longer way: a TCP proxy that hands on every byte in order, each a fixed time after it came.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

/// Pieces under way in one direction of a connection; a sender beyond them waits.
const UNDER_WAY: usize = 1024;

/// Bytes of a piece at most.
const PIECE: usize = 16 * 1024;

/// A running proxy; ends when dropped, with its connections.
#[derive(Debug)]
pub struct SlowWay {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl SlowWay {
    /// Starts one to `to`, which adds `delay` in each direction.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(to: SocketAddr, delay: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on a free port of 127.0.0.1")?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, to, delay));
        Ok(Self { address, accepting })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for SlowWay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, to: SocketAddr, delay: Duration) {
    // Owned by this task, so that the connections end with it.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((near, _)) = listener.accept().await else {
            continue;
        };
        connections.spawn(async move {
            // Nobody there: the caller's connection ends with this one.
            let Ok(far) = TcpStream::connect(to).await else {
                return;
            };
            drop((near.set_nodelay(true), far.set_nodelay(true)));
            let (near_in, near_out) = near.into_split();
            let (far_in, far_out) = far.into_split();
            tokio::join!(
                hand_on(near_in, far_out, delay),
                hand_on(far_in, near_out, delay)
            );
        });
    }
}

/// One direction of a connection, until either side has ended it.
async fn hand_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let read = async move {
        let mut piece = vec![0; PIECE];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let bytes = piece.get(..length).unwrap_or_default().to_vec();
            if sender.send((Instant::now() + delay, bytes)).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            // Pacing: the delay is what was ordered.
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}

#[cfg(test)]
mod tests {
    use super::SlowWay;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    #[tokio::test]
    async fn a_round_trip_takes_both_delays_and_keeps_the_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let to = listener.local_addr().expect("an address");
        let echo = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let (mut from, mut back) = stream.split();
            tokio::io::copy(&mut from, &mut back).await.expect("copied");
        });
        let delay = Duration::from_millis(20);
        let way = SlowWay::start(to, delay).await.expect("started");
        let mut stream = TcpStream::connect(way.address()).await.expect("connected");
        let before = Instant::now();
        stream.write_all(b"there and back").await.expect("written");
        let mut answer = [0; 14];
        stream.read_exact(&mut answer).await.expect("read");
        assert_eq!(&answer, b"there and back");
        assert!(before.elapsed() >= 2 * delay);
        drop(stream);
        echo.await.expect("ended");
    }
}
