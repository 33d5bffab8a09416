//===- EarlierRuns.cpp - Traces and profiles of earlier runs --------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/interpreter/EarlierRuns.h"

#include "runtime/system/ShallowJson.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

using namespace chimera;
using namespace chimera::runtime;
using nlohmann::ordered_json;

namespace {
[[noreturn]] void failTrace(const std::string &why) {
  throw std::runtime_error("expected a trace that chimera-run wrote: " + why);
}

ordered_json parseObject(std::string_view text, int levels) {
  ordered_json value;
  if (isShallow(text, levels))
    value = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_object() ? value : ordered_json();
}

/// The member `name`, or none if it is not a whole number from 0 to 2^53.
std::optional<uint64_t> numberOf(const ordered_json &object, const char *name) {
  constexpr uint64_t kMost = uint64_t{1} << 53;
  auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned() ||
      found->get<uint64_t>() > kMost)
    return std::nullopt;
  return found->get<uint64_t>();
}

EarlierTrace::Run runOf(const ordered_json &object) {
  const std::optional<uint64_t> first = numberOf(object, "first_step"),
                                steps = numberOf(object, "steps");
  if (!first || !steps || *first == 0)
    failTrace("otherData has no first_step and steps");
  return {*first, *steps, numberOf(object, "first_process").value_or(0)};
}

/// Takes the text up to the next line break from `text`. Returns it without a
/// comma at its end.
std::string_view takeLine(std::string_view &text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with(','))
    line.remove_suffix(1);
  return line;
}
} // namespace

EarlierTrace chimera::runtime::parseEarlierTrace(std::string_view text,
                                                 uint64_t steps) {
  constexpr std::string_view kOther = "\"otherData\":";
  takeLine(text); // displayTimeUnit
  std::string_view other = takeLine(text);
  if (!other.starts_with(kOther))
    failTrace("its second line is not otherData");
  const ordered_json header = parseObject(other.substr(kOther.size()), 4);
  EarlierTrace trace;
  if (auto earlier = header.find("earlier"); earlier != header.end())
    for (const ordered_json &run : *earlier)
      trace.runs.push_back(runOf(run));
  trace.runs.push_back(runOf(header));
  if (!std::ranges::is_sorted(trace.runs, {}, &EarlierTrace::Run::firstProcess))
    failTrace("the runs in its otherData are not in order");
  const auto dropped =
      std::ranges::find_if(trace.runs, [&](const EarlierTrace::Run &run) {
        return run.firstStep - 1 + run.steps > steps;
      });
  const uint64_t end =
      dropped == trace.runs.end() ? UINT64_MAX : dropped->firstProcess;
  trace.runs.erase(dropped, trace.runs.end());
  if (takeLine(text) != "\"traceEvents\":[")
    failTrace("its third line is not the begin of traceEvents");
  for (;;) {
    if (text.empty())
      failTrace("its end is missing");
    const std::string_view line = takeLine(text);
    if (line == "]}")
      return trace;
    if (line.empty()) // a trace without events
      continue;
    const ordered_json event = parseObject(line, 4);
    const std::optional<uint64_t> process = numberOf(event, "pid");
    if (!process)
      failTrace("expected one event in each line, got " +
                std::string(line.substr(0, 80)));
    if (*process >= end)
      continue;
    trace.events += (trace.events.empty() ? "" : ",\n") + std::string(line);
    trace.processes = std::max(trace.processes, *process + 1);
    if (const auto arrow = numberOf(event, "id"))
      trace.arrows = std::max(trace.arrows, *arrow + 1);
    double at = 0;
    for (const char *name : {"ts", "dur"})
      if (auto time = event.find(name);
          time != event.end() && time->is_number())
        at += time->get<double>();
    trace.end = std::max(trace.end, at);
  }
}

std::vector<std::string>
chimera::runtime::parseEarlierProfiles(std::string_view text, uint64_t steps) {
  auto fail = [](const char *why) {
    throw std::runtime_error(
        std::string("expected a profile that chimera-run wrote: ") + why);
  };
  ordered_json newest = parseObject(text, 16);
  std::vector<ordered_json> runs;
  if (auto earlier = newest.find("earlier_runs"); earlier != newest.end()) {
    for (ordered_json &run : *earlier)
      runs.push_back(std::move(run));
    newest.erase("earlier_runs");
  }
  runs.push_back(std::move(newest));
  std::vector<std::string> profiles;
  for (const ordered_json &run : runs) {
    const std::optional<uint64_t> last =
        run.is_object() ? numberOf(run, "last_step") : std::nullopt;
    if (!last || !run.contains("stages"))
      fail("it has no last_step and no stages");
    if (*last > steps)
      break;
    profiles.push_back(run.dump());
  }
  return profiles;
}
