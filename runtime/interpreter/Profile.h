//===- Profile.h - What a run's time went into ------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How long each kind of action took on each stage, and how long a rank waited
// for each kind of message: what a user gives back to the compiler as costs.
// All times are in nanoseconds.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_INTERPRETER_PROFILE_H
#define CHIMERA_RUNTIME_INTERPRETER_PROFILE_H

#include "runtime/program/Program.h"

#include <map>
#include <set>
#include <vector>

namespace chimera::runtime {

/// How long one thing took, time after time. Count, total, least and most are
/// exact; the median is that of some 2,000 to 4,000 samples, evenly spaced.
class Durations {
public:
  void add(int64_t nanoseconds);
  /// Counts the others' too. `add` is no longer to be called then.
  void merge(const Durations &other);

  uint64_t count() const { return number; }
  int64_t total() const { return sum; }
  /// These require a count of at least 1.
  int64_t least() const { return smallest; }
  int64_t most() const { return largest; }
  int64_t median() const;

private:
  friend class Profile;

  struct Sample {
    int64_t nanoseconds;
    int64_t weight; ///< how many it stands for
  };
  uint64_t number = 0;
  int64_t sum = 0, smallest = INT64_MAX, largest = INT64_MIN;
  int64_t stride = 1;
  std::vector<Sample> samples;
};

/// One rank's durations.
class Profile {
public:
  /// What was timed: an action (`opcode`, `index` is the stage); the wait for a
  /// transfer or its post (`opcode` of the post, `index` the kind of value); or
  /// whatever else a worker does.
  struct Key {
    enum Group : int64_t { Action, Wait, Post, Other } group;
    program::Opcode opcode;
    int64_t index;

    auto operator<=>(const Key &) const = default;
  };

  /// Adds what an instruction took; `posted` is what it waits for, null for
  /// all but waits. An action counts as one on a whole micro-batch: it takes
  /// its share where it covers several, and as many times more where it covers
  /// a part of one.
  void add(const program::Instruction &instruction,
           const program::Instruction *posted, int64_t nanoseconds);
  void addStep(int64_t nanoseconds);

  /// Without those of the first step, which makes connections and takes memory,
  /// unless that is all there is of a kind.
  const std::map<Key, Durations> &durations() const { return times; }
  /// The steps but the first, and that one.
  const Durations &steps() const { return laterSteps; }
  int64_t firstStep() const { return first; }

  /// As plain memory, and back.
  std::vector<int64_t> pack() const;
  static Profile unpack(const std::vector<int64_t> &packed);

private:
  std::map<Key, Durations> times;
  std::set<Key> onlyOfFirstStep;
  Durations laterSteps;
  int64_t first = 0;
};

/// What computed while a profile was made. The program does not say it.
struct Computed {
  std::string stages;   ///< their kind, as --stages calls it
  std::string device;   ///< as --device calls it
  uint32_t threads = 1; ///< of a rank
  /// Of the host's, for each of its ranks; 0 where ranks compute on no cores.
  double coresPerRank = 0;
};

/// A JSON document of the ranks' profiles, with the steps of `root`: for each
/// stage over all its replicas the durations of its actions, for each rank
/// those of its waits and posts. It also says what was measured: the model, the
/// layers of each stage, the optimizer, the sizes of a step and what computed.
/// A reader can so tell what a layer took, and what other stages or
/// micro-batches would take.
std::string formatProfile(const program::ProgramT &program,
                          const std::vector<Profile> &ranks, uint32_t root,
                          const Computed &computed);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_PROFILE_H
