//===- Profile.h - What a run measured --------------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run says how long each action of each stage took (chimera-run --profile).
// From that follows what layers take, and so what another cut of the model or
// another micro-batch would.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_PROFILE_H
#define CHIMERA_COMPILER_PLAN_PROFILE_H

#include "runtime/program/Layers.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::plan {

/// What a run may have measured of a stage beside its forward: bits of a set.
inline constexpr unsigned kBackward = 1, kHalves = 2, kRecompute = 4;

/// What a stage's actions took for one whole micro-batch, in nanoseconds; 0
/// where it had none. Means, since a step is a sum of many: medians leave out
/// what some of them wait for the caches and cores that ranks share.
struct MeasuredStage {
  int32_t first, end; ///< its layers
  int64_t load, forward, backward, inputGradient, weightGradient, recompute,
      update;

  /// Those of kBackward, kHalves and kRecompute that it has.
  unsigned kinds() const {
    return (backward > 0 ? kBackward : 0) | (inputGradient > 0 ? kHalves : 0) |
           (recompute > 0 ? kRecompute : 0);
  }
};

/// What one run measured.
struct Profile {
  std::string name; ///< of its file, for errors
  int64_t microBatchSize = 1;
  int32_t layers = 0;    ///< of the model
  std::string model;     ///< its architecture and sizes, as JSON
  std::string types;     ///< "float32", "float32, bfloat16"
  std::string optimizer; ///< its name
  int64_t threads = 1;   ///< with which a rank computed
  std::string device;    ///< on what, empty where the profile does not say
  /// Cores of a host for each of its ranks, where the profile says.
  std::optional<double> coresPerRank;
  std::vector<MeasuredStage> stages; ///< all layers, in order

  /// Whether ranks computed with more threads than they had cores, so that
  /// times contain waits for a core. False where the profile does not say.
  bool hasSharedCores() const {
    return coresPerRank && *coresPerRank < static_cast<double>(threads);
  }
};

/// Reads the profile `text` of the file `name`. Returns what is wrong where it
/// is none of a program that trained a model.
std::string readProfile(std::string_view name, std::string_view text,
                        Profile &profile);

/// Empty, or why the profile is of something else than this model with values
/// of these types.
std::string checkProfile(const Profile &profile, const program::ModelT &model,
                         program::Types types, std::string_view optimizer);

/// Empty, or why the profiles do not go together: they are of several devices,
/// or one has nothing that is not in those before it of the same size.
std::string checkTogether(const std::vector<Profile> &profiles);

/// What is measured by no profile of a size, of any layer and any size that has
/// a profile: kBackward, kHalves and kRecompute.
unsigned missingKinds(const std::vector<Profile> &profiles);

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_PROFILE_H
