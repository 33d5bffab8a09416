//===- Assumptions.cpp - Assumptions of a plan ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/Assumptions.h"

using namespace mlir;

namespace chimera {

using Lines = std::vector<std::string>;

static void addLinks(MachineOp machine, Lines &lines) {
  const bool hasNodes = machine.getNodeDevices().has_value();
  const bool hasNodeLink = machine.getNodeLinkAttr() != nullptr;
  const char *between = hasNodeLink ? " between nodes" : "";
  if (!machine.getLinkAttr())
    lines.push_back(std::string("messages") + between +
                    " take no time (the machine has no link)");
  if (!machine.getAllReduceAttr())
    lines.push_back(
        std::string("all-reduces") + between + " take " +
        (machine.getLinkAttr() ? "as long as the link says" : "no time") +
        " (the machine has no all_reduce)");
  if (hasNodes && !hasNodeLink && machine.getLinkAttr())
    lines.push_back("messages within a node take as long as others (the "
                    "machine has no node_link)");
  if (hasNodeLink && !machine.getNodeAllReduceAttr())
    lines.push_back("all-reduces within a node take as long as its link says "
                    "(the machine has no node_all_reduce)");
}

/// Adds the assumptions about layers and updates, for a machine without
/// profiles.
static void addSpeeds(MachineOp machine, Lines &lines) {
  if (!machine.getMemoryBandwidth())
    lines.push_back("updates take no time (the machine has no "
                    "memory_bandwidth)");
  if (!machine.getLayerOverhead())
    lines.push_back("small micro-batches are as fast as large ones (the "
                    "machine has no layer_overhead)");
}

/// Adds lines for a machine with profiles: clauses that are not used, and
/// measurements that the profiles lack.
static void addProfiles(MachineOp machine,
                        const std::vector<cost::Profile> &profiles,
                        Lines &lines) {
  std::string unused;
  auto addUnused = [&](bool isGiven, const char *clause) {
    if (isGiven)
      unused += (unused.empty() ? "" : ", ") + std::string(clause);
  };
  addUnused(machine.getSpeed().has_value(), "speed");
  addUnused(machine.getLayerOverhead().has_value(), "layer_overhead");
  addUnused(machine.getMemoryBandwidth().has_value(), "memory_bandwidth");
  if (!unused.empty())
    lines.push_back("layers and updates take the measured times (clauses of "
                    "the machine that are not used: " +
                    unused + ")");
  lines.push_back(
      "times for micro-batch sizes that no profile has are interpolated "
      "linearly between two profiles, or are proportional to the only one");
  const unsigned missing = cost::missingKinds(profiles);
  if (missing & cost::kSplitBackward)
    lines.push_back("the halves of a split backward share the time of a whole "
                    "one as they share its operations (add a profile with "
                    "split backwards to measure them)");
  if (missing & cost::kBackward)
    lines.push_back("a whole backward takes as long as its two halves (add a "
                    "profile with whole backwards to measure it)");
  if (missing & cost::kRecompute)
    lines.push_back("a recompute takes as long as the forward (a profile has "
                    "no recompute)");
}

static void addBareLayers(ArrayAttr layers, Lines &lines) {
  bool lacksBackward = false, lacksWeightStash = false;
  for (auto layer : layers.getAsRange<LayerAttr>()) {
    lacksBackward |= layer.getBackward() == 0;
    lacksWeightStash |= layer.getWeightStash() == 0;
  }
  if (lacksBackward)
    lines.push_back(
        "backwards take twice as long as forwards (layers have no backward)");
  lines.push_back("both halves of a split backward take equally long, and a "
                  "recompute takes as long as the forward (layers are bare)");
  if (lacksWeightStash)
    lines.push_back("split backwards keep the whole stash between their halves "
                    "(layers have no weight_stash)");
}

std::vector<std::string> assumptionsOf(PlannerOps ops,
                                       const cost::Machine &machine) {
  Lines lines;
  addLinks(ops.machine, lines);
  if (machine.profiles.empty())
    addSpeeds(ops.machine, lines);
  else
    addProfiles(ops.machine, machine.profiles, lines);
  if (!ops.machine.getReserved())
    lines.push_back("all memory is free (the machine has none reserved)");
  if (ArrayAttr layers = ops.model.getBareLayersAttr())
    addBareLayers(layers, lines);
  if (!ops.weights)
    lines.push_back(ops.activations ? "weights are float32 (no --weight-type)"
                                    : "weights and activations are float32 (no "
                                      "--weight-type or --bf16)");
  if (!ops.training)
    lines.push_back("AdamW (no chimera.training)");
  return lines;
}

} // namespace chimera
