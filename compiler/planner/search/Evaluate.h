//===- Evaluate.h - Step time and memory of a plan --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_SEARCH_EVALUATE_H
#define CHIMERA_COMPILER_PLANNER_SEARCH_EVALUATE_H

#include "compiler/cost/Cut.h"
#include "compiler/planner/search/Space.h"
#include "compiler/schedule/simulate/StepTime.h"

#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <variant>

namespace chimera::plan {

/// A plan: a choice (Space.h), the evaluator's decisions on recomputation and
/// all-reduces, and the resulting step time and memory.
struct Proposal {
  Choice choice;
  /// Empty (no recomputation), or one entry for each stage.
  std::vector<schedule::Recompute> recompute;
  schedule::AllReducePolicy policy;
  double stepTime; ///< ns, the mean of many steps (StepTime.h)
  /// Peak bytes of the worker that needs most. They are computed as in
  /// compiler/schedule/simulate/Memory.h, with two differences: all sums of
  /// gradients have memory from the start of the program, and losses have
  /// memory too.
  int64_t peakBytes;
  int32_t peakWorker;
};

/// The plan does not fit into the memory, whatever stages are recomputed.
struct TooLarge {
  int64_t peakBytes; ///< a lower bound of the bytes of the largest worker
};
/// The choice was left out: its steps take at least `bound` ns, and CanRuleOut
/// returned true for this bound.
struct RuledOut {
  double bound;
};
/// The scheme of the choice cannot make a plan for it.
struct Impossible {
  std::string reason;
};
using Outcome = std::variant<Proposal, TooLarge, RuledOut, Impossible>;

/// Returns true if the caller does not want a plan whose step takes at least
/// `bound` nanoseconds and whose largest worker needs at least `peakBytes`.
using CanRuleOut = std::function<bool(double bound, int64_t peakBytes)>;

/// The stages of a proposal, its scheduling problem, and the order that solves
/// the problem. The order includes recomputes.
struct Solution {
  std::vector<cost::CutStage> stages;
  schedule::Problem problem;
  schedule::Schedule order;
};

/// Evaluates choices for one question. The question must outlive the evaluator.
/// Several threads may call its functions at the same time.
class Evaluator {
public:
  explicit Evaluator(const Question &question);

  /// Computes step time and memory of a choice. Chooses the all-reduce policy
  /// with the shortest step, or the first of them in kPolicies if several are
  /// equally fast. If a worker needs too much memory and recomputation is
  /// allowed, the worker recomputes some stages: the ones with the largest
  /// stashes, and as few as may be enough. Then the model is cut again to
  /// balance the stages. This repeats until all workers fit.
  Outcome evaluate(const Choice &choice, const CanRuleOut &canRuleOut) const {
    return evaluate(choice, canRuleOut, question.machine.memory,
                    question.pins.recomputation);
  }
  /// Like the first `evaluate`, but `memory` replaces the machine's memory
  /// limit, and `allowed` replaces the pinned recomputation.
  Outcome evaluate(const Choice &choice, const CanRuleOut &canRuleOut,
                   int64_t memory, Recomputation allowed) const;

  /// An estimate of the time in ns for one micro-batch: the mean work of a
  /// worker, increased by the bubble of a single pipeline. The search evaluates
  /// first the choices with the smallest estimates. It then simulates fewer
  /// choices than in the order of the times for a whole step.
  double estimateStep(const Choice &choice) const;

  /// The problem and the order of `proposal`. Requires that `evaluate` returned
  /// `proposal`.
  Solution solutionOf(const Proposal &proposal) const;

private:
  /// The stages of a choice, and the request from which its scheme makes a
  /// plan.
  struct StagesAndRequest {
    std::vector<cost::CutStage> stages;
    schedule::Request request;
  };
  StagesAndRequest requestFor(const Choice &choice,
                              const std::vector<schedule::Recompute> &recompute,
                              int64_t parts = 1) const;
  /// Returns a solution without an order.
  std::variant<Solution, Impossible>
  solutionWithoutOrder(const Choice &choice, const schedule::Plan &plan,
                       const std::vector<schedule::Recompute> &recompute) const;
  /// Adds recomputes to `proposal` until the plan fits into `memory` bytes, and
  /// sets its peakBytes and peakWorker. Returns TooLarge if the plan cannot
  /// fit, or Impossible if there is no plan.
  std::variant<Solution, Impossible, TooLarge>
  makeFit(schedule::Plan plan, int64_t memory, Recomputation allowed,
          Proposal &proposal) const;
  /// Sets the policy and the step time of `proposal`.
  void setPolicyAndStepTime(Solution &solution, const CanRuleOut &canRuleOut,
                            Proposal &proposal) const;

  /// Costs of the layers for micro-batches of the choice. The backward of a
  /// micro-batch has `parts` parts.
  const cost::LayerTable &tableOf(const Choice &choice,
                                  int64_t parts = 1) const;
  /// The stages of a choice if nothing is recomputed. They are computed once,
  /// because many choices share them.
  const std::vector<cost::CutStage> &cutWithoutRecompute(const Choice &choice,
                                                         int64_t parts) const;

  const Question &question;
  mutable std::mutex mutex; ///< protects the members below
  /// By micro-batch size and parts of a backward.
  mutable std::map<std::pair<int32_t, int64_t>, cost::LayerTable> tables;
  /// By micro-batch size, number of stages and parts of a backward.
  mutable std::map<std::tuple<int32_t, int32_t, int64_t>,
                   std::vector<cost::CutStage>>
      cutsWithoutRecompute;
};

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLANNER_SEARCH_EVALUATE_H
