//===- TraceReader.h - A reader for trace events ----------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_TRACEREADER_H
#define CHIMERA_COMPILER_SCHEDULE_TRACEREADER_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace chimera::schedule {

/// A complete event of a trace ("ph" is "X"). A member has no value if the
/// event does not have it, or has it with another type.
struct TraceEvent {
  std::string name, category;
  std::optional<double> begin, duration; ///< "ts" and "dur", in microseconds
  std::optional<int64_t> process, thread;
  /// Arguments of the event, named as in ChromeTrace.h.
  std::optional<int64_t> pipeline, stage, microBatch, microBatches, part, parts,
      step;
};

/// The contents of a trace's `otherData`, as far as they exist.
struct TraceHeader {
  /// The number that the trace's first step has in the run.
  std::optional<int64_t> firstStep;
  std::string pipeline; ///< the name of the first pipeline
  /// The threads of a rank, and the cores that the host had for each rank.
  std::optional<double> threads, coresPerRank;
};

/// Calls `visit` with each complete event of a document in the Trace Event
/// Format, and fills `header`. Returns an empty text, or an error if `text` is
/// not JSON or has no array `traceEvents`. Needs memory for one event at a
/// time, whatever the text contains and however deeply it nests.
std::string readTrace(std::string_view text,
                      const std::function<void(const TraceEvent &)> &visit,
                      TraceHeader &header);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_TRACEREADER_H
