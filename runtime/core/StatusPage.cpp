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

/// The letter with which ps shows the state of a process, 0 if there is none.
static char stateOf(int32_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (pid == 0 || !std::getline(file, text))
    return 0;
  // The state follows the name, which is in parentheses and may hold any.
  size_t name = text.rfind(") ");
  return name != std::string::npos && name + 2 < text.size() ? text[name + 2]
                                                             : '\0';
}

bool chimera::runtime::isStopped(int32_t pid) {
  char state = stateOf(pid);
  return state == 'T' || state == 't';
}
bool chimera::runtime::isZombie(int32_t pid) { return stateOf(pid) == 'Z'; }

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

namespace {
/// An open file, or none.
class File {
public:
  explicit File(int number) : number(number) {}
  ~File() {
    if (number >= 0)
      close(number);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  operator int() const { return number; }

private:
  int number;
};

/// Where processes of a host find a file: open there, under this number.
struct Place {
  int32_t pid, file;
};

[[noreturn]] void throwNoPage(const std::string &what, int error) {
  throw std::runtime_error(
      "cannot " + what +
      " the page on which ranks publish what they do: " + std::strerror(error));
}

/// A file of so many zeros, which are in memory already: to lack one later
/// would be a bus error.
int makeFile(uint64_t bytes) {
  int number = memfd_create("chimera-status", MFD_CLOEXEC);
  int error = number < 0
                  ? errno
                  : posix_fallocate(number, 0, static_cast<off_t>(bytes));
  if (error == 0)
    return number;
  if (number >= 0)
    close(number);
  throwNoPage("make", error);
}

int openFile(const Place &place) {
  std::string path = "/proc/" + std::to_string(place.pid) + "/fd/" +
                     std::to_string(place.file);
  int number = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (number < 0)
    throwNoPage("open", errno);
  return number;
}
} // namespace

StatusPage::StatusPage(Transport &transport,
                       const std::vector<uint32_t> &hostRanks,
                       std::chrono::milliseconds timeout)
    : count(transport.ranks()),
      bytes(sizeof(Head) + transport.ranks() * sizeof(Status)) {
  uint32_t lowest = hostRanks.front();
  bool makes = transport.rank() == lowest;
  Place place{};
  if (!makes)
    transport.wait(transport.postReceive(
                       lowest, std::as_writable_bytes(std::span(&place, 1))),
                   timeout);
  File file(makes ? makeFile(bytes) : openFile(place));
  map(file);
  of(transport.rank()).pid.store(getpid());
  if (!makes)
    return;

  place = {getpid(), file};
  for (uint32_t rank : hostRanks)
    if (rank != lowest)
      transport.wait(
          transport.postSend(rank, std::as_bytes(std::span(&place, 1))),
          timeout);
  // It stays open until all have opened it.
  auto hasIt = [&](uint32_t rank) { return of(rank).pid.load() != 0; };
  for (Deadline deadline(timeout); !std::ranges::all_of(hostRanks, hasIt);) {
    if (deadline.passed())
      throw std::runtime_error(timedOut(timeout, "all ranks of this host to "
                                                 "open the status page"));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
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
