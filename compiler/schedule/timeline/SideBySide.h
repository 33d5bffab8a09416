//===- SideBySide.h - Prediction beside measurement -------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_COMPILER_SCHEDULE_SIDEBYSIDE_H
#define CHIMERA_COMPILER_SCHEDULE_SIDEBYSIDE_H

#include "compiler/schedule/timeline/Measured.h"

namespace chimera::schedule {

/// A predicted timeline and a measured step of the same schedule, shown
/// together.
struct SideBySide {
  /// `prediction` is `timeline` in nanoseconds. Keeps a reference to
  /// `timeline`.
  SideBySide(const Timeline &timeline, NanosecondStep prediction,
             MeasuredStep run);
  SideBySide(const SideBySide &) = delete;

  const Timeline &timeline; ///< in the ticks of its problem
  NanosecondStep prediction;
  MeasuredStep run;
  Timeline predicted, measured; ///< both in nanoseconds

  /// The end of the prediction or of the run, whichever is later, in
  /// nanoseconds.
  int64_t end() const { return std::max(prediction.end(), run.end()); }
  /// "step 3 of copy 1, the slowest of 2".
  std::string nameOfRun() const;
  /// If ranks shared cores in the run, a sentence that says so. Otherwise
  /// empty.
  std::string noteOfRun() const;
  /// "step: 51 ms measured, 45.2 ms predicted, +12.8 %".
  std::string describeStep() const;
};

/// Renders both steps as text: the note of the run, a table of workers, the
/// largest differences of each kind, and the time of the step.
std::string renderTextSideBySide(const SideBySide &both);

/// Renders both steps as an SVG picture: two rows for each worker, predicted
/// and measured, on one time axis. The note of the run and the largest
/// differences are below the rows.
std::string renderSvgSideBySide(const SideBySide &both);

/// The reason why renderSvgSideBySide cannot draw the picture with the options
/// of the timeline's Picture. Empty if it can draw the picture. For the
/// possible reasons see pictureError in Svg.h.
std::string pictureError(const SideBySide &both);

/// Renders both steps as a page (Html.h): two rows for each worker,
/// predicted and measured. Below them are the largest differences.
std::string renderHtmlSideBySide(const SideBySide &both);

/// Renders both steps as a trace with two processes, predicted and measured.
/// The differences are in `otherData`.
std::string renderChromeTraceSideBySide(const SideBySide &both);

} // namespace chimera::schedule

#endif // CHIMERA_COMPILER_SCHEDULE_SIDEBYSIDE_H
