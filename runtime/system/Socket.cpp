//===- Socket.cpp - Connections between hosts -----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/Socket.h"

#include "runtime/system/ErrorText.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace chimera::runtime;
using std::chrono::milliseconds;

namespace {
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string &what, int code = errno) {
  throw std::runtime_error(what + ": " + errorText(code));
}

/// Waits until the socket is ready for `events`. Throws std::runtime_error if
/// `end` comes before this.
void await(const Socket &socket, short events, Clock::time_point end,
           const char *what) {
  pollfd entry{socket.fd(), events, 0};
  for (;;) {
    auto left =
        std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
    int found =
        poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1000)));
    if (found > 0)
      return;
    if (found < 0 && errno != EINTR)
      fail(what);
    if (left <= 0)
      fail(what, ETIMEDOUT);
  }
}

std::string numberOf(const sockaddr *address) {
  char text[NI_MAXHOST];
  socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in)
                                                 : sizeof(sockaddr_in6);
  if (getnameinfo(address, size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return {};
  return text;
}

struct FreeAddresses {
  void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string &name, uint16_t port, int type) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = type;
  addrinfo *list = nullptr;
  int code =
      getaddrinfo(name.c_str(), std::to_string(port).c_str(), &wanted, &list);
  std::string reason = code == 0 ? "" : name + ": " + gai_strerror(code);
  if (code == EAI_NONAME)
    throw UnknownHost(reason);
  if (code != 0)
    throw std::runtime_error(reason);
  return Addresses(list);
}

/// The address from which this host sends to `name`. Empty if unknown.
std::string sourceTo(const std::string &name) try {
  constexpr uint16_t kAnyPort = 9;
  Addresses found = resolve(name, kAnyPort, SOCK_DGRAM);
  for (const addrinfo *to = found.get(); to; to = to->ai_next) {
    Socket socket(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    // Connect a datagram socket to find the route. This sends nothing.
    if (socket && connect(socket.fd(), to->ai_addr, to->ai_addrlen) == 0 &&
        getsockname(socket.fd(), reinterpret_cast<sockaddr *>(&own), &size) ==
            0)
      return numberOf(reinterpret_cast<sockaddr *>(&own));
  }
  return {};
} catch (const std::runtime_error &) {
  return {};
}

/// The name of an abstract Unix socket. Its first character is 0. It is not the
/// name of a file, and it is free again when the socket is closed. Like a port,
/// the name is valid in one network namespace.
struct LocalName {
  explicit LocalName(uint16_t port)
      : LocalName("port " + std::to_string(port)) {}
  explicit LocalName(const std::string &own) {
    const std::string name =
        ("chimera " + own).substr(0, sizeof(address.sun_path) - 1);
    name.copy(address.sun_path + 1, name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  name.size());
  }
  const sockaddr *get() const {
    return reinterpret_cast<const sockaddr *>(&address);
  }
  sockaddr_un address{AF_UNIX, {}};
  socklen_t size;
};

Socket localSocket() {
  return Socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// A socket that listens at `name`. Empty if another process has this name.
Socket listenAt(const LocalName &name) {
  Socket socket = localSocket();
  if (socket && bind(socket.fd(), name.get(), name.size) == 0 &&
      listen(socket.fd(), SOMAXCONN) == 0)
    return socket;
  return {};
}

/// A connection to the socket that listens at `name`. Empty if there is none,
/// or if it belongs to another user.
Socket connectAt(const LocalName &name) {
  Socket socket = localSocket();
  ucred other{};
  socklen_t size = sizeof(other);
  if (socket && connect(socket.fd(), name.get(), name.size) == 0 &&
      getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
      other.uid == geteuid())
    return socket;
  return {};
}
} // namespace

Socket::~Socket() {
  if (descriptor >= 0)
    close(descriptor);
}

Listener::Listener() {
  // If the system has IPv6, one socket accepts connections of IPv4 and IPv6.
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  int no = 0;
  socket = Socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  bool isBound =
      socket &&
      setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) ==
          0 &&
      bind(socket.fd(), reinterpret_cast<sockaddr *>(&any6), sizeof(any6)) == 0;
  if (!isBound) {
    socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket || bind(socket.fd(), reinterpret_cast<sockaddr *>(&any4),
                        sizeof(any4)) != 0)
      fail("cannot open a port for other ranks");
  }
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (listen(socket.fd(), SOMAXCONN) != 0 ||
      getsockname(socket.fd(), reinterpret_cast<sockaddr *>(&own), &size))
    fail("cannot listen for other ranks");
  port = ntohs(own.ss_family == AF_INET
                   ? reinterpret_cast<sockaddr_in &>(own).sin_port
                   : reinterpret_cast<sockaddr_in6 &>(own).sin6_port);
  local = listenAt(LocalName(port));
}

Socket chimera::runtime::tryLockSocketName(const std::string &name) {
  return listenAt(LocalName(name));
}

bool chimera::runtime::isSocketNameLocked(const std::string &name) {
  return bool(connectAt(LocalName(name)));
}

Socket chimera::runtime::connectLocally(uint16_t port) {
  return connectAt(LocalName(port));
}

std::vector<std::string>
chimera::runtime::addressesOfHost(const std::string &reachable) {
  std::vector<std::string> all;
  if (!reachable.empty())
    all.push_back(sourceTo(reachable));
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (bool loopback : {false, true})
      for (const ifaddrs *entry = list; entry; entry = entry->ifa_next) {
        bool isIp = entry->ifa_addr && (entry->ifa_addr->sa_family == AF_INET ||
                                        entry->ifa_addr->sa_family == AF_INET6);
        bool isLoopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
        if (isIp && (entry->ifa_flags & IFF_UP) && isLoopback == loopback)
          all.push_back(numberOf(entry->ifa_addr));
      }
    freeifaddrs(list);
  }
  std::vector<std::string> once;
  for (std::string &address : all)
    if (!address.empty() && !std::ranges::count(once, address))
      once.push_back(std::move(address));
  return once;
}

void chimera::runtime::expectKnownHost(const std::string &host) {
  resolve(host, /*port=*/0, SOCK_STREAM);
}

static Socket connectToOne(const addrinfo &to, const std::string &what,
                           milliseconds timeout) {
  Socket socket(
      ::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket)
    fail(what);
  if (connect(socket.fd(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS)
      fail(what);
    await(socket, POLLOUT, Clock::now() + timeout, what.c_str());
    int code = 0;
    socklen_t size = sizeof(code);
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0)
      fail(what, code);
  }
  makeNonBlocking(socket);
  return socket;
}

Socket chimera::runtime::connectTo(const std::string &address, uint16_t port,
                                   milliseconds timeout) {
  Addresses found = resolve(address, port, SOCK_STREAM);
  std::string atPort = " port " + std::to_string(port), reasons;
  for (const addrinfo *to = found.get(); to; to = to->ai_next)
    try {
      std::string number = numberOf(to->ai_addr);
      std::string name =
          number == address ? number : address + " (" + number + ")";
      return connectToOne(*to, name + atPort, timeout);
    } catch (const std::runtime_error &error) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(error.what());
    }
  throw std::runtime_error(reasons);
}

std::string chimera::runtime::peerAddressOf(const Socket &socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  auto *address = reinterpret_cast<sockaddr *>(&peer);
  if (getpeername(socket.fd(), address, &size) != 0)
    fail("getpeername");
  const bool isIp = peer.ss_family == AF_INET || peer.ss_family == AF_INET6;
  return isIp ? numberOf(address) : "";
}

void chimera::runtime::sendBytes(const Socket &socket,
                                 std::span<const std::byte> bytes,
                                 milliseconds timeout) {
  auto end = Clock::now() + timeout;
  while (!bytes.empty()) {
    ssize_t sent = send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0)
      bytes = bytes.subspan(static_cast<size_t>(sent));
    else if (errno == EAGAIN)
      await(socket, POLLOUT, end, "send");
    else if (errno != EINTR)
      fail("send");
  }
}

void chimera::runtime::receiveBytes(const Socket &socket,
                                    std::span<std::byte> bytes,
                                    milliseconds timeout) {
  auto end = Clock::now() + timeout;
  while (!bytes.empty()) {
    ssize_t got = recv(socket.fd(), bytes.data(), bytes.size(), 0);
    if (got > 0)
      bytes = bytes.subspan(static_cast<size_t>(got));
    else if (got == 0)
      throw std::runtime_error("receive: the other end closed the connection");
    else if (errno == EAGAIN)
      await(socket, POLLIN, end, "receive");
    else if (errno != EINTR)
      fail("receive");
  }
}

void chimera::runtime::makeNonBlocking(const Socket &socket) {
  fcntl(socket.fd(), F_SETFL, fcntl(socket.fd(), F_GETFL) | O_NONBLOCK);
  int yes = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}
