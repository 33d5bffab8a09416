//===- AdamW.h - AdamW on flat memory ---------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// AdamW in one pass over memory, with the formula in AdamWFactors.h. A stage's
// optimizer state is the running averages of all gradients, followed by the
// running averages of their squares, in the weights' type.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_MODEL_OPTIMIZER_ADAMW_H
#define CHIMERA_RUNTIME_MODEL_OPTIMIZER_ADAMW_H

#include "runtime/device/BFloat16.h"
#include "runtime/model/Stage.h"

#include <cstdint>

namespace chimera::runtime {

/// Updates `elements` weights and their two averages in place. `decay`: whether
/// weight decay applies to these weights. T is float, double or BFloat16; all
/// arithmetic is in Arithmetic<T>.
template <typename T>
void adamWStep(const program::OptimizerT &optimizer, const Update &update,
               bool decay, int64_t elements, const T *gradientSum, T *weights,
               T *average, T *averageOfSquares);

extern template void adamWStep<float>(const program::OptimizerT &,
                                      const Update &, bool, int64_t,
                                      const float *, float *, float *, float *);
extern template void adamWStep<double>(const program::OptimizerT &,
                                       const Update &, bool, int64_t,
                                       const double *, double *, double *,
                                       double *);
extern template void adamWStep<BFloat16>(const program::OptimizerT &,
                                         const Update &, bool, int64_t,
                                         const BFloat16 *, BFloat16 *,
                                         BFloat16 *, BFloat16 *);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_MODEL_OPTIMIZER_ADAMW_H
