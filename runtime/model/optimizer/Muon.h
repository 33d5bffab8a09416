//===- Muon.h - The update of a matrix by Muon ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Muon (Jordan et al., "Muon: an optimizer for hidden layers in neural
// networks", 2024) as torch.optim.Muon computes it with
// adjust_lr_fn="match_rms_adamw" (Liu et al., "Muon is Scalable for LLM
// Training", arXiv 2502.16982, section 2.2):
//
//   gradient = scale * gradientSum
//   momentumBuffer += (1 - momentum) * (gradient - momentumBuffer)
//   direction = momentumBuffer, or with Nesterov's look-ahead
//       gradient + momentum * (momentumBuffer - gradient)
//   weight -= learningRate * (weightDecay * weight
//       + 0.2 * sqrt(longer side) * orthogonalized(direction))
//
// An update then has about the size of one of AdamW, so that both can have the
// same learning rate and weight decay.
//
// Internal: it includes LibTorch's headers.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_OPTIMIZER_MUON_H
#define CHIMERA_RUNTIME_MODEL_OPTIMIZER_MUON_H

#include "runtime/model/Stage.h"
#include "runtime/model/optimizer/UpdateTensors.h"

#include <ATen/core/Tensor.h>

namespace chimera::runtime {

/// Returns a matrix with the singular vectors of `matrix`. Its singular values
/// are between 0.5 and 1.3, except for those that were tiny beside the others.
/// Applies Newton-Schulz iterations with Jordan's coefficients, as
/// torch.optim.Muon does. Computes in `type`, which is the type of the result.
/// torch.optim.Muon always computes in bfloat16.
at::Tensor orthogonalized(const at::Tensor &matrix, at::ScalarType type);

/// Updates a matrix and its momentum buffer in place. `decay`: whether weight
/// decay applies to the matrix. All three matrices have one shape and one type.
/// The direction is orthogonalized in `type`. If the matrices are bfloat16, all
/// else is computed in float32. Needs temporary memory of at most five such
/// matrices (six if they are bfloat16) of at least float32, and of two squares
/// of their shorter side.
void muonStep(const program::OptimizerT &optimizer, const Update &update,
              const UpdateTensors &tensors, bool decay, at::ScalarType type,
              const at::Tensor &gradientSum, at::Tensor weight,
              at::Tensor momentumBuffer);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_OPTIMIZER_MUON_H
