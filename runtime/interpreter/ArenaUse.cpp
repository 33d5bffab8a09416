//===- ArenaUse.cpp - Bytes of the arena that hold a value ----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/ArenaUse.h"

#include "runtime/interpreter/Uses.h"

#include <algorithm>
#include <optional>

using namespace chimera;
using namespace chimera::runtime;

namespace {
struct Value {
  size_t birth, lastUse;
};

/// The instructions in execution order, as if the run had two steps. The body
/// occurs twice, because a value may live from one step into the next.
std::vector<uint32_t> unroll(const program::WorkerT &worker) {
  std::vector<uint32_t> order;
  auto append = [&](uint32_t begin, size_t end) {
    for (uint32_t i = begin; i < end; ++i)
      order.push_back(i);
  };
  append(0, worker.body_end);
  append(worker.body_begin, worker.body_end);
  append(worker.body_end, worker.instructions.size());
  return order;
}
} // namespace

std::vector<uint64_t>
chimera::runtime::arenaBytesInUse(const program::WorkerT &worker) {
  std::vector<uint32_t> order = unroll(worker);
  std::vector<int64_t> change(order.size() + 1);
  std::vector<std::optional<Value>> values(worker.buffers.size());
  std::vector<bool> counted(worker.buffers.size(), true);
  int64_t always = 0;
  for (const program::State &state : worker.states)
    for (uint32_t buffer : {state.weights(), state.optimizer_state()}) {
      counted[buffer] = false;
      always += static_cast<int64_t>(worker.buffers[buffer].bytes());
    }
  for (size_t b = 0; b < counted.size(); ++b)
    if (program::isStash(worker.buffers[b].kind()))
      counted[b] = false;

  auto end = [&](uint32_t buffer) {
    if (std::optional<Value> &value = values[buffer]) {
      auto bytes = static_cast<int64_t>(worker.buffers[buffer].bytes());
      change[value->birth] += bytes;
      change[value->lastUse + 1] -= bytes;
    }
    values[buffer].reset();
  };
  for (size_t at = 0; at < order.size(); ++at) {
    forEachUse(worker, worker.instructions[order[at]],
               [&](uint32_t buffer, Use use) {
                 if (!counted[buffer])
                   return;
                 if (use == Use::Write || use == Use::Enter) {
                   end(buffer);
                   values[buffer] = Value{at, at};
                   return;
                 }
                 // If a value is read before it is written, an earlier step has
                 // written it. So its bytes count from the beginning of the
                 // order.
                 if (!values[buffer])
                   values[buffer] = Value{0, at};
                 values[buffer]->lastUse = at;
                 // From this instruction on, the value has another buffer
                 // number, and its bytes count for this number.
                 if (use == Use::Leave) {
                   values[buffer]->lastUse = at - 1;
                   end(buffer);
                 }
               });
  }
  for (uint32_t buffer = 0; buffer < values.size(); ++buffer)
    end(buffer);

  std::vector<uint64_t> inUse(worker.instructions.size());
  int64_t now = always;
  for (size_t at = 0; at < order.size(); ++at) {
    now += change[at];
    inUse[order[at]] = std::max(inUse[order[at]], static_cast<uint64_t>(now));
  }
  return inUse;
}
