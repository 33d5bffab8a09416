//===- Refusal.cpp - Programs refused for a deadlock ----------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/runtime/hostile/Refusal.h"

using namespace chimera;
using namespace chimera::runtime;
using namespace chimera::runtime::hostile;

Refusal hostile::runRefused(const program::ProgramT &program, uint64_t seed,
                            uint64_t steps) {
  Refusal refusal;
  auto hasStopped = [](const Outcome &outcome) {
    return outcome.failure.starts_with("no rank can advance:\n  rank ");
  };
  Outcome waiting = run(program, {.seed = seed, .steps = steps});
  if (!hasStopped(waiting))
    refusal.wrong =
        waiting.failure.empty() ? "runs to its end" : waiting.failure;
  refusal.withoutWaiting =
      run(program, {.seed = seed, .steps = steps, .synchronousHosts = false});
  if (!refusal.withoutWaiting.failure.empty() &&
      !hasStopped(refusal.withoutWaiting))
    refusal.wrong = refusal.withoutWaiting.failure;
  return refusal;
}
