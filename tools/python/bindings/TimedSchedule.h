//===- TimedSchedule.h - A schedule with its problem ------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_TOOLS_PYTHON_BINDINGS_TIMEDSCHEDULE_H
#define CHIMERA_TOOLS_PYTHON_BINDINGS_TIMEDSCHEDULE_H

#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/model/StatedTimes.h"
#include "compiler/schedule/simulate/StepTime.h"
#include "compiler/schedule/text/TimeUnit.h"
#include "compiler/schedule/verify/Violation.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chimera::python {

/// The costs, the sizes and the limits that a user states for a pipeline. Times
/// are in ticks, sizes in bytes.
struct Statement {
  /// The costs of each stage. Empty: those of `times`.
  std::vector<schedule::StageCost> costs;
  schedule::StatedTimes times;
  std::string unit = "none"; ///< of times: a name of timeUnits()
  /// The sizes of each stage. Empty: unknown.
  std::vector<schedule::StageBytes> bytes;
  int64_t copies = 1; ///< data-parallel copies of all workers
  std::string allReduce = "lazy";
  int64_t bucketBytes = 0;
  int64_t memoryCap = 0; ///< of each worker; 0: none
};

/// The sizes of a pipeline whose schedule a scheme makes.
struct Sizes {
  int64_t stages = 0, workers = 0, microBatches = 0;
  bool splitBackward = false;
  std::vector<int64_t> recompute; ///< stages that are recomputed
  bool isFused = false;           ///< Recompute::Fused
};

/// A schedule with its problem and the scale of its times. Never changes.
class TimedSchedule {
public:
  /// Makes the plan of the scheme `name` with these values of its options.
  /// Throws std::invalid_argument if a value is wrong, or if there is no such
  /// plan.
  TimedSchedule(const std::string &name,
                const std::map<std::string, std::string> &options,
                const Sizes &sizes, const Statement &statement);

  /// Reads the orders of workers (OrderFile.h) from `text`, whose name in
  /// errors is `path`. Throws std::invalid_argument if a word is wrong. The
  /// orders may violate constraints.
  static TimedSchedule fromOrders(const std::string &path, std::string text,
                                  bool hasZeroBubbleNotation,
                                  const Statement &statement);
  /// Reads the computations of each rank from a file of PyTorch (TorchCsv.h).
  static TimedSchedule fromTorchCsv(const std::string &path,
                                    const std::string &text,
                                    const Statement &statement);

  const schedule::Scheme *scheme = nullptr; ///< null if the orders are given
  std::string name;                         ///< of the schedule
  std::string note; ///< what was left out when it was read; empty if nothing
  schedule::Options options;
  schedule::Problem problem;
  schedule::Schedule order;
  schedule::TimeScale scale;
  std::vector<schedule::Violation> violations;

  /// "zb-v, 8 stages on 4 workers, 16 micro-batches".
  std::string title() const;
  /// "P0, action 3 (B0)": the place that a violation or a note names. Empty if
  /// it names none.
  std::string placeOf(int32_t worker, int32_t index) const;
  /// The order of each worker as a line of words (OrderText.h).
  std::vector<std::string> orders() const;
  /// The text of a pipeline with this schedule. `of` follows its name ("of
  /// @model"), and `more` its clauses.
  std::string module(const std::string &of, const std::string &more) const;
  /// Throws std::invalid_argument, with the first violation, unless the
  /// schedule is valid.
  void requireValid() const;

private:
  TimedSchedule() = default;

  bool isSplitStated = false; ///< whether a clause splits all backwards

  /// Sets the parts of `problem` that `statement` states, except times.
  void state(const Statement &statement);
  /// Sets the times of `problem`.
  void setTimes(const Statement &statement);
  /// Sets the times of `problem`, checks it, and verifies the order. Throws
  /// std::invalid_argument if the problem is not well-formed.
  void complete(const Statement &statement);
};

} // namespace chimera::python

#endif // CHIMERA_TOOLS_PYTHON_BINDINGS_TIMEDSCHEDULE_H
