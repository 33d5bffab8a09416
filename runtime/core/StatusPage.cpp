//===- StatusPage.cpp - What every rank is doing --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/StatusPage.h"

#include "runtime/transport/Deadline.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<int32_t>::is_always_lock_free,
              "processes share these");

struct alignas(64) StatusPage::Head {
  /// The exit status of whoever claimed the report, 0 before.
  std::atomic<int32_t> exitStatus;
  std::atomic<uint32_t> reported;
  /// The last step that any rank has begun and, in the top bit, whether it is
  /// to be the last. One word, so that both change together.
  std::atomic<uint64_t> begun;
};

namespace {
constexpr uint64_t kStop = uint64_t(1) << 63;
} // namespace

int64_t chimera::runtime::steadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool chimera::runtime::isStopped(int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (pid == 0 || !std::getline(file, text))
    return false;
  // The state follows the name, which is in parentheses and may hold any.
  size_t name = text.rfind(") ");
  return name != std::string::npos && name + 2 < text.size() &&
         (text[name + 2] == 'T' || text[name + 2] == 't');
}

void Status::fail(const std::string &text) {
  if (state.load() == Failed)
    return;
  size_t size = std::min(text.size(), reason.size() - 1);
  std::memcpy(reason.data(), text.data(), size);
  reason[size] = 0;
  failedIn.store(state.load());
  state.store(Failed);
}

StatusPage::StatusPage(uint32_t ranks)
    : count(ranks), bytes(sizeof(Head) + ranks * sizeof(Status)) {
  map(-1);
}

StatusPage::StatusPage(Transport &transport,
                       const std::vector<uint32_t> &hostRanks)
    : count(transport.ranks()),
      bytes(sizeof(Head) + transport.ranks() * sizeof(Status)) {
  constexpr std::chrono::minutes kTimeout(1);
  std::array<char, 64> name{};
  uint32_t lowest = hostRanks.front();
  int file = -1;
  if (transport.rank() == lowest) {
    std::strcpy(name.data(), "/dev/shm/chimera-XXXXXX");
    file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
      std::string reason = std::strerror(errno);
      if (file >= 0) {
        close(file);
        unlink(name.data());
      }
      throw std::runtime_error(
          "cannot make the page on which ranks publish what they do, in "
          "/dev/shm: " +
          reason);
    }
    for (uint32_t rank : hostRanks)
      if (rank != lowest)
        transport.wait(transport.postSend(rank, std::as_bytes(std::span(name))),
                       kTimeout);
  } else {
    transport.wait(
        transport.postReceive(lowest, std::as_writable_bytes(std::span(name))),
        kTimeout);
    file = open(name.data(), O_RDWR | O_CLOEXEC);
    if (file < 0)
      throw std::runtime_error(std::string("cannot open ") + name.data() +
                               ": " + std::strerror(errno));
  }
  map(file);
  close(file);
  of(transport.rank()).pid.store(getpid());

  if (transport.rank() != lowest)
    return;
  Deadline deadline(kTimeout);
  bool all = false;
  while (!all && !deadline.passed()) {
    all = std::all_of(hostRanks.begin(), hostRanks.end(),
                      [&](uint32_t rank) { return of(rank).pid.load() != 0; });
    if (!all)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  unlink(name.data());
  if (!all)
    throw std::runtime_error("not all ranks of this host came within a minute");
}

StatusPage::~StatusPage() { munmap(memory, bytes); }

/// Maps `file`, or for -1 memory of this process; both start as zeros.
void StatusPage::map(int file) {
  int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (memory == MAP_FAILED)
    throw std::runtime_error(std::string("cannot map the status page: ") +
                             std::strerror(errno));
}

Status *StatusPage::entries() const {
  return reinterpret_cast<Status *>(static_cast<char *>(memory) + sizeof(Head));
}

bool StatusPage::mayBegin(uint64_t step) {
  uint64_t seen = head().begun.load();
  while ((seen & ~kStop) < step) {
    if (seen & kStop)
      return false;
    if (head().begun.compare_exchange_weak(seen, step))
      return true;
  }
  return true;
}
void StatusPage::askToStop() { head().begun.fetch_or(kStop); }
bool StatusPage::askedToStop() const {
  return (head().begun.load() & kStop) != 0;
}

bool StatusPage::claimReport(int exitStatus) {
  int32_t none = 0;
  return head().exitStatus.compare_exchange_strong(none, exitStatus);
}
int StatusPage::exitStatus() const { return head().exitStatus.load(); }
void StatusPage::setReported() { head().reported.store(1); }
bool StatusPage::reported() const { return head().reported.load() != 0; }
