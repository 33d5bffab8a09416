//===- Optimizer.h - The numbers of an optimizer ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of an optimizer's numbers, and the patterns of parameters without
// weight decay. The proof uses the check for the numbers in a file, and a run
// uses it again after its options have changed some of them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H
#define CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H

#include "runtime/program/Program.h"

namespace chimera::program {

/// The largest number of steps in a schedule of the learning rate. Sums of such
/// numbers fit in 64 bits, and a float64 represents each of them exactly.
inline constexpr uint64_t kMaxSteps = uint64_t{1} << 40;

/// The largest number of patterns in no_decay.
inline constexpr size_t kMaxPatterns = 64;

/// Returns an error text if a number is out of its range, or if two numbers
/// contradict each other, otherwise an empty text. Does not check the name, and
/// of the patterns only their number.
std::string faultOfOptimizer(const OptimizerT &optimizer);

/// Whether `pattern` matches the whole of `text`. `*` stands for any number of
/// characters, `?` for one character. The time is at most proportional to the
/// product of both lengths, so that no pattern of a file can stop a run.
bool matches(std::string_view pattern, std::string_view text);

/// Whether weight decay applies to a parameter of this name. `byModel` says
/// whether it applies if no pattern in no_decay matches the name
/// (Parameter::decays).
bool decays(const OptimizerT &optimizer, std::string_view name, bool byModel);

/// Returns an error text if a pattern in no_decay matches no parameter of the
/// model, which is mostly a typing error, otherwise an empty text. Requires a
/// model that checkModel accepts.
std::string faultOfPatterns(const OptimizerT &optimizer, const ModelT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H
