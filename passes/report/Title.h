//===- Title.h - The title of a pipeline in reports -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_REPORT_TITLE_H
#define CHIMERA_PASSES_REPORT_TITLE_H

#include "dialect/Chimera.h"

#include <string>

namespace chimera {

/// The title of a pipeline, such as "look: chimera {concatenation = halving}, 4
/// stages, 8 micro-batches, split_backward". It has the pipeline's sizes and
/// the schedule options that differ from their defaults, spelled as in a
/// description. If the pipeline has the name of its schedule, the title begins
/// with the schedule. If the pipeline names no schedule, the title has
/// `unnamed` in its place. The title has no control characters.
std::string titleOf(PipelineOp pipeline,
                    const std::string &unnamed = "given order");

} // namespace chimera

#endif // CHIMERA_PASSES_REPORT_TITLE_H
