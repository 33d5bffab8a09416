//===- Fitting.h - Plans that fit when they are compiled --------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan whose program takes more memory than the planner counted is planned
// anew for a little less memory than the machine has, until its program fits.
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
  Fitting(PlanSubject subject, const plan::Question &question,
          const plan::Evaluator &evaluator)
      : subject(subject), question(question), evaluator(evaluator) {}

  /// Called by one thread at a time with how many of all plans are compiled.
  using Progress = std::function<void(size_t done, size_t all)>;

  /// Compiles what `fit` will need for these proposals, on so many threads.
  void prepare(const std::vector<plan::Proposal> &proposals, uint32_t threads,
               const Progress &progress = {});

  /// `proposal`, if it compiles; else the first plan of its choice that does,
  /// of those for 99, 96, 90 and 80 % of the memory and, unless what is
  /// recomputed is pinned, the one that recomputes everything; none where none
  /// does, with a line in `passedOver`.
  std::optional<plan::Proposal> fit(const plan::Proposal &proposal);
  /// Whether `fit` knows without compiling.
  bool isKnown(const plan::Proposal &proposal);

  /// Leaves in `ranked`, fastest first, the fastest `number` that fit.
  void keepFitting(std::vector<plan::Proposal> &ranked, size_t number);

  /// The choices that no memory made fit, and the first error of each, in the
  /// order in which they were asked for.
  const std::vector<std::string> &passedOver() const { return faults; }

private:
  /// What became of a proposal.
  struct Fit {
    std::optional<plan::Proposal> proposal; ///< that compiles
    std::string fault; ///< of the proposal as it was; empty if it compiles
  };

  std::string describe(const plan::Proposal &proposal);
  Fit tryToFit(const plan::Proposal &proposal, const std::string &text);

  PlanSubject subject;
  const plan::Question &question;
  const plan::Evaluator &evaluator;
  std::mutex mutex;                ///< for the subject's context
  std::map<std::string, Fit> fits; ///< by the proposals' texts
  std::vector<std::string> faults;
};

} // namespace chimera

#endif // CHIMERA_COMPILER_PLANNER_FITTING_H
