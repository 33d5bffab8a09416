//===- Assumptions.cpp - What a plan assumes ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Assumptions.h"

namespace chimera {

std::vector<std::string> assumptionsOf(PlanSubject subject) {
  MachineOp machine = subject.machine;
  std::vector<std::string> all;
  if (!machine.getLinkAttr())
    all.push_back("messages take no time (the machine has no link)");
  else if (!machine.getAllReduceAttr())
    all.push_back("all-reduces take what the link does (the machine has no "
                  "all_reduce)");
  if (!machine.getMemoryBandwidth() && !machine.getProfile())
    all.push_back("updates take no time (the machine has no "
                  "memory_bandwidth)");
  if (!machine.getLayerOverhead() && !machine.getProfile())
    all.push_back("small micro-batches are as fast as large ones (the machine "
                  "has no layer_overhead)");
  if (machine.getProfile())
    all.push_back("micro-batches of a size without a profile take what those "
                  "with one do, in proportion or on a line between them");
  if (!machine.getReserved())
    all.push_back("all memory is free (the machine has none reserved)");
  if (!subject.training)
    all.push_back("AdamW");
  return all;
}

} // namespace chimera
