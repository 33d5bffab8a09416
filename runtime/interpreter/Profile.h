//===- Profile.h - Durations of actions and waits ---------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The durations of each kind of action on each stage, and of a rank's waits for
// each kind of message. The compiler can read these durations as costs. All
// times are in nanoseconds.
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
/// exact. The median is exact for less than 4,096 durations. For more
/// durations, it is computed from 2,048 to 4,095 evenly spaced ones.
class Durations {
public:
  void add(int64_t nanoseconds);
  /// Adds the durations of `other`. After this, `add` must not be called.
  void merge(const Durations &other);

  uint64_t count() const { return number; }
  int64_t total() const { return sum; }
  /// The next three functions require a count of at least 1.
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
  /// A kind of event. For an action, `index` is the stage. For the post of a
  /// message or all-reduce, and for the wait for it, `opcode` is the opcode of
  /// the post, and `index` is the kind of the value. All other instructions are
  /// in group Other.
  struct Key {
    enum Group : int64_t { Action, Wait, Post, Other } group;
    program::Opcode opcode;
    int64_t index;

    auto operator<=>(const Key &) const = default;
  };

  /// Adds the duration of an instruction. If the instruction is a wait,
  /// `posted` is the post that it completes, otherwise null. The duration of an
  /// action is converted to the duration for one whole micro-batch: it is
  /// divided by the number of micro-batches that the action covers, or
  /// multiplied by the number of parts if the action covers one part. The
  /// duration of an optimizer step is not converted.
  void add(const program::Instruction &instruction,
           const program::Instruction *posted, int64_t nanoseconds);
  void addStep(int64_t nanoseconds);

  /// The durations in all steps except the first. In the first step, ranks open
  /// connections and allocate memory. If a kind of event occurs only in the
  /// first step, its durations in this step are included.
  const std::map<Key, Durations> &durations() const { return times; }
  /// The durations of all steps except the first, and the duration of the first
  /// step.
  const Durations &steps() const { return laterSteps; }
  int64_t firstStep() const { return first; }

  /// Conversion to a list of numbers, to send it to another rank, and back.
  std::vector<int64_t> pack() const;
  static Profile unpack(const std::vector<int64_t> &packed);

private:
  std::map<Key, Durations> times;
  std::set<Key> onlyOfFirstStep;
  Durations laterSteps;
  int64_t first = 0;
};

/// Facts about a run that influence its times and are not in the program.
struct RunConditions {
  std::string stages;   ///< the kind of stages: the value of --stages
  std::string device;   ///< the value of --device
  uint32_t threads = 1; ///< threads of one rank
  /// The number of cores of a host divided by the number of its ranks. 0 if the
  /// ranks do not compute on cores.
  double coresPerRank = 0;
};

/// The steps [first, end) of a run, from 0.
struct RunSteps {
  uint64_t first = 0, end = 0;
};

/// A JSON document with the profiles of the ranks and the step times of rank
/// `root`. It has the durations of each stage's actions, over all replicas, and
/// the durations of each rank's waits and posts. It also has the model, the
/// layers of each stage, the optimizer, the sizes of a step, and the kind of
/// device. From these facts a reader can compute the time of a layer, and
/// predict times for other stages or micro-batch sizes. `steps` are the steps
/// of the run. `earlier` has the profiles of the runs before it
/// (EarlierRuns.h). They become the list `earlier_runs`.
std::string formatProfile(const program::ProgramT &program,
                          const std::vector<Profile> &ranks, uint32_t root,
                          const RunConditions &conditions, RunSteps steps,
                          const std::vector<std::string> &earlier = {});

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_INTERPRETER_PROFILE_H
