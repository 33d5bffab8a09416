//===- Gather.cpp - Gathering results at one rank -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Gather.h"

#include "runtime/random/Mix.h"
#include "runtime/train/Tied.h"

#include <algorithm>
#include <cstring>

using namespace chimera;
using namespace chimera::runtime;

std::vector<std::byte> chimera::runtime::gatherStages(
    const program::ProgramT &program, Control &control, uint32_t root,
    const ReplicaBytes &replicas, std::chrono::milliseconds timeout,
    const std::function<void()> &onPiece) {
  std::vector<std::byte> whole;
  uint64_t total = 0;
  for (const program::Stage &stage : program.stages)
    total += program::gradientBytes(stage);
  if (control.rank() == root)
    whole.resize(total);
  uint64_t at = 0;
  for (uint32_t s = 0; s < program.stages.size(); ++s) {
    uint64_t bytes = program::gradientBytes(program.stages[s]);
    uint32_t holder = program.pipelines.at(0)->workers.at(s);
    if (control.rank() == holder) {
      ConstBytes own = replicas.at({0, s}).get().first(bytes);
      if (holder != root)
        sendLarge(control, root, own, timeout);
      else if (!own.empty())
        std::memcpy(whole.data() + at, own.data(), own.size());
    } else if (control.rank() == root) {
      receiveLarge(control, holder, Bytes(whole).subspan(at, bytes), timeout,
                   onPiece);
    }
    at += bytes;
  }
  if (control.rank() == root)
    dropTiedCopy(program, whole);
  return whole;
}

void chimera::runtime::checkReplicas(const program::ProgramT &program,
                                     Control &control, uint32_t root,
                                     const ReplicaBytes &replicas,
                                     std::chrono::milliseconds timeout) {
  auto workers = static_cast<uint32_t>(program.workers.size());
  struct Digests {
    uint64_t whole, tied;
  };
  std::vector<Digests> own;
  for (const auto &[key, bytes] : replicas)
    own.push_back({digestOf(bytes.get()),
                   digestOf(tiedOf(program, key.second, bytes.get()))});
  if (control.rank() != root) {
    sendLarge(control, root, std::as_bytes(std::span(own)), timeout);
    return;
  }
  struct First {
    uint64_t digest;
    std::string name;
  };
  std::map<uint32_t, First> firsts; // by stage
  std::optional<First> firstTied;
  auto compare = [](const First &first, uint64_t digest, const char *what,
                    const std::string &name) {
    if (first.digest != digest)
      throw std::runtime_error("expected bit-identical replicas, but the " +
                               (what + (" of " + name)) +
                               " differ from those of " + first.name);
  };
  for (uint32_t rank = 0; rank < control.ranks(); ++rank) {
    // The keys of the rank's replicas. The rank sends its digests in the sorted
    // order of these keys.
    std::vector<std::pair<uint32_t, uint32_t>> keys;
    for (const program::State &state : program.workers[rank % workers]->states)
      keys.emplace_back(state.pipeline(), state.stage());
    std::sort(keys.begin(), keys.end());
    std::vector<Digests> digests = own;
    if (rank != root) {
      digests.resize(keys.size());
      receiveLarge(control, rank, std::as_writable_bytes(std::span(digests)),
                   timeout);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      auto [pipeline, stage] = keys[i];
      std::string name = "stage " + std::to_string(stage) + " of pipeline " +
                         std::to_string(pipeline) + " at rank " +
                         std::to_string(rank);
      auto [first, isNew] =
          firsts.try_emplace(stage, First{digests[i].whole, name});
      compare(first->second, digests[i].whole, "weights", name);
      if (!program::offsetOfTiedParameters(program, stage))
        continue;
      if (!firstTied)
        firstTied = {digests[i].tied, name};
      compare(*firstTied, digests[i].tied, "tied parameters", name);
    }
  }
}

/// At `root`, the vectors of all ranks in rank order. Empty at the other ranks.
static std::vector<std::vector<int64_t>>
gatherPacked(Control &control, uint32_t root, std::vector<int64_t> own,
             std::chrono::milliseconds timeout) {
  std::vector<uint64_t> sizes =
      gatherValues(control, root, uint64_t(own.size()), timeout);
  if (control.rank() != root) {
    sendLarge(control, root, std::as_bytes(std::span(own)), timeout);
    return {};
  }
  std::vector<std::vector<int64_t>> all(control.ranks());
  for (uint32_t rank = 0; rank < control.ranks(); ++rank) {
    if (rank == root) {
      all[rank] = std::move(own);
      continue;
    }
    all[rank].resize(sizes[rank]);
    receiveLarge(control, rank, std::as_writable_bytes(std::span(all[rank])),
                 timeout);
  }
  return all;
}

std::vector<Profile>
chimera::runtime::gatherProfiles(Control &control, uint32_t root,
                                 const Profile &profile,
                                 std::chrono::milliseconds timeout) {
  std::vector<Profile> profiles;
  for (const std::vector<int64_t> &packed :
       gatherPacked(control, root, profile.pack(), timeout))
    profiles.push_back(Profile::unpack(packed));
  return profiles;
}

std::vector<Trace> chimera::runtime::gatherTraces(
    Control &control, uint32_t root, const Trace &trace,
    const std::vector<ClockOffset> &clocks, std::chrono::milliseconds timeout) {
  std::vector<Trace> traces;
  for (const std::vector<int64_t> &packed :
       gatherPacked(control, root, trace.pack(), timeout)) {
    const int64_t ahead = clocks.at(traces.size()).ahead;
    traces.push_back(Trace::unpack(packed));
    traces.back().shift(-ahead);
  }
  return traces;
}
