//===- Optimizer.h - The numbers of an optimizer ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of an optimizer's numbers. The proof uses it for the numbers in a
// file, and a run uses it again after its options have changed some of them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H
#define CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H

#include "runtime/program/Program.h"

namespace chimera::program {

/// The largest number of steps in a schedule of the learning rate. Sums of such
/// numbers fit in 64 bits, and a float64 represents each of them exactly.
inline constexpr uint64_t kMaxSteps = uint64_t{1} << 40;

/// Returns an error text if a number is out of its range, or if two numbers
/// contradict each other, otherwise an empty text. Does not check the name.
std::string faultOfOptimizer(const OptimizerT &optimizer);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H
