//===- Title.cpp - The title of a pipeline in reports ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/report/Title.h"

#include "passes/describe/DescriptionReader.h"
#include "runtime/program/Printable.h"
#include "runtime/program/Program.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace chimera {

/// The text of the clause `recompute` of a description.
static std::string recomputeClause(PipelineOp pipeline) {
  ArrayRef<int32_t> stages = *pipeline.getRecompute();
  std::string text = "all";
  if (stages.size() < pipeline.getStages()) {
    text = "[";
    for (int32_t stage : stages)
      text += (text == "[" ? "" : ", ") + std::to_string(stage);
    text += "]";
  }
  return "recompute(" + text + (pipeline.getRecomputeFused() ? " fused)" : ")");
}

/// The word as it is if it is an MLIR identifier, otherwise in quotes.
static std::string spelled(StringRef word) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto isWordCharacter = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  if (!word.empty() && !llvm::isDigit(word[0]) &&
      llvm::all_of(word, isWordCharacter))
    os << word;
  else
    llvm::printEscapedString(word, os << '"'), os << '"';
  return text;
}

/// The default value of a schedule's option, empty if the option does not
/// exist.
static std::string defaultOptionValue(StringRef schedule, StringRef name) {
  const schedule::Scheme *scheme =
      schedule::findScheme(std::string_view(schedule));
  if (!scheme)
    return {};
  for (size_t i = 0; i < scheme->options.size(); ++i)
    if (scheme->options[i].name == std::string_view(name))
      return schedule::Options(scheme->options).print(i);
  return {};
}

/// The options of the schedule that differ from their defaults, in braces.
static std::string optionsClause(PipelineOp pipeline) {
  std::string text;
  if (DictionaryAttr options = pipeline.getScheduleOptionsAttr())
    for (NamedAttribute option : options) {
      StringRef name = option.getName();
      std::string value = optionText(option.getValue()).value_or("?");
      if (value == defaultOptionValue(*pipeline.getSchedule(), name))
        continue;
      if (isa<StringAttr>(option.getValue()))
        value = spelled(value);
      text += (text.empty() ? "" : ", ") + spelled(name) + " = " + value;
    }
  return text.empty() ? text : " {" + text + "}";
}

std::string titleOf(PipelineOp pipeline, const std::string &unnamed) {
  using program::printable;
  const StringRef name = pipeline.getSymName();
  const StringRef schedule = pipeline.getSchedule().value_or(unnamed);
  std::string title =
      name == schedule ? "" : printable(std::string_view(name)) + ": ";
  title += printable(std::string_view(schedule)) + optionsClause(pipeline);
  title += ", " + program::countWithNoun(pipeline.getStages(), "stage");
  if (pipeline.workerCount() != pipeline.getStages())
    title += " on " + program::countWithNoun(pipeline.workerCount(), "worker");
  title +=
      ", " + program::countWithNoun(pipeline.getMicroBatches(), "micro-batch");
  auto add = [&](const Twine &clause) { title += (", " + clause).str(); };
  if (pipeline.getDataParallel() > 1)
    add("data_parallel(" + Twine(pipeline.getDataParallel()) + ")");
  if (pipeline.getSplitBackward())
    add("split_backward");
  if (pipeline.getRecompute())
    add(recomputeClause(pipeline));
  if (pipeline.getAllReduce() != AllReducePolicy::Lazy)
    add("all_reduce(" + stringifyAllReducePolicy(pipeline.getAllReduce()) +
        ")");
  if (pipeline.getBucketBytes())
    add("bucket_bytes(" + Twine(*pipeline.getBucketBytes()) + ")");
  if (pipeline.getReceiveWindow())
    add("receive_window(" + Twine(*pipeline.getReceiveWindow()) + ")");
  return title;
}

} // namespace chimera
