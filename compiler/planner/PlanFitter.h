//===- PlanFitter.h - Changes plans until their programs fit ----*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the program of a plan needs more memory than the planner estimated, the
// planner makes the plan again, for slightly less memory than the machine has.
// It repeats this with ever less memory until the program fits.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_PLANFITTER_H
#define CHIMERA_COMPILER_PLANNER_PLANFITTER_H

#include "compiler/planner/PlanDescription.h"
#include "compiler/planner/search/Search.h"

#include <functional>
#include <map>
#include <mutex>

namespace chimera {

/// Finds plans whose programs fit. The question and its evaluator must outlive
/// the PlanFitter.
class PlanFitter {
public:
  PlanFitter(PlannerOps ops, const plan::Question &question,
             const plan::Evaluator &evaluator)
      : ops(ops), question(question), evaluator(evaluator) {}

  /// Called by one thread at a time. `done` of `all` plans are compiled.
  using Progress = std::function<void(size_t done, size_t all)>;

  /// Runs `findFittingPlan` for all `proposals` on `threads` threads and keeps
  /// the results. Later calls of `findFittingPlan` for these proposals compile
  /// nothing.
  void prepare(const std::vector<plan::Proposal> &proposals, uint32_t threads,
               const Progress &progress = {});

  /// Returns `proposal` if it compiles. Otherwise returns the first plan of the
  /// same choice that compiles, in this order: plans for 99, 96, 90 and 80 % of
  /// the memory, then a plan that recomputes everything (unless the user pins
  /// the recomputation). If none compiles, returns nothing and adds a line to
  /// `rejectedPlans`.
  std::optional<plan::Proposal> findFittingPlan(const plan::Proposal &proposal);
  /// True if `findFittingPlan` has the result for this proposal and need not
  /// compile.
  bool isKnown(const plan::Proposal &proposal);

  /// `ranked` is sorted by speed. Replaces it by its fastest `number` plans
  /// that fit.
  void keepFitting(std::vector<plan::Proposal> &ranked, size_t number);

  /// The choices for which `findFittingPlan` found no plan, each with the error
  /// of its original plan, in the order of the calls of `findFittingPlan`.
  const std::vector<std::string> &rejectedPlans() const { return errors; }

private:
  /// The result of `findFittingPlan` for a proposal.
  struct Fit {
    std::optional<plan::Proposal> proposal; ///< the plan that compiles
    std::string error; ///< error of the original plan; empty if it compiles
  };

  std::string describe(const plan::Proposal &proposal);
  Fit tryToFit(const plan::Proposal &proposal, const std::string &text);

  using IsAccepted = std::function<bool(const plan::Proposal &proposal)>;

  /// If a plan of `choice` does not compile, `findFittingPlan` tries other
  /// plans of this choice. Returns the first of these other plans that
  /// `isAccepted` accepts. Skips each plan that `canRuleOut` rules out.
  std::optional<plan::Proposal>
  firstChanged(const plan::Choice &choice, const plan::CanRuleOut &canRuleOut,
               const IsAccepted &isAccepted) const;

  /// If `proposal` does not compile, `findFittingPlan` tries other plans.
  /// Returns true if one of these plans is faster than `limit`. Compiles
  /// nothing.
  bool mayBecomeFaster(const plan::Proposal &proposal,
                       const plan::Proposal &limit) const;

  PlannerOps ops;
  const plan::Question &question;
  const plan::Evaluator &evaluator;
  std::mutex mutex; ///< protects the context of the ops
  std::map<std::string, Fit>
      fits; ///< results of `findFittingPlan`, by the text of the plan
  std::vector<std::string> errors;
};

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_PLANFITTER_H
