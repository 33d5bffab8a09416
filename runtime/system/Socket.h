//===- Socket.h - Connections between hosts ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_SYSTEM_SOCKET_H
#define CHIMERA_RUNTIME_SYSTEM_SOCKET_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace chimera::runtime {

/// Owns a socket. The destructor closes it.
class Socket {
public:
  Socket() = default;
  explicit Socket(int fd) : descriptor(fd) {}
  Socket(Socket &&other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(descriptor, other.descriptor);
    return *this;
  }
  ~Socket();

  int fd() const { return descriptor; }
  explicit operator bool() const { return descriptor >= 0; }

private:
  int descriptor = -1;
};

/// A TCP socket that listens on all addresses of this host, on a port that the
/// system chooses, and a Unix socket for the same host. The constructor throws
/// std::runtime_error if it fails.
struct Listener {
  Listener();
  Socket socket;
  /// A Unix socket for processes of the same host, named after the port. It
  /// moves bytes in half the time of the TCP socket. Empty if the system has no
  /// abstract Unix sockets.
  Socket local;
  uint16_t port = 0;
};

/// Creates a Unix socket that is named `name`. Only one process of a host can
/// have a socket with this name at a time. The name is free again when the
/// process ends. Returns an empty Socket if another process has the name, or if
/// the system has no abstract Unix sockets.
Socket tryLockSocketName(const std::string &name);
/// Whether a process of this host and of this user has a socket with the name
/// `name`.
bool isSocketNameLocked(const std::string &name);

/// Connects to the Unix socket of the Listener of this host whose port is
/// `port`. Returns an empty Socket if there is no such Listener, or if it
/// belongs to another user.
Socket connectLocally(uint16_t port);

/// The numeric addresses of this host. If `reachable` is the name of another
/// host, the first address is the one from which this host sends to that host.
/// Loopback addresses are last.
std::vector<std::string> addressesOfHost(const std::string &reachable = "");

/// Thrown if the name lookup says that no host has a name.
class UnknownHost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Looks up the name of a host. Throws UnknownHost if there is no such host,
/// and std::runtime_error if the lookup fails for another reason (for example,
/// because the name server does not answer).
void expectKnownHost(const std::string &host);

/// Connects to a numeric address or a host name. If the name has several
/// addresses, tries them one after another, each for at most `timeout`. Throws
/// UnknownHost if there is no such host, and std::runtime_error if the lookup
/// fails or no address can be reached (with the reason for each address).
Socket connectTo(const std::string &address, uint16_t port,
                 std::chrono::milliseconds timeout);

/// The numeric address of the other end of a connection. Empty for a Unix
/// socket. Throws std::runtime_error if the connection has ended.
std::string peerAddressOf(const Socket &socket);

/// Sends or receives exactly bytes.size() bytes. Requires that no other thread
/// uses the connection. Throws std::runtime_error if the connection fails or
/// `timeout` passes.
void sendBytes(const Socket &socket, std::span<const std::byte> bytes,
               std::chrono::milliseconds timeout);
void receiveBytes(const Socket &socket, std::span<std::byte> bytes,
                  std::chrono::milliseconds timeout);

/// Makes the socket non-blocking, and disables Nagle's algorithm (TCP_NODELAY).
void makeNonBlocking(const Socket &socket);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_SOCKET_H
