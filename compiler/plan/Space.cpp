//===- Space.cpp - The plans that there are -------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/plan/Space.h"

#include "compiler/plan/Cut.h"
#include "compiler/schedule/Best.h"

#include <algorithm>
#include <type_traits>

namespace chimera::plan {

using schedule::Scheme;

std::string scheduleOf(const Choice &choice) {
  std::string options;
  for (size_t i = 0; i < choice.options.table().size(); ++i)
    if (choice.options.isSet(i))
      options += (options.empty() ? "" : ", ") +
                 std::string(choice.options.table()[i].name) + " = " +
                 choice.options.print(i);
  return choice.scheme->name + (options.empty() ? "" : " {" + options + "}");
}

std::string nameOf(const Choice &choice) {
  std::string name = scheduleOf(choice) +
                     ", D=" + std::to_string(choice.workers) +
                     ", W=" + std::to_string(choice.width) +
                     ", N=" + std::to_string(choice.microBatches) +
                     ", B=" + std::to_string(choice.microBatchSize);
  if (choice.stages != choice.workers)
    name += ", " + std::to_string(choice.stages) + " stages";
  return name + (choice.split ? ", split" : "");
}

namespace {

template <typename T>
bool allows(const std::vector<T> &pins, std::type_identity_t<T> value) {
  return pins.empty() || std::ranges::count(pins, value) > 0;
}

class SpaceMaker {
public:
  explicit SpaceMaker(const Question &question)
      : question(question), pins(question.pins),
        mustFlush(pins.schemes.empty() && !pins.withoutFlush) {}

  Space run() {
    for (const Scheme &scheme : schedule::schemes()) {
      if (allows(pins.schemes, &scheme))
        addScheme(scheme);
    }
    return std::move(space);
  }

private:
  void addScheme(const Scheme &scheme) {
    size_t before = space.choices.size();
    refusal.reset();
    isWanted = true;
    addWorkers(scheme);
    if (isWanted && space.choices.size() == before && refusal)
      space.refusals.push_back(*refusal);
  }

  void addWorkers(const Scheme &scheme) {
    const int32_t devices = question.machine.devices;
    for (int32_t d = 1; d <= devices; ++d)
      if (devices % d == 0 && allows(pins.workers, d))
        for (int32_t each = 1; d * each <= question.model.layerCount();
             each *= 2)
          if (allows(pins.stagesPerWorker, each))
            addSizes(scheme, d, d * each);
  }

  void addSizes(const Scheme &scheme, int32_t workers, int32_t stages) {
    Choice choice{&scheme, {}, workers, question.machine.devices / workers,
                  stages,  0,  0,       false};
    if (std::string wrong = checkCut(question.model.layerCount(), stages);
        !wrong.empty())
      return refuse(choice, wrong);
    if (question.batch % choice.width != 0)
      return refuse(choice, "expected copies that share a mini-batch of " +
                                std::to_string(question.batch) + " equally");
    int64_t copy = question.batch / choice.width;
    for (int64_t b = 1; b <= copy; ++b) {
      // A step of more actions is too large to compile.
      constexpr int64_t kMostActions = int64_t{1} << 22;
      if (copy % b != 0 || copy / b * stages * 2 > kMostActions ||
          b > INT32_MAX)
        continue;
      choice.microBatchSize = static_cast<int32_t>(b);
      choice.microBatches = static_cast<int32_t>(copy / b);
      if (!allows(pins.microBatchSizes, choice.microBatchSize))
        continue;
      if (std::string wrong = question.model.check(b, 1, &question.machine);
          !wrong.empty())
        refuse(choice, wrong);
      else
        addOptions(choice);
    }
  }

  void addOptions(Choice choice) {
    schedule::Request request;
    request.workers = choice.workers;
    request.width = choice.width;
    request.stages.resize(choice.stages);
    request.microBatches = choice.microBatches;
    request.options = schedule::Options(choice.scheme->options);
    for (size_t i = 0; i < choice.scheme->options.size(); ++i)
      request.options.set(i, schedule::kBest);
    if (std::string wrong = schedule::whyNot(*choice.scheme, request);
        !wrong.empty())
      return refuse(choice, wrong);
    for (bool split : {false, true}) {
      if (!allows(pins.splits, split))
        continue;
      choice.split = split;
      request.splitBackward = split;
      schedule::Request set = request;
      for (schedule::Options &options :
           schedule::settingsOf(*choice.scheme, request)) {
        set.options = choice.options = std::move(options);
        if (mustFlush &&
            schedule::stepsOverlap(choice.scheme->place(set).updates)) {
          isWanted = false;
          return;
        }
        space.choices.push_back(choice);
      }
    }
  }

  void refuse(const Choice &choice, const std::string &reason) {
    if (!refusal)
      refusal = Refusal{nameOf(choice), reason};
  }

  const Question &question;
  const Pins &pins;
  const bool mustFlush;
  Space space;
  // Of the present scheme: the first refusal; false if it has no flush and
  // must.
  std::optional<Refusal> refusal;
  bool isWanted = true;
};

} // namespace

Space spaceOf(const Question &question) { return SpaceMaker(question).run(); }

} // namespace chimera::plan
