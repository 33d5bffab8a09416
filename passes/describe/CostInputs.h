//===- CostInputs.h - From the IR to models and machines --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Converts IR to cost::Model and cost::Machine.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_DESCRIBE_COSTINPUTS_H
#define CHIMERA_PASSES_DESCRIBE_COSTINPUTS_H

#include "compiler/cost/Model.h"
#include "dialect/Chimera.h"

namespace chimera {

/// The model of `op` with values of these types and this optimizer. Fails with
/// a diagnostic if the model is not bare and cannot be trained.
mlir::FailureOr<cost::Model> costModelOf(ModelOp op, program::Types types,
                                         program::OptimizerT optimizer);

/// The model of the pipeline, or none if the pipeline names none. Fails with a
/// diagnostic if the model does not exist, or if it is not bare and cannot be
/// trained.
mlir::FailureOr<std::optional<cost::Model>> costModelOf(PipelineOp pipeline);

/// The machine with its profiles, which are read from their files. Fails with a
/// diagnostic if a profile cannot be read. Warns if the machine has node_cores
/// and a profile has times of ranks that shared cores: the simulator adds the
/// slowdown by shared cores itself, so it would count twice.
mlir::FailureOr<cost::Machine> costMachineOf(MachineOp op);

/// The link's times in ticks. A unit of the times of `link` has `perUnit`
/// ticks.
schedule::Link linkOf(LinkAttr link, int64_t perUnit = 1);

/// The times of the machine's messages and all-reduces, in nanoseconds.
schedule::Network networkOf(MachineOp op);

} // namespace chimera

#endif // CHIMERA_PASSES_DESCRIBE_COSTINPUTS_H
