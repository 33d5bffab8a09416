//===- Evaluate.h - Step time and memory of a plan --------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLAN_EVALUATE_H
#define CHIMERA_COMPILER_PLAN_EVALUATE_H

#include "compiler/plan/Cut.h"
#include "compiler/plan/Space.h"
#include "compiler/schedule/StepTime.h"

#include <functional>
#include <map>
#include <mutex>
#include <tuple>
#include <variant>

namespace chimera::plan {

/// A choice and the decisions for it.
struct Proposal {
  Choice choice;
  /// Empty (no recomputation), or one entry for each stage.
  std::vector<schedule::Recompute> recompute;
  schedule::AllReducePolicy policy;
  double step; ///< ns, the mean of many steps (StepTime.h)
  /// Peak bytes of the worker that needs most. They are computed as in
  /// Memory.h, with two differences: all sums of gradients have memory from the
  /// start of the program, and losses have memory too.
  int64_t peakBytes;
  int32_t peakWorker;
};

/// The plan does not fit into the memory, with any allowed recomputation.
struct TooLarge {
  int64_t peakBytes; ///< a lower bound, of the worker that needs most
};
/// The choice was left out: its steps take at least `bound` ns, and CanRuleOut
/// returned true for this bound.
struct RuledOut {
  double bound;
};
/// The choice's scheme has no plan.
struct Impossible {
  std::string reason;
};
using Outcome = std::variant<Proposal, TooLarge, RuledOut, Impossible>;

/// Returns true if a plan is of no interest when its steps take at least
/// `bound` nanoseconds and its largest worker needs `peakBytes`.
using CanRuleOut = std::function<bool(double bound, int64_t peakBytes)>;

/// The problem that a proposal solves, and its order with recomputes.
struct Solution {
  std::vector<CutStage> stages;
  schedule::Problem problem;
  schedule::Schedule order;
};

/// Evaluates choices of one question, which must outlive it. Several threads
/// may call its functions at the same time.
class Evaluator {
public:
  explicit Evaluator(const Question &question);

  /// Computes step time and memory of a choice. The all-reduce policy is the
  /// one with the shortest step, and the first of kPolicies among equal ones.
  /// If a worker needs too much memory and recomputation is allowed, the worker
  /// recomputes some stages: the ones with the largest stashes, and as few as
  /// may be enough. Then the model is cut again to balance the stages. This
  /// repeats until all workers fit.
  Outcome evaluate(const Choice &choice, const CanRuleOut &canRuleOut) const {
    return evaluate(choice, canRuleOut, question.machine.memory,
                    question.pins.recomputation);
  }
  /// Like the first `evaluate`, with another memory limit than the machine's,
  /// and another limit of recomputation than the pinned one.
  Outcome evaluate(const Choice &choice, const CanRuleOut &canRuleOut,
                   int64_t memory, Recomputation allowed) const;

  /// An estimate of the step time in ns. It has the bubble of a single
  /// pipeline. The search evaluates first the choices with the smallest
  /// estimates.
  double estimateStep(const Choice &choice) const;

  /// The problem and the order of `proposal`. Requires that `evaluate` made it.
  Solution solve(const Proposal &proposal) const;

private:
  /// The stages of a choice and the request for its scheme.
  struct StagesAndRequest {
    std::vector<CutStage> stages;
    schedule::Request request;
  };
  StagesAndRequest requestFor(const Choice &choice,
                              const std::vector<schedule::Recompute> &recompute,
                              int64_t parts = 1) const;
  /// Returns a solution without its order.
  std::variant<Solution, Impossible>
  solve(const Choice &choice, const schedule::Plan &plan,
        const std::vector<schedule::Recompute> &recompute) const;
  /// Adds recomputes until `proposal` fits, and sets its peak. Returns the
  /// reason if it cannot fit.
  std::variant<Solution, Impossible, TooLarge>
  makeFit(schedule::Plan plan, int64_t memory, Recomputation allowed,
          Proposal &proposal) const;
  /// Sets the policy and the step time of `proposal`.
  void setStep(Solution &solution, const CanRuleOut &canRuleOut,
               Proposal &proposal) const;

  /// Costs of the layers for micro-batches of the choice, each in `parts`
  /// parts.
  const LayerTable &tableOf(const Choice &choice, int64_t parts = 1) const;
  /// The stages of a choice without recomputes. Many choices share them.
  const std::vector<CutStage> &cutWithoutRecompute(const Choice &choice,
                                                   int64_t parts) const;

  const Question &question;
  mutable std::mutex mutex; ///< for the members below
  /// By micro-batch size and parts of a backward.
  mutable std::map<std::pair<int32_t, int64_t>, LayerTable> tables;
  /// By micro-batch size, number of stages and parts of a backward.
  mutable std::map<std::tuple<int32_t, int32_t, int64_t>, std::vector<CutStage>>
      cutsWithoutRecompute;
};

} // namespace chimera::plan

#endif // CHIMERA_COMPILER_PLAN_EVALUATE_H
