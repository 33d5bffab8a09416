//===- TorchReport.cpp - A checked PyTorch program as text ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/formats/TorchReport.h"

#include <algorithm>
#include <span>

namespace chimera::schedule::torch {

static std::string countOf(int64_t count, const std::string &what,
                           const char *ending = "s") {
  return std::to_string(count) + " " + what + (count == 1 ? "" : ending);
}

static const char *nameOf(MessageOrder order) {
  switch (order) {
  case MessageOrder::Rank:
    return "one order per rank (one NCCL communicator)";
  case MessageOrder::Pair:
    return "one order per pair of ranks (NCCL's default)";
  case MessageOrder::Edge:
    return "one order per direction of a pair (gloo)";
  }
  return "";
}

std::string describe(const File &file, const Checked &checked) {
  std::string text = "a lowered program of torch.distributed.pipelining: " +
                     countOf(static_cast<int64_t>(file.ranks.size()), "rank");
  if (!checked.isPlaced)
    return text + "\n";
  text += ", " + countOf(checked.stages, "stage") + ", " +
          countOf(checked.microBatches, "micro-batch", "es") + "\n";
  for (size_t rank = 0; rank < file.ranks.size(); ++rank) {
    std::string stages;
    size_t count = 0;
    for (int32_t stage = 0; stage < checked.stages; ++stage)
      if (checked.rankOfStage[stage] == static_cast<int32_t>(rank))
        stages += (count++ == 0 ? "" : ", ") + std::to_string(stage);
    text += "rank " + std::to_string(rank) +
            (count == 1 ? ": stage " : ": stages ") + stages + "; at most " +
            countOf(checked.mostSends[rank], "send") +
            " begun and not waited for\n";
  }
  if (!checked.hasWaits &&
      std::ranges::any_of(checked.mostSends, [](int32_t n) { return n > 0; }))
    text += "no action waits for a send: torch 2.11 writes such programs, and "
            "torch 2.15 refuses them\n";
  for (size_t i = 0; i < kMessageOrders.size(); ++i) {
    const std::vector<Fault> &deadlock = checked.deadlocks[i];
    text += std::string("messages with ") + nameOf(kMessageOrders[i]) +
            (deadlock.empty() ? ": all ranks end\n" : ": NOT ALL RANKS END\n");
    for (const Fault &fault : deadlock)
      text += "  " + fault.message + "\n";
  }
  return text;
}

std::string describeFaults(std::string_view path, const File &file,
                           const Checked &checked) {
  constexpr size_t kShown = 10;
  std::string text;
  for (const Fault &fault :
       std::span(checked.faults)
           .first(std::min(kShown, checked.faults.size()))) {
    const std::vector<Cell> &row = file.ranks[fault.place.rank];
    const uint32_t column =
        row.empty()
            ? 1
            : row[std::min<size_t>(fault.place.cell, row.size() - 1)].column;
    text += std::string(path) + ":" + std::to_string(fault.place.rank + 1) +
            ":" + std::to_string(column) + ": error: " + fault.message + "\n";
  }
  if (checked.faults.size() > kShown)
    text += countOf(static_cast<int64_t>(checked.faults.size() - kShown),
                    "more error") +
            "\n";
  return text;
}

bool canRun(const Checked &checked) {
  static_assert(kMessageOrders[1] == MessageOrder::Pair);
  return checked.faults.empty() && checked.deadlocks[1].empty();
}

} // namespace chimera::schedule::torch
