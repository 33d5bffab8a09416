//===- StatusPage.cpp - What every rank is doing --------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/StatusPage.h"

#include "runtime/control/Messages.h"
#include "runtime/watch/SharedFile.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <ranges>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;

struct alignas(64) StatusPage::Head {
  uint64_t nonce; ///< of the file that has the page (SharedFile.h)
  /// The exit status of the first caller of claimReport. 0 if there was no call
  /// yet.
  std::atomic<int32_t> exitStatus;
  std::atomic<uint32_t> reported;
  std::atomic<uint32_t> noticed; ///< whether claimNotice was called
  /// The last step that any rank has begun, and in the top bits (kStop, kSave)
  /// whether askToStop was called, and whether askToSave was called and the
  /// decision to save was not made yet. They are in one word, so that one
  /// atomic operation can read or change them together.
  std::atomic<uint64_t> begun;
  /// The steps before which a checkpoint is written, each at index step % size.
  /// Ranks are at most two steps apart, because a step needs values of all
  /// ranks. So no rank needs an entry that another rank has overwritten.
  std::array<std::atomic<uint64_t>, 8> saveBefore;
};

namespace {
constexpr uint64_t kStop = uint64_t(1) << 63, kSave = uint64_t(1) << 62;

uint64_t stepOf(uint64_t word) { return word & ~(kStop | kSave); }
} // namespace

StatusPage::StatusPage(uint32_t ranks)
    : count(ranks), bytes(sizeof(Head) + ranks * sizeof(Status)) {
  map(-1);
  sharers.resize(ranks);
  std::iota(sharers.begin(), sharers.end(), 0);
}

StatusPage::StatusPage(Control &control, const std::vector<uint32_t> &hostRanks,
                       std::chrono::milliseconds timeout)
    : count(control.ranks()),
      bytes(sizeof(Head) + control.ranks() * sizeof(Status)) {
  uint32_t self = control.rank(), lowest = hostRanks.front();
  auto others = hostRanks | std::views::drop(1);
  // For each rank of hostRanks: whether it could open the page.
  std::vector<uint8_t> has(hostRanks.size(), 1);
  if (self == lowest) {
    // Keep the file open until all other ranks have tried to open it.
    SharedFile file = SharedFile::make(bytes);
    publish(file.fd(), self);
    for (uint32_t rank : others)
      sendValue(control, rank, file.location(), timeout);
    for (size_t i = 1; i < hostRanks.size(); ++i)
      has[i] = receiveValue<uint8_t>(control, hostRanks[i], timeout);
    for (uint32_t rank : others)
      sendLarge(control, rank, std::as_bytes(std::span(has)), timeout);
  } else {
    std::optional<SharedFile> file = SharedFile::open(
        receiveValue<SharedFile::Location>(control, lowest, timeout));
    publish(file ? file->fd() : -1, self);
    sendValue(control, lowest, uint8_t(file.has_value()), timeout);
    receiveLarge(control, lowest, std::as_writable_bytes(std::span(has)),
                 timeout);
    if (!file)
      std::ranges::fill(has, 0);
  }
  for (size_t i = 0; i < hostRanks.size(); ++i)
    if (has[i] || hostRanks[i] == self)
      sharers.push_back(hostRanks[i]);
}

/// Maps `file` and writes the PID of this process to the entry of rank `self`.
void StatusPage::publish(int file, uint32_t self) {
  map(file);
  of(self).pid.store(getpid());
}

StatusPage::~StatusPage() { munmap(memory, bytes); }

/// Maps `file`. If `file` is -1, allocates memory of this process instead. In
/// both cases the memory is zero at first.
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

StepUse StatusPage::use() const {
  StepUse all;
  for (uint32_t rank : sharers)
    all.add(of(rank).use());
  return all;
}

StepDecision StatusPage::decide(uint64_t step) {
  std::atomic<uint64_t> &save =
      head().saveBefore[step % head().saveBefore.size()];
  uint64_t seen = head().begun.load();
  while (stepOf(seen) < step) {
    if (seen & kStop)
      return StepDecision::Stop;
    // Store the step before the word: a rank that sees this step as begun must
    // also see that it begins with a checkpoint. Only the rank that removes
    // kSave makes the step begin, and all ranks that try see kSave too. So the
    // entry is right even if another rank is faster.
    if (seen & kSave)
      save.store(step);
    if (head().begun.compare_exchange_weak(seen, step))
      break;
  }
  return save.load() == step ? StepDecision::Save : StepDecision::Begin;
}
StepDecision StatusPage::decideAfterOthers(uint32_t self, uint64_t step) {
  constexpr std::chrono::milliseconds kPause(1);
  for (uint64_t seen = head().begun.load(); stepOf(seen) < step;
       seen = head().begun.load()) {
    if (seen & kStop)
      return StepDecision::Stop;
    for (uint32_t other = 0; other < count; ++other)
      if (of(other).state.load() == Status::Failed)
        throw std::runtime_error("rank " + std::to_string(other) +
                                 " has failed");
    // This rank hangs only if another one does.
    of(self).setPosition(step, 0);
    std::this_thread::sleep_for(kPause);
  }
  return decide(step);
}
void StatusPage::askToSave() { head().begun.fetch_or(kSave); }
bool StatusPage::claimNotice() { return head().noticed.exchange(1) == 0; }
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
