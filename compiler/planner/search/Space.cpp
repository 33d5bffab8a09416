//===- Space.cpp - All possible plans -------------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/Space.h"

#include "compiler/cost/Cut.h"
#include "compiler/schedule/MakePlan.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>

namespace chimera::plan {

using schedule::Scheme;

std::string scheduleOf(const Choice &choice) {
  std::string options;
  for (size_t i = 0; i < choice.options.table().size(); ++i)
    if (choice.options.isSet(i) && !choice.options.isOpen(i))
      options += (options.empty() ? "" : ", ") +
                 std::string(choice.options.table()[i].name) + " = " +
                 choice.options.print(i);
  return choice.scheme->name + (options.empty() ? "" : " {" + options + "}");
}

std::string nameOf(const Choice &choice) {
  std::string name = scheduleOf(choice) +
                     ", D=" + std::to_string(choice.workers) +
                     ", W=" + std::to_string(choice.width);
  if (choice.microBatches > 0)
    name += ", N=" + std::to_string(choice.microBatches) +
            ", B=" + std::to_string(choice.microBatchSize);
  if (choice.stages != choice.workers)
    name += ", " + std::to_string(choice.stages) + " stages";
  return name + (choice.splitBackward ? ", split" : "");
}

std::vector<int64_t> divisorsOf(int64_t number) {
  std::vector<int64_t> small, large;
  for (int64_t d = 1; d <= number / d; ++d)
    if (number % d == 0) {
      small.push_back(d);
      if (d != number / d)
        large.push_back(number / d);
    }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

namespace {

template <typename T>
bool allows(const std::vector<T> &pins, std::type_identity_t<T> value) {
  return pins.empty() || std::ranges::count(pins, value) > 0;
}

/// Returns an error if a step is too long to compile, else an empty text.
std::string checkLength(const Choice &choice) {
  // The sum of the losses has one operand for each micro-batch, and an
  // instruction has at most 2^16 - 1 operands.
  constexpr int32_t kMostMicroBatches = UINT16_MAX;
  constexpr int64_t kMostActions = int64_t{1} << 22;
  if (choice.microBatches > kMostMicroBatches)
    return "expected at most " + std::to_string(kMostMicroBatches) +
           " micro-batches of a copy, got " +
           std::to_string(choice.microBatches) + ": take larger ones";
  if (int64_t actions = int64_t{2} * choice.microBatches * choice.stages;
      actions > kMostActions)
    return "expected at most " + std::to_string(kMostActions) +
           " forwards and backwards of a copy, got " + std::to_string(actions) +
           ": take larger micro-batches or fewer stages";
  return {};
}

/// True if the scheme's steps end with a flush. The answer is the same for all
/// sizes, so the request has small ones.
bool hasFlush(const Scheme &scheme) {
  schedule::Request request;
  request.workers = 2;
  request.microBatches = 4;
  request.options = schedule::Options(scheme.options);
  for (int32_t stages : {2, 4}) {
    request.stages.resize(stages);
    if (scheme.check(request).empty())
      return !schedule::stepsOverlap(scheme.place(request).updates);
  }
  return true;
}

class SpaceMaker {
public:
  explicit SpaceMaker(const Question &question)
      : question(question), pins(question.pins) {}

  Space run() {
    const bool mustFlush = pins.schemes.empty() && !pins.withoutFlush;
    for (const Scheme &scheme : schedule::schemes())
      if (!mustFlush || hasFlush(scheme))
        addScheme(scheme);
    if (unequalWidth)
      reasons.insert(unequalBatchError(*unequalWidth));
    if (space.choices.empty() && reasons.size() == 1)
      space.onlyReason = *reasons.begin();
    return std::move(space);
  }

private:
  void addScheme(const Scheme &scheme) {
    allowed.clear();
    if (pins.schemes.empty())
      allowed = {withAnyOptions(scheme).options};
    for (const SchemeWithOptions &pinned : pins.schemes)
      if (pinned.scheme == &scheme)
        allowed.push_back(pinned.options);
    if (allowed.empty())
      return;
    size_t before = space.choices.size();
    refusal.reset();
    addWorkers(scheme);
    if (space.choices.size() == before && refusal)
      space.refusals.push_back(*refusal);
  }

  void addWorkers(const Scheme &scheme) {
    const int32_t devices = question.machine.devices;
    const int32_t most = std::min(devices, question.model.layerCount());
    for (int32_t d = 1; d <= most; ++d)
      if (devices % d == 0 && allows(pins.workers, d) &&
          allows(pins.copies, devices / d))
        for (int32_t each = 1; d * each <= question.model.layerCount();
             each *= 2)
          if (allows(pins.stagesPerWorker, each) &&
              !isOtherScheme(scheme, each))
            addSizes(scheme, d, d * each);
  }

  /// True if `scheme` with so few stages per worker is another scheme of the
  /// space. With one stage per worker, interleaved-1f1b is 1f1b. If the user
  /// pins schemes, the other one may not be among them.
  bool isOtherScheme(const Scheme &scheme, int32_t stagesPerWorker) const {
    return pins.schemes.empty() && stagesPerWorker < scheme.stagesPerWorker;
  }

  void addSizes(const Scheme &scheme, int32_t workers, int32_t stages) {
    Choice choice{&scheme, {}, workers, question.machine.devices / workers,
                  stages,  0,  0,       false};
    if (std::string wrong = cost::checkCut(question.model.layerCount(), stages);
        !wrong.empty())
      return refuse(choice, wrong);
    if (std::string wrong = unequalBatchError(choice.width); !wrong.empty()) {
      note(choice, wrong);
      unequalWidth =
          std::min(unequalWidth.value_or(choice.width), choice.width);
      return;
    }
    int64_t copy = question.batch / choice.width;
    bool isPossible = false;
    std::optional<std::pair<Choice, std::string>>
        impossible; // the first impossible size, and why
    for (int64_t b : divisorsOf(copy)) {
      choice.microBatchSize = static_cast<int32_t>(b);
      choice.microBatches = static_cast<int32_t>(copy / b);
      if (!allows(pins.microBatchSizes, choice.microBatchSize) ||
          !allows(pins.microBatches, choice.microBatches))
        continue;
      std::string wrong = checkSize(b);
      if (wrong.empty())
        wrong = checkLength(choice);
      if (wrong.empty())
        addOptions(choice);
      else if (!impossible)
        impossible.emplace(choice, wrong);
      isPossible |= wrong.empty();
    }
    // Report an impossible size only if no size is possible.
    if (impossible && !isPossible)
      refuse(impossible->first, impossible->second);
  }

  /// Returns an error with the nearest possible mini-batches if copies and
  /// micro-batches cannot divide the mini-batch equally, else an empty text.
  std::string unequalBatchError(int64_t width) const {
    std::vector<int64_t> sizes(pins.microBatchSizes.begin(),
                               pins.microBatchSizes.end());
    if (sizes.empty())
      sizes = {1};
    const int64_t batch = question.batch;
    int64_t fewer = 0, more = INT64_MAX, least = INT64_MAX;
    for (int64_t size : sizes) {
      const int64_t unit = width * size, below = batch / unit * unit;
      if (below == batch)
        return {};
      fewer = std::max(fewer, below);
      more = std::min(more, below + unit);
      least = std::min(least, size);
    }
    std::string text = "expected a mini-batch that is a multiple of " +
                       std::to_string(width * least) + " (";
    if (width > 1)
      text += std::to_string(width) + " copies of the model";
    if (least > 1)
      text += (width > 1 ? ", micro-batches of " : "micro-batches of ") +
              std::to_string(least) + " samples";
    return text + "), got " + std::to_string(batch) + ": take " +
           (fewer > 0 ? std::to_string(fewer) + " or " : "") +
           std::to_string(more);
  }

  /// Returns an error if micro-batches of this size are not possible, else an
  /// empty text.
  const std::string &checkSize(int64_t microBatchSize) {
    auto [entry, isNew] = checkedSizes.try_emplace(microBatchSize);
    if (isNew)
      entry->second =
          question.model.check(microBatchSize, 1, &question.machine);
    return entry->second;
  }

  /// Returns an error if `scheme`, which refuses `request`, would be possible
  /// with its usual number of stages per worker, but the model has fewer layers
  /// than these stages. Else an empty text.
  std::string layersError(const Scheme &scheme,
                          schedule::Request request) const {
    const int32_t layers = question.model.layerCount();
    const int32_t stages = request.workers * scheme.stagesPerWorker;
    if (stages <= layers ||
        !allows(pins.stagesPerWorker, scheme.stagesPerWorker))
      return {};
    request.stages.resize(stages);
    if (!schedule::planError(scheme, request).empty())
      return {};
    return "expected a model of at least " + std::to_string(stages) +
           " layers, because " + scheme.name + " needs " +
           std::to_string(stages) + " stages for " +
           std::to_string(request.workers) + " workers, got " +
           std::to_string(layers) + " layers";
  }

  void addOptions(Choice choice) {
    schedule::Request request;
    request.workers = choice.workers;
    request.width = choice.width;
    request.stages.resize(choice.stages);
    request.microBatches = choice.microBatches;
    std::vector<schedule::Options>
        possible; // the entries of `allowed` that can be planned
    for (const schedule::Options &options : allowed) {
      request.options = options;
      std::string wrong = schedule::planError(*choice.scheme, request);
      if (wrong.empty()) {
        possible.push_back(options);
        continue;
      }
      choice.options = options;
      const std::string layers = layersError(*choice.scheme, request);
      refuse(choice, layers.empty() ? wrong : layers);
    }
    for (bool split : {false, true})
      if (allows(pins.splitBackward, split)) {
        choice.splitBackward = split;
        request.splitBackward = split;
        addSettings(choice, request, possible);
      }
  }

  /// Adds a choice for each setting of the open options of each entry of
  /// `possible`. Duplicates are added once.
  void addSettings(Choice &choice, schedule::Request &request,
                   const std::vector<schedule::Options> &possible) {
    std::vector<schedule::Options> added;
    for (const schedule::Options &options : possible) {
      request.options = options;
      for (schedule::Options &setting :
           schedule::settingsOf(*choice.scheme, request)) {
        if (std::ranges::count(added, setting) > 0)
          continue;
        added.push_back(setting);
        choice.options = std::move(setting);
        space.choices.push_back(choice);
      }
    }
  }

  void refuse(const Choice &choice, const std::string &reason) {
    note(choice, reason);
    reasons.insert(reason);
  }

  void note(const Choice &choice, const std::string &reason) {
    if (refusal && choice.workers <= refusedWorkers)
      return;
    refusal = Refusal{nameOf(choice), reason};
    refusedWorkers = choice.workers;
  }

  const Question &question;
  const Pins &pins;
  Space space;
  std::map<int64_t, std::string> checkedSizes; ///< by micro-batch size
  std::vector<schedule::Options> allowed;      ///< for the current scheme
  /// The reasons of all refusals, except that copies cannot divide the
  /// mini-batch equally.
  std::set<std::string> reasons;
  /// The smallest number W of copies that cannot divide the mini-batch equally.
  std::optional<int32_t> unequalWidth;
  /// The refusal to report for the current scheme: among the refused choices
  /// with the most workers, the first. With few workers most options are
  /// impossible, so such a refusal says little.
  std::optional<Refusal> refusal;
  int32_t refusedWorkers = 0;
};

} // namespace

Space spaceOf(const Question &question) { return SpaceMaker(question).run(); }

} // namespace chimera::plan
