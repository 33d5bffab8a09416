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
  /// The arguments of the event: the ones that renderChromeTrace writes for an
  /// action (ChromeTrace.h).
  std::optional<int64_t> pipeline, stage, microBatch, microBatches, part, parts,
      step;
};

/// Values from a trace's `otherData`. A value is empty if the trace does not
/// have it.
struct TraceHeader {
  /// The number of the trace's first step within the run.
  std::optional<int64_t> firstStep;
  /// The first process of the newest run, if the trace has several runs. The
  /// events of earlier runs have lower processes.
  std::optional<int64_t> firstProcess;
  std::string pipeline; ///< the name of the first pipeline
  /// The number of threads of a rank, and the number of cores that the host had
  /// for each rank.
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
