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

/// A socket, closed with the object.
class Socket {
public:
  Socket() = default;
  explicit Socket(int number) : fd(number) {}
  Socket(Socket &&other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Socket();

  int number() const { return fd; }
  explicit operator bool() const { return fd >= 0; }

private:
  int fd = -1;
};

/// Listens at a port that the system chooses, at all addresses of this host.
/// Throws std::runtime_error.
struct Listener {
  Listener();
  Socket socket;
  /// A Unix socket that is named after the port, for processes of this host:
  /// bytes cost them half the time there. None if the system has no such names.
  Socket local;
  uint16_t port = 0;
};

/// A Unix socket named `claim`, which one process of this host has at a time
/// and which ends with it. None if another has it or the system has no such
/// names.
Socket claimLocally(const std::string &claim);
/// Whether a process of this host and user has that socket.
bool isClaimedLocally(const std::string &claim);

/// Connects to the Unix socket of the listener that has this port. Returns no
/// socket if there is none, or if another user's process listens there.
Socket connectLocally(uint16_t port);

/// The addresses of this host, as numbers: that by which it reaches
/// `reachable` first, if a host is named, those of its loopback last.
std::vector<std::string> addressesOfHost(const std::string &reachable = "");

/// There is no host of that name.
class UnknownHost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Throws UnknownHost, or std::runtime_error where nobody can say now whether
/// there is a host of that name.
void lookUp(const std::string &host);

/// Connects to a number or a name. All addresses that a name has are tried in
/// turn, each for `timeout` at most. Throws as lookUp does, and
/// std::runtime_error, which says of each address why not.
Socket connectTo(const std::string &address, uint16_t port,
                 std::chrono::milliseconds timeout);

/// Sends or receives all bytes of a connection that is not shared with another
/// thread. Throws std::runtime_error.
void sendBytes(const Socket &socket, std::span<const std::byte> bytes,
               std::chrono::milliseconds timeout);
void receiveBytes(const Socket &socket, std::span<std::byte> bytes,
                  std::chrono::milliseconds timeout);

/// Makes calls return at once, and bytes leave at once.
void makeImmediate(const Socket &socket);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_SYSTEM_SOCKET_H
