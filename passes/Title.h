//===- Title.h - What a pipeline is called in reports -----------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_PASSES_TITLE_H
#define CHIMERA_PASSES_TITLE_H

#include "dialect/Chimera.h"

#include <string>

namespace chimera {

/// "look: chimera {concatenation = halving}, 4 stages, 8 micro-batches,
/// split_backward": a pipeline's sizes and those options of its schedule that
/// are not left as they are by default, spelled as a description may spell
/// them. Has no character that a terminal would obey.
std::string titleOf(PipelineOp pipeline);

} // namespace chimera

#endif // CHIMERA_PASSES_TITLE_H
