//===- Launch.cpp - The job that started this process ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Launch.h"

#include "runtime/system/LoadModule.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <unistd.h>

using namespace chimera::runtime;

namespace {
std::string textOf(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

std::optional<uint32_t> number(const char *name) {
  std::string text = textOf(name);
  uint32_t value = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end)
    return std::nullopt;
  return value;
}

/// The launchers and the variables that they set. findJob takes the first
/// launcher whose variables are set. torchrun is first: another launcher may
/// have started torchrun, which then starts the ranks itself. A batch script of
/// Slurm is not a rank, so the table has a variable that exists only in a job
/// step.
constexpr struct {
  const char *launcher, *rank, *ranks, *ranksOnHost, *mark = nullptr;
} kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
     "TORCHELASTIC_RUN_ID"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE"},
    // These variables are set by hand, or by a launcher of the user.
    {"RANK and WORLD_SIZE in the environment", "RANK", "WORLD_SIZE",
     "LOCAL_WORLD_SIZE"},
};

std::optional<MasterAddress> findMaster() {
  std::optional<uint32_t> port = number("MASTER_PORT");
  std::string host = textOf("MASTER_ADDR");
  if (host.empty() || !port || *port == 0 || *port > UINT16_MAX)
    return std::nullopt;
  // Under torchrun, ranks use torchrun's own store. The same store serves all
  // attempts to start a run. TORCHELASTIC_RESTART_COUNT does not tell them
  // apart: after a restart, it may differ between hosts, because a torchrun
  // counts only the restarts for which its own ranks were the reason.
  return MasterAddress{host, static_cast<uint16_t>(*port),
                       textOf("TORCHELASTIC_USE_AGENT_STORE") == "True",
                       textOf("TORCHELASTIC_RUN_ID") + "/"};
}
} // namespace

std::optional<Job> chimera::runtime::findJob() {
  for (const auto &names : kLaunchers) {
    if (names.mark && !std::getenv(names.mark))
      continue;
    bool hasRank = std::getenv(names.rank), hasRanks = std::getenv(names.ranks);
    // If only one of the two variables is set, this is an error only for RANK
    // and WORLD_SIZE, which users set. Slurm sets only one of its variables for
    // a batch script, which is not a rank.
    bool isOwn = std::string_view(names.rank) == "RANK";
    if (!(isOwn ? hasRank || hasRanks : hasRank && hasRanks))
      continue;
    std::optional<uint32_t> rank = number(names.rank);
    std::optional<uint32_t> ranks = number(names.ranks);
    if (!rank || !ranks || *rank >= *ranks)
      throw std::invalid_argument(
          std::string("expected ") + names.rank + " to be a number below " +
          names.ranks + " (a number from 1 to " + std::to_string(UINT32_MAX) +
          "), got " + names.rank + "='" + textOf(names.rank) + "' and " +
          names.ranks + "='" + textOf(names.ranks) +
          "' in the environment: correct them, or unset both to run all ranks "
          "in one process");
    return Job{
        names.launcher, *rank, *ranks,
        std::clamp(number(names.ranksOnHost).value_or(*ranks), 1u, *ranks),
        findMaster()};
  }
  return std::nullopt;
}

/// The time since this process was started. An exec does not start it again. 0
/// if the kernel does not report it.
static std::chrono::milliseconds timeLived() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  // The name in parentheses, which is field 2, may contain any characters.
  // Field 22 is the start time in clock ticks since boot.
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i)
    fields >> field;
  long long ticks = 0;
  const char *end = field.data() + field.size();
  timespec now{};
  const long each = sysconf(_SC_CLK_TCK);
  if (std::from_chars(field.data(), end, ticks).ptr != end || field.empty() ||
      each <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
    return {};
  return std::chrono::milliseconds(now.tv_sec * 1000 + now.tv_nsec / 1'000'000 -
                                   ticks * 1000 / each);
}

/// The time from the start of this process until shortly before main().
static const std::chrono::milliseconds kLoading = timeLived();

std::chrono::milliseconds
chimera::runtime::firstReportTimeout(std::chrono::milliseconds loading) {
  constexpr std::chrono::milliseconds kLeast = std::chrono::seconds(2),
                                      kMost = std::chrono::minutes(1);
  return std::clamp(4 * loading, kLeast, kMost);
}

void chimera::runtime::waitForFirstReport(uint32_t first) {
  try {
    if (std::optional<Job> job = findJob(); job && job->rank != first)
      std::this_thread::sleep_for(
          firstReportTimeout(kLoading + timeLoadingModules()));
  } catch (const std::invalid_argument &) {
    // Ignore this error here: the caller is about to report it.
  }
}

RankThreads chimera::runtime::shareCores(const Cores &cores,
                                         uint32_t ranksOnHost, uint32_t asked,
                                         ProgressMode mode) {
  ranksOnHost = std::max(1u, ranksOnHost);
  bool isOn = mode == ProgressMode::On;
  if (asked) {
    bool hasCore = asked < cores.usable &&
                   ranksOnHost * (uint64_t(asked) + 1) <= cores.host;
    return {asked, isOn || (mode == ProgressMode::Auto && hasCore)};
  }
  // Limit the share to the usable cores: a launcher may already have bound this
  // rank to its own cores.
  uint32_t share = std::clamp(cores.host / ranksOnHost, 1u, cores.usable);
  if (mode != ProgressMode::Off && share >= (isOn ? 2 : kShareWithProgress))
    return {share - 1, true};
  return {share, isOn};
}
