//===- Profile.h - Durations of actions and waits ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The times of each kind of action on each stage, and of a rank's waits for
// each kind of message. The compiler can read them as costs. All times are in
// nanoseconds.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_PROFILE_H
#define CHIMERA_RUNTIME_INTERPRETER_PROFILE_H

#include "runtime/program/Program.h"

#include <map>
#include <set>
#include <vector>

namespace chimera::runtime {

/// The durations of one kind of event. Count, total, minimum and maximum are
/// exact. The median is computed from about 2,000 to 4,000 evenly spaced
/// samples.
class Durations {
public:
  void add(int64_t nanoseconds);
  /// Adds the durations of `other`. After this, `add` must not be called.
  void merge(const Durations &other);

  uint64_t count() const { return number; }
  int64_t total() const { return sum; }
  /// These require a count of at least 1.
  int64_t min() const { return smallest; }
  int64_t max() const { return largest; }
  int64_t median() const;

private:
  friend class Profile;

  struct Sample {
    int64_t nanoseconds;
    int64_t weight; ///< the number of durations that it represents
  };
  uint64_t number = 0;
  int64_t sum = 0, smallest = INT64_MAX, largest = INT64_MIN;
  int64_t stride = 1;
  std::vector<Sample> samples;
};

/// The durations of one rank.
class Profile {
public:
  /// A kind of event. It is an action (`index` is the stage), or the post of a
  /// transfer or the wait for it (`opcode` is the post's, `index` is the kind
  /// of the value), or anything else that a worker does.
  struct Key {
    enum Group : int64_t { Action, Wait, Post, Other } group;
    program::Opcode opcode;
    int64_t index;

    auto operator<=>(const Key &) const = default;
  };

  /// Adds the duration of an instruction. `posted` is the post that a wait
  /// completes; null for other instructions. The duration of an action is
  /// converted to one whole micro-batch: divided by the number of micro-batches
  /// that it covers, or multiplied by the number of parts if it covers one
  /// part.
  void add(const program::Instruction &instruction,
           const program::Instruction *posted, int64_t nanoseconds);
  void addStep(int64_t nanoseconds);

  /// The durations without those of the first step, which opens connections and
  /// allocates memory. Kinds of events that exist only in the first step are
  /// included.
  const std::map<Key, Durations> &durations() const { return times; }
  /// The durations of all steps except the first; the duration of the first
  /// step.
  const Durations &steps() const { return laterSteps; }
  int64_t firstStep() const { return first; }

  /// Conversion to plain memory and back.
  std::vector<int64_t> pack() const;
  static Profile unpack(const std::vector<int64_t> &packed);

private:
  std::map<Key, Durations> times;
  std::set<Key> onlyOfFirstStep;
  Durations laterSteps;
  int64_t first = 0;
};

/// The stages, the device and the threads with which a profile was made. The
/// program does not state them.
struct Computed {
  std::string stages;   ///< kind of the stages, as in --stages
  std::string device;   ///< as in --device
  uint32_t threads = 1; ///< threads of one rank
  /// The host's cores for each of its ranks; 0 if ranks compute on no cores.
  double coresPerRank = 0;
};

/// A JSON document with the profiles of the ranks and the step times of rank
/// `root`. It has the durations of each stage's actions, over all replicas, and
/// the durations of each rank's waits and posts. It also says what was
/// measured: the model, the layers of each stage, the optimizer, the sizes of a
/// step, and the devices that computed. From this a reader can compute the time
/// of a layer, and predict times for other stages or micro-batch sizes.
std::string formatProfile(const program::ProgramT &program,
                          const std::vector<Profile> &ranks, uint32_t root,
                          const Computed &computed);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_PROFILE_H
