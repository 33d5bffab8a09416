//===- TraceReader.cpp - A reader for trace events ------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/timeline/TraceReader.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace chimera::schedule {

namespace {

using nlohmann::json;

/// Callbacks of the JSON parser. Events are objects in the array `traceEvents`
/// of the outermost object. Apart from the events, only some values of
/// `otherData` are read. Values that are nested more deeply than the arguments
/// of an event are ignored.
class Handler final : public json::json_sax_t {
public:
  Handler(const std::function<void(const TraceEvent &)> &visit,
          TraceHeader &header)
      : visit(visit), header(header) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t value) override {
    setInteger(value);
    return setNumber(static_cast<double>(value));
  }
  bool number_unsigned(uint64_t value) override {
    if (value <= std::numeric_limits<int64_t>::max())
      setInteger(static_cast<int64_t>(value));
    return setNumber(static_cast<double>(value));
  }
  bool number_float(double value, const std::string &) override {
    return setNumber(value);
  }
  bool string(std::string &value) override {
    if (!isInEvent())
      return true;
    if (name == "name")
      event.name = std::move(value);
    else if (name == "cat")
      event.category = std::move(value);
    else if (name == "ph")
      isComplete = value == "X";
    return true;
  }
  bool binary(json::binary_t &) override { return true; }

  bool start_object(size_t) override {
    ++depth;
    if (depth == 1)
      isObject = true;
    else if (depth == 2 && isObject)
      isInOther = name == "otherData";
    else if (depth == 3 && isInOther)
      isInUnits = name == "unit"; // has a member for each pipeline
    else if (depth == 3 && isInEvents) {
      event = {};
      isComplete = false;
      isEvent = true;
    } else if (depth == 4 && isEvent)
      isInArguments = name == "args";
    return true;
  }
  bool key(std::string &value) override {
    name = std::move(value);
    if (depth == 3 && isInUnits && header.pipeline.empty())
      header.pipeline = name;
    return true;
  }
  bool end_object() override {
    if (depth == 4)
      isInArguments = false;
    if (depth == 3 && isEvent) {
      isEvent = false;
      if (isComplete)
        visit(event);
    }
    if (depth == 3)
      isInUnits = false;
    if (depth == 2)
      isInOther = false;
    --depth;
    return true;
  }
  bool start_array(size_t) override {
    ++depth;
    if (depth == 2 && isObject && name == "traceEvents")
      isInEvents = hasEvents = true;
    return true;
  }
  bool end_array() override {
    if (depth == 2)
      isInEvents = false;
    --depth;
    return true;
  }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::detail::exception &exception) override {
    // The parser's message is "[json.exception.parse_error.101] parse error at
    // line 1, column 2: …". It quotes the last token, which may be very long.
    // So the message is cut.
    constexpr size_t kMost = 200;
    std::string_view what = exception.what();
    if (size_t end = what.find("] "); end != std::string_view::npos)
      what.remove_prefix(end + 2);
    error = what.substr(0, kMost);
    return false;
  }

  bool hasEvents = false;
  std::string error;

private:
  bool isInEvent() const { return depth == 3 && isEvent; }

  bool setNumber(double value) {
    if (isInEvent() && name == "ts")
      event.begin = value;
    else if (isInEvent() && name == "dur")
      event.duration = value;
    else if (depth == 2 && isInOther && name == "threads")
      header.threads = value;
    else if (depth == 2 && isInOther && name == "cores_per_rank")
      header.coresPerRank = value;
    return true;
  }

  void setInteger(int64_t value) {
    struct Member {
      const char *name;
      std::optional<int64_t> TraceEvent::*value;
    };
    static constexpr Member kOwn[] = {{"pid", &TraceEvent::process},
                                      {"tid", &TraceEvent::thread}};
    static constexpr Member kArguments[] = {
        {"pipeline", &TraceEvent::pipeline},
        {"stage", &TraceEvent::stage},
        {"micro_batch", &TraceEvent::microBatch},
        {"micro_batches", &TraceEvent::microBatches},
        {"part", &TraceEvent::part},
        {"parts", &TraceEvent::parts},
        {"step", &TraceEvent::step}};
    auto set = [&](const auto &members) {
      for (const Member &member : members)
        if (name == member.name)
          event.*member.value = value;
    };
    if (isInEvent())
      set(kOwn);
    else if (depth == 4 && isInArguments)
      set(kArguments);
    else if (depth == 2 && isInOther && name == "first_step")
      header.firstStep = value;
    else if (depth == 2 && isInOther && name == "first_process")
      header.firstProcess = value;
  }

  const std::function<void(const TraceEvent &)> &visit;
  TraceHeader &header;
  size_t depth = 0; ///< number of open objects and arrays
  std::string name; ///< the last key read
  bool isObject = false, isInOther = false, isInUnits = false;
  bool isInEvents = false;
  bool isEvent = false, isInArguments = false;
  TraceEvent event;
  bool isComplete = false;
};

} // namespace

std::string readTrace(std::string_view text,
                      const std::function<void(const TraceEvent &)> &visit,
                      TraceHeader &header) {
  Handler handler(visit, header);
  if (!json::sax_parse(text.begin(), text.end(), &handler))
    return "expected JSON, got a " + handler.error;
  if (!handler.hasEvents)
    return "expected a trace, got no array traceEvents in a JSON object";
  return {};
}

} // namespace chimera::schedule
