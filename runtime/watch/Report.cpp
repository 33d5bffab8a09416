//===- Report.cpp - The report of a failed run ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/watch/Report.h"

#include "runtime/system/Deadline.h"
#include "runtime/watch/EndProcess.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <initializer_list>
#include <new>
#include <poll.h>
#include <string_view>
#include <unistd.h>

using namespace chimera;
using namespace chimera::runtime;
using program::Instruction;
using program::Opcode;

namespace {
uint32_t workerOf(const program::ProgramT &program, uint32_t rank) {
  return rank % static_cast<uint32_t>(program.workers.size());
}

/// The index of instruction number `nth`, from 0, among the instructions of
/// `worker` that start an all-reduce in `communicator`. -1 if there is none.
int64_t startOf(const program::WorkerT &worker, uint32_t communicator,
                uint32_t nth) {
  for (uint32_t i = 0; i < worker.instructions.size(); ++i) {
    const Instruction &instruction = worker.instructions[i];
    if (instruction.opcode() == Opcode::AllReduceStart &&
        instruction.target() == communicator && nth-- == 0)
      return i;
  }
  return -1;
}

std::string nameOf(const program::ProgramT &program, uint32_t rank) {
  std::string name = "rank " + std::to_string(rank) + " (worker " +
                     std::to_string(workerOf(program, rank));
  if (program.data_parallel > 1)
    name +=
        " of copy " +
        std::to_string(rank / static_cast<uint32_t>(program.workers.size()));
  return name + ")";
}

/// For example "step 3, instruction 17: forward …, from file:line:column".
std::string describePosition(const program::ProgramT &program,
                             const RankState &known) {
  uint32_t worker = workerOf(program, known.rank);
  uint32_t index = known.instruction;
  const bool evaluates =
      known.state == Status::Evaluating || known.failedIn == Status::Evaluating;
  std::string text =
      evaluates
          ? "evaluating after " + program::countWithNoun(
                                      static_cast<uint64_t>(known.step), "step")
          : "step " + std::to_string(known.step + 1);
  text += ", instruction " + std::to_string(index) + ": " +
          program::describe(program, worker, index);
  if (index < program.workers[worker]->instructions.size()) {
    std::string location = program::locationOf(
        program, program.workers[worker]->instructions[index]);
    if (!location.empty())
      text += ", from " + location;
  }
  return text;
}

/// The line about a rank that has not died: its state and its instruction.
std::string stateOf(const program::ProgramT &program, const Account &account,
                    const RankState &known) {
  char since[32];
  std::snprintf(since, sizeof(since), "%.2f s",
                static_cast<double>(known.since) * 1e-9);
  std::string stopped = known.isStopped ? "; its process is stopped" : "";
  switch (known.state == Status::Failed ? known.failedIn : known.state) {
  case Status::Absent:
    return "has not started" + stopped;
  case Status::Starting:
    return std::string("starting for ") + since + stopped;
  case Status::Finishing:
    return std::string("past its last step for ") + since + stopped;
  case Status::Saving:
    return std::string("saving for ") + since + stopped;
  case Status::Done:
    return "done" + stopped;
  default:
    break;
  }
  if (program.workers[known.rank % program.workers.size()]
          ->instructions.empty())
    return "has no instructions" + stopped;
  std::string text = describePosition(program, known);
  std::vector<uint32_t> awaited = awaitedBy(program, account, known.rank);
  if (!awaited.empty())
    text += awaited.size() == 1 ? "; waiting for rank" : "; waiting for ranks";
  for (size_t i = 0; i < awaited.size(); ++i)
    text += (i ? ", " : " ") + std::to_string(awaited[i]);
  text += (awaited.empty() ? "; there for " : " for ") + std::string(since);
  if (known.isBehind)
    text += "; its host has enqueued instructions up to " +
            std::to_string(known.issuedInstruction) + " of step " +
            std::to_string(known.issuedStep + 1);
  return text + stopped;
}

/// Whether a rank failed before any rank began its first step, and for another
/// reason than a wait that timed out.
bool isFailureOfAStart(const program::ProgramT &program,
                       const Account &account) {
  bool hasFailed = false;
  for (const RankState &known : account.ranks) {
    const bool isFailure = known.state == Status::Failed;
    const uint32_t state = isFailure ? known.failedIn : known.state;
    if (known.isDead || known.isStopped ||
        (state != Status::Absent && state != Status::Starting) ||
        (isFailure &&
         std::string_view(known.reason.data()).starts_with(kTimedOut)))
      return false;
    hasFailed |= isFailure;
  }
  return hasFailed && account.ranks.size() == program::rankCount(program);
}

/// Returns make(). If it throws because the state of the rank is impossible for
/// the program, returns "unknown" with the reason.
template <typename Make> std::string orUnknown(const Make &make) {
  try {
    return make();
  } catch (const std::bad_alloc &) {
    throw;
  } catch (const std::exception &error) {
    return std::string("unknown (") + error.what() + ")";
  }
}
} // namespace

std::vector<uint32_t>
chimera::runtime::awaitedBy(const program::ProgramT &program,
                            const Account &account, uint32_t rank) {
  auto workers = static_cast<uint32_t>(program.workers.size());
  const program::WorkerT &stream = *program.workers[rank % workers];
  uint32_t copy = rank / workers;
  const RankState &own = *account.find(rank);
  uint32_t index = own.instruction;
  if (index >= stream.instructions.size() ||
      stream.instructions[index].opcode() != Opcode::Wait)
    return {};
  uint32_t target = stream.instructions[index].target();
  const Instruction &posted = stream.instructions.at(target);
  if (posted.opcode() != Opcode::AllReduceStart)
    return {copy * workers + posted.target()};

  uint32_t communicator = posted.target();
  uint32_t nth = 0;
  for (uint32_t i = 0; i < target; ++i)
    nth += stream.instructions[i].opcode() == Opcode::AllReduceStart &&
           stream.instructions[i].target() == communicator;
  std::vector<uint32_t> late;
  for (uint32_t c = 0; c < program.data_parallel; ++c)
    for (const program::Contribution &summand :
         program.communicators.at(communicator)->contributions) {
      uint32_t member = c * workers + summand.worker();
      int64_t start =
          startOf(*program.workers[summand.worker()], communicator, nth);
      const RankState *known = account.find(member);
      if (!known)
        continue;
      bool started = known->state == Status::Finishing ||
                     known->state == Status::Done ||
                     std::pair(known->step, int64_t(known->instruction)) >
                         std::pair(own.step, start);
      if (!started)
        late.push_back(member);
    }
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  return late;
}

std::string chimera::runtime::report(const program::ProgramT &program,
                                     const Account &account) {
  std::string text;
  auto add = [&](const std::string &line) { text += line + "\n"; };
  bool hasCause = false;
  for (const RankState &known : account.ranks) {
    if (!known.isDead)
      continue;
    hasCause = true;
    add(nameOf(program, known.rank) + ", process " + std::to_string(known.pid) +
        ", died; " +
        (known.state == Status::Running || known.state == Status::Evaluating
             ? "its last instruction was " +
                   orUnknown([&] { return describePosition(program, known); })
         : known.state == Status::Finishing || known.state == Status::Saving
             ? std::string("it was past its last step")
             : "it had not begun its first step"));
  }
  bool hasFailed = std::ranges::any_of(account.ranks, [](const auto &known) {
    return !known.isDead && known.state == Status::Failed;
  });
  // List stopped ranks before failed ranks: a rank may have failed because it
  // waited for a stopped rank. The same holds for a failure that only the
  // headline names.
  const bool mayBeCause =
      hasFailed || (!hasCause && !account.headline.starts_with(kEndedBy));
  for (const RankState &known : account.ranks)
    if (mayBeCause && !known.isDead && known.isStopped)
      add(nameOf(program, known.rank) + " is stopped");
  for (const RankState &known : account.ranks)
    if (!known.isDead && known.state == Status::Failed) {
      hasCause = true;
      add(nameOf(program, known.rank) + " failed: " + known.reason.data());
    }
  if (!hasCause)
    add(account.headline);
  if (isFailureOfAStart(program, account))
    return text;
  add("the ranks at that moment:");
  for (const RankState &known : account.ranks)
    if (!known.isDead)
      add("  " + nameOf(program, known.rank) + ": " +
          orUnknown([&] { return stateOf(program, account, known); }));
  std::string unknown;
  for (uint32_t rank = 0; rank < program::rankCount(program); ++rank)
    if (!account.find(rank))
      unknown += (unknown.empty() ? "" : ", ") + std::to_string(rank);
  if (!unknown.empty())
    add("  nothing is known about the other ranks: " + unknown);
  if (!hasCause && account.headline.starts_with(kEndedBy))
    add(kHowToStop);
  return text;
}

namespace {
/// If standard error has no room for kPauses pauses in all, nobody reads it.
/// Only waits for room count: on a busy machine this thread may be stopped for
/// longer between two writes.
constexpr int kPauseMs = 50, kPauses = 4;

/// Writes to standard error, without stdio and without an allocation of memory.
/// `pauses` is the number of waits without success that are left.
void write(const char *text, size_t size, int &pauses) {
  for (size_t at = 0; at < size && pauses > 0;) {
    pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    int ready = poll(&room, 1, kPauseMs);
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0) {
      --pauses;
      continue;
    }
    // Write at most PIPE_BUF bytes at a time: a pipe that is ready accepts this
    // many bytes without blocking.
    ssize_t written = ::write(STDERR_FILENO, text + at,
                              std::min<size_t>(PIPE_BUF, size - at));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0 && errno == EAGAIN) { // another process took the room
      --pauses;
      continue;
    }
    if (written <= 0)
      return;
    at += static_cast<size_t>(written);
  }
}

/// Writes the texts one after another.
void writeAll(std::initializer_list<std::string_view> texts) {
  int pauses = kPauses;
  for (std::string_view text : texts)
    write(text.data(), text.size(), pauses);
}

/// Begins a report on a new line, because the last line on standard error may
/// be incomplete.
void open() {
  char text[64]; // one write, so that no other process writes in between
  std::snprintf(text, sizeof text, "\n%s: ", program_invocation_short_name);
  writeAll({text});
}
} // namespace

void chimera::runtime::writeReport(const std::string &report) noexcept {
  open();
  writeAll({report});
}

void chimera::runtime::writeReport(const program::ProgramT &program,
                                   const StatusPage &page,
                                   const std::vector<uint32_t> &ranks,
                                   const std::vector<uint32_t> &dead,
                                   const std::string &headline) noexcept {
  try {
    return writeReport(report(program, accountOf(page, ranks, dead, headline)));
  } catch (const std::bad_alloc &) {
    // No memory for a report: write the short form below.
  }
  bool named = false;
  auto name = [&](uint32_t rank, std::string_view what,
                  std::string_view why = "") {
    char number[32];
    std::snprintf(number, sizeof(number), "rank %u ", rank);
    if (!named)
      open();
    writeAll({number, what, why, "\n"});
    named = true;
  };
  for (uint32_t rank : dead)
    name(rank, "died");
  for (uint32_t rank : ranks)
    if (page.of(rank).state.load() == Status::Failed)
      name(rank, "failed: ", page.of(rank).reason.data());
  if (!named) {
    open();
    writeAll({headline, "\n"});
  }
  writeAll({"out of memory: no report on all ranks\n"});
}

void chimera::runtime::endWithError(const char *doing,
                                    const char *error) noexcept {
  open();
  writeAll({"failed while ", doing, ": ", error, "\n"});
  endProcess(1);
}
