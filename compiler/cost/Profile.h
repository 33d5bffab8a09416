//===- Profile.h - Times that a run measured --------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A profile has the times of each stage's actions in a run (chimera-run
// --profile). MeasuredLayers.h derives the times of layers from it. With these,
// the planner knows the times for another cut of the model and for another
// micro-batch size.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_COST_PROFILE_H
#define CHIMERA_COMPILER_COST_PROFILE_H

#include "runtime/program/Layers.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::cost {

/// Kinds of measurements of a stage, as bits of a set: whole backwards, split
/// backwards (input and weight gradients), recomputes. Every stage has a
/// measurement of its forward, so this needs no bit.
inline constexpr unsigned kBackward = 1, kSplitBackward = 2, kRecompute = 4;

/// Mean times of a stage's actions for one whole micro-batch, in nanoseconds. A
/// time is 0 if the stage had no such action. Means are used and not medians,
/// because a step is a sum of many actions: a median would leave out the waits
/// for caches and cores that ranks share.
struct MeasuredStage {
  int32_t first, end; ///< layers [first, end) of the model
  int64_t load, forward, backward, inputGradient, weightGradient, recompute,
      update;

  /// The set of kinds that were measured for this stage.
  unsigned kinds() const {
    return (backward > 0 ? kBackward : 0) |
           (inputGradient > 0 ? kSplitBackward : 0) |
           (recompute > 0 ? kRecompute : 0);
  }
};

/// The measurements of one run.
struct Profile {
  std::string name; ///< name of the profile's file, for error messages
  int64_t microBatchSize = 1;
  int32_t layers = 0;    ///< number of layers of the model
  std::string model;     ///< its key (ModelKey.h)
  std::string types;     ///< weights, activations: "float32, bfloat16"
  std::string optimizer; ///< name of the optimizer
  int64_t threads = 1;   ///< threads of a rank
  std::string device;    ///< name of the device; empty if not known
  /// Cores of a host per rank. None if the profile does not say.
  std::optional<double> coresPerRank;
  std::vector<MeasuredStage> stages; ///< in order; they cover all layers

  /// True if ranks computed with more threads than they had cores, so that
  /// times contain waits for a core. False if the profile does not say.
  bool hasSharedCores() const {
    return coresPerRank && *coresPerRank < static_cast<double>(threads);
  }
};

/// Reads the profile `text` of the file `name`. Returns an empty text, or an
/// error if it is not the profile of a program that trained a model.
std::string readProfile(std::string_view name, std::string_view text,
                        Profile &profile);

/// Returns an error if the profile is of a model with another key (ModelKey.h),
/// of other types or of another optimizer, else an empty text.
std::string checkProfile(const Profile &profile, const program::PackageT &model,
                         program::Types types, std::string_view optimizer);

/// Returns an error if the profiles cannot be combined, else an empty text.
/// They cannot be combined if they are of different devices, or if one adds no
/// kind of measurement to the earlier profiles of the same micro-batch size.
std::string checkTogether(const std::vector<Profile> &profiles);

/// The kinds of measurements that are missing for some layer at some
/// micro-batch size of the profiles: a set of kBackward, kSplitBackward and
/// kRecompute.
unsigned missingKinds(const std::vector<Profile> &profiles);

} // namespace chimera::cost

#endif // CHIMERA_COMPILER_COST_PROFILE_H
