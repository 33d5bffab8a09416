//===- ParallelFor.cpp - Parallel loops over elements ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/ParallelFor.h"

using namespace chimera::runtime;

static thread_local ParallelForFunction run = nullptr;

void chimera::runtime::setParallelFor(ParallelForFunction how) { run = how; }

void chimera::runtime::parallelFor(int64_t count, int64_t grain,
                                   const RangeFunction &work) {
  if (count <= 0)
    return;
  if (run && count > grain)
    run(count, grain, work);
  else
    work(0, count);
}
