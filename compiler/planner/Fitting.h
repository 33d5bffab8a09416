//===- Fitting.h - Changes plans until their programs fit -------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If a plan's program needs more memory than the planner estimated, the plan is
// made again for slightly less memory than the machine has, until its program
// fits.
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_PLANNER_FITTING_H
#define CHIMERA_COMPILER_PLANNER_FITTING_H

#include "compiler/plan/Search.h"
#include "compiler/planner/PlanDescription.h"

#include <functional>
#include <map>
#include <mutex>

namespace chimera {

/// Finds plans whose programs fit. The question and its evaluator must outlive
/// it.
class Fitting {
public:
  Fitting(PlannerOps ops, const plan::Question &question,
          const plan::Evaluator &evaluator)
      : ops(ops), question(question), evaluator(evaluator) {}

  /// Called by one thread at a time. `done` of `all` plans are compiled.
  using Progress = std::function<void(size_t done, size_t all)>;

  /// Compiles in advance the plans that `fit` needs for these proposals, on
  /// `threads` threads.
  void prepare(const std::vector<plan::Proposal> &proposals, uint32_t threads,
               const Progress &progress = {});

  /// Returns `proposal` if it compiles. Otherwise returns the first plan of the
  /// same choice that compiles: with 99, 96, 90 or 80 % of the memory, then,
  /// unless recomputation is pinned, with everything recomputed. If none
  /// compiles, returns nothing and adds a line to `rejectedPlans`.
  std::optional<plan::Proposal> fit(const plan::Proposal &proposal);
  /// True if `fit` needs no compilation for this proposal.
  bool isKnown(const plan::Proposal &proposal);

  /// Replaces `ranked`, sorted by speed, by its fastest `number` plans that
  /// fit.
  void keepFitting(std::vector<plan::Proposal> &ranked, size_t number);

  /// The choices that fit with no amount of memory, each with its first error,
  /// in the order of the calls of `fit`.
  const std::vector<std::string> &rejectedPlans() const { return errors; }

private:
  /// The result of fitting a proposal.
  struct Fit {
    std::optional<plan::Proposal> proposal; ///< the plan that compiles
    std::string error; ///< error of the original proposal; empty if it compiles
  };

  std::string describe(const plan::Proposal &proposal);
  Fit tryToFit(const plan::Proposal &proposal, const std::string &text);

  using IsAccepted = std::function<bool(const plan::Proposal &proposal)>;

  /// If a plan of `choice` does not compile, `fit` tries other plans of this
  /// choice. Returns the first of these other plans that `isAccepted` accepts.
  /// Skips each plan that `canRuleOut` rules out.
  std::optional<plan::Proposal>
  firstChanged(const plan::Choice &choice, const plan::CanRuleOut &canRuleOut,
               const IsAccepted &isAccepted) const;

  /// True if one of the plans that `fit` tries if `proposal` does not compile
  /// is faster than `limit`. Compiles nothing.
  bool mayBecomeFaster(const plan::Proposal &proposal,
                       const plan::Proposal &limit) const;

  PlannerOps ops;
  const plan::Question &question;
  const plan::Evaluator &evaluator;
  std::mutex mutex;                ///< protects the context of the ops
  std::map<std::string, Fit> fits; ///< by the text of the proposal
  std::vector<std::string> errors;
};

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_FITTING_H
