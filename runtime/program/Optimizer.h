//===- Optimizer.h - The numbers of an optimizer ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How an optimizer updates each parameter of a model, where a stage keeps the
// state for it, and the check of the optimizer's numbers. The proof uses the
// check for the numbers in a file, and a run uses it again after its options
// have changed some of them.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H
#define CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H

#include "runtime/program/Layers.h"

namespace chimera::program {

/// The names of the optimizers. SGD with and without momentum are two of them,
/// because only the first one has a state.
inline constexpr char kAdamW[] = "adamw", kMuon[] = "muon", kSgd[] = "sgd",
                      kSgdMomentum[] = "sgd-momentum";

/// Returns an error text, or an empty text if `name` is the name of an
/// optimizer.
std::string checkOptimizer(const std::string &name);

/// How a parameter is updated. The optimizer "muon" updates by Muon the
/// matrices of all layers but the first and the last, unless a pattern in
/// no_muon matches the parameter's name. It updates all other parameters by
/// AdamW: vectors, convolution kernels, the embedding and the head. A matrix
/// has two dimensions, both larger than 1.
enum class UpdateRule { Sgd, SgdMomentum, AdamW, Muon };

/// How `optimizer` updates matrices that no pattern excepts. `isInner`: they
/// are in a layer that is neither the first nor the last. Requires a name that
/// checkOptimizer accepts.
UpdateRule ruleOfMatrices(const OptimizerT &optimizer, bool isInner);

/// The names of the states that a rule keeps for a parameter, as in PyTorch:
/// exp_avg and exp_avg_sq for AdamW, momentum_buffer for SGD with momentum and
/// for Muon, none for SGD. Each state has the shape of the parameter.
std::span<const std::string_view> statesOf(UpdateRule rule);

/// The optimizer state of a stage: first the first state of all parameters that
/// have one, then the second state of all parameters that have two. Both are in
/// the order of stageParameters.
struct StateLayout {
  struct Parameter {
    UpdateRule rule;
    /// For each state of statesOf(rule): its offset in the optimizer state, in
    /// elements.
    std::vector<int64_t> offsets;
  };
  std::vector<Parameter> parameters; ///< those of stageParameters
  int64_t elements = 0;              ///< of all states together
};

/// The optimizer state of a stage with layers [first, first + count). Requires
/// a name that checkOptimizer accepts, and what stageParameters requires.
StateLayout stateLayout(const OptimizerT &optimizer, const PackageT &model,
                        uint32_t first, uint32_t count);

/// The bytes of the optimizer state of a stage with layers [first, first +
/// count). Requires what stateLayout requires.
int64_t optimizerBytes(const OptimizerT &optimizer, const PackageT &model,
                       Types types, uint32_t first, uint32_t count);

/// The floating-point operations with which Muon orthogonalises the matrices of
/// `layer`. 0 for the other optimizers: their updates only take the time in
/// which memory moves their operands. Requires what stateLayout requires.
int64_t orthogonalisationFlops(const OptimizerT &optimizer,
                               const PackageT &model, uint32_t layer);

/// The number of iterations with which Muon orthogonalises a matrix.
inline constexpr int kMuonIterations = 5;

/// The largest number of steps in a schedule of the learning rate. Sums of such
/// numbers fit in 64 bits, and a float64 represents each of them exactly.
inline constexpr uint64_t kMaxSteps = uint64_t{1} << 40;

/// The largest number of patterns in no_decay, and in no_muon.
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

/// Returns an error text if a pattern in no_decay or no_muon matches no
/// parameter of the model, which is mostly a typing error, or if the optimizer
/// is "muon" and Muon updates no parameter; otherwise an empty text. Requires a
/// model that checkPackage accepts.
std::string faultOfParameters(const OptimizerT &optimizer,
                              const PackageT &model);

} // namespace chimera::program

#endif // CHIMERA_RUNTIME_PROGRAM_OPTIMIZER_H
