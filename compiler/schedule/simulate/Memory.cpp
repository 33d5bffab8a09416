//===- Memory.cpp - The memory of a worker --------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/simulate/Memory.h"

#include "compiler/schedule/model/Steps.h"

#include <algorithm>

namespace chimera::schedule {

/// Walks through the order of one worker after another, and tracks its memory.
/// A piece is a micro-batch or, if backwards have parts, a part of a
/// micro-batch. The stash of a piece is live from its forward on. If the piece
/// is recomputed, its stash is live only from its recompute on, and its input
/// is live from its forward to its recompute.
class MemoryWalk {
public:
  explicit MemoryWalk(const Problem &problem)
      : problem(problem),
        rowOf(problem.pipelines.size() * problem.stages.size(), -1) {
    parts = maxParts(problem.pipelines);
    inPieces =
        parts > 1 || std::ranges::any_of(problem.recompute, [](auto how) {
          return how != Recompute::None;
        });
    if (inPieces)
      numberMicroBatches();
  }

  /// Calls `visit(index, bytes, bytesAfter, activations)` for each action, with
  /// the bytes during and after the action. The worker has `bytes` before its
  /// first action.
  template <typename Visit>
  void run(std::span<const Action> order, int64_t bytes, Visit visit) {
    setRows(order);
    if (inPieces)
      findRecomputes(order);
    int32_t activations = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Action &action = order[i];
      Row &row = rowFor(action);
      // Bytes that are live only while the action runs, and the bytes and
      // activations that are released at its end.
      int64_t passing = 0, release = 0;
      int32_t less = 0;
      switch (action.kind) {
      case Kind::Forward:
        passing = row.passing * action.microBatches;
        if (inPieces) {
          passing -= forward(action, row, bytes, activations);
        } else {
          bytes += row.stash * action.microBatches;
          activations += action.microBatches;
        }
        break;
      case Kind::Recompute:
        bytes += piece(action, row.stash);
        release = piece(action, row.input);
        activations += holdsOneMore(action, row);
        break;
      case Kind::InputGradient:
        // While an input gradient runs, only the larger of the two stashes
        // counts.
        release = piece(action, row.stash) - piece(action, row.weightStash);
        passing = piece(action, row.passing) + std::max<int64_t>(-release, 0);
        break;
      case Kind::Backward:
        passing = piece(action, row.passing);
        [[fallthrough]];
      case Kind::WeightGradient:
        release =
            piece(action,
                  action.kind == Kind::Backward ? row.stash : row.weightStash) +
            addToSum(row, action, bytes);
        less = action.parts == 1 || --held[keyOf(action, row)] == 0;
        break;
      }
      visit(i, bytes + passing, bytes - release, activations);
      bytes -= release;
      activations -= less;
    }
  }

private:
  /// A stage of a pipeline on the current worker, with its state in the walk.
  struct Row {
    size_t replica;      ///< index in `rowOf`
    int64_t firstKey;    ///< key of its first micro-batch
    int64_t missing = 0; ///< pieces to add to its gradient sum; 0: no sum
    /// Bytes of one micro-batch's two stashes and of its input (`input`), of
    /// all boundaries that a forward or backward reads and passes on
    /// (`passing`), and of the gradient sum.
    int64_t stash = 0, weightStash = 0, input = 0, passing = 0, gradient = 0;
  };

  size_t replicaOf(const Action &action) const {
    return action.pipeline * problem.stages.size() + action.stage;
  }
  Row &rowFor(const Action &action) { return rows[rowOf[replicaOf(action)]]; }

  /// Makes rows only for the stages that occur in `order`. Rows for all stages
  /// would take too long: there may be as many stages as a worker has actions.
  void setRows(std::span<const Action> order) {
    for (const Row &row : rows)
      rowOf[row.replica] = -1;
    rows.clear();
    keys = 0;
    for (const Action &action : order)
      if (int32_t &row = rowOf[replicaOf(action)]; row < 0) {
        row = static_cast<int32_t>(rows.size());
        rows.push_back({replicaOf(action), keys});
        setSizes(rows.back(), action.stage);
        keys += std::ssize(problem.pipelines[action.pipeline].microBatches) *
                problem.steps;
      }
  }

  void setSizes(Row &row, int32_t stage) const {
    if (problem.bytes.empty())
      return;
    const StageBytes &bytes = problem.bytes[stage];
    row.stash = bytes.stash;
    row.weightStash = bytes.weightStash;
    row.input = stage == 0 ? 0 : problem.bytes[stage - 1].boundary;
    row.passing = row.input;
    if (stage + 1 < std::ssize(problem.bytes))
      row.passing += bytes.boundary;
    row.gradient = bytes.gradient();
  }

  /// Numbers the micro-batches of each pipeline.
  void numberMicroBatches() {
    const int32_t each = problem.microBatches();
    numberOf.resize(int64_t{each} * problem.steps);
    for (const Pipeline &pipeline : problem.pipelines) {
      int32_t number = 0;
      for (int32_t step = 0; step < problem.steps; ++step)
        for (int32_t microBatch : pipeline.microBatches)
          numberOf[step * each + microBatch] = number++;
    }
  }

  void findRecomputes(std::span<const Action> order) {
    held.assign(keys, 0);
    recomputed.assign(keys * parts, false);
    for (const Action &action : order)
      if (action.kind == Kind::Recompute)
        recomputed[keyOf(action, rowFor(action)) * parts + action.part] = true;
  }

  /// For each piece of a forward, adds the piece's stash to `bytes` or, if the
  /// piece is recomputed, its input. Returns the bytes of these inputs. The
  /// forward reads them in place, so they are not counted a second time as
  /// boundaries.
  int64_t forward(const Action &action, const Row &row, int64_t &bytes,
                  int32_t &activations) {
    int64_t inputs = 0;
    Action each = action;
    each.microBatches = 1;
    each.parts =
        static_cast<uint8_t>(problem.pipelines[action.pipeline].backwardParts);
    for (int32_t i = 0; i < action.microBatches; ++i, ++each.microBatch)
      for (int32_t part = 0; part < each.parts; ++part) {
        each.part = static_cast<uint8_t>(part);
        bool again = recomputed[keyOf(each, row) * parts + part];
        int64_t held = piece(each, again ? row.input : row.stash);
        bytes += held;
        inputs += again ? held : 0;
        activations += again ? 0 : holdsOneMore(each, row);
      }
    return inputs;
  }

  /// Counts the piece of `action` as live. Returns 1 if the micro-batch had no
  /// live piece before, otherwise 0.
  int32_t holdsOneMore(const Action &action, const Row &row) {
    return action.parts == 1 || held[keyOf(action, row)]++ == 0;
  }

  /// If a gradient sum begins with `action`, adds the bytes of the sum to
  /// `bytes`. If steps overlap and the sum ends with `action`, returns the
  /// bytes of the sum, otherwise 0.
  int64_t addToSum(Row &row, const Action &action, int64_t &bytes) const {
    if (row.missing == 0) {
      bytes += row.gradient;
      row.missing = piecesOfSum(problem.pipelines[action.pipeline]);
    }
    bool ends = --row.missing == 0;
    return ends && stepsOverlap(problem.updates) ? row.gradient : 0;
  }

  int64_t piecesOfSum(const Pipeline &pipeline) const {
    bool each = problem.updates == Updates::EachMicroBatch;
    return (each ? 1 : std::ssize(pipeline.microBatches)) *
           int64_t(pipeline.backwardParts);
  }

  static int64_t piece(const Action &action, int64_t bytes) {
    return action.parts == 1 ? bytes
                             : sizeOfPart(bytes, action.part, action.parts);
  }
  /// The key of a micro-batch on a stage.
  int64_t keyOf(const Action &action, const Row &row) const {
    return row.firstKey + numberOf[action.microBatch];
  }

  const Problem &problem;
  int32_t parts = 1; ///< most parts of a micro-batch
  /// True if backwards have parts or some stage is recomputed. Otherwise each
  /// forward adds a whole stash, and keys are not needed.
  bool inPieces;
  std::vector<int32_t>
      rowOf; ///< index in `rows` by pipeline and stage, -1 for none
  std::vector<Row> rows;
  std::vector<int32_t> numberOf; ///< of each micro-batch in its pipeline
  int64_t keys = 0;
  std::vector<bool> recomputed; ///< by key and part
  /// By key: the number of pieces whose activations are live.
  std::vector<int32_t> held;
};

std::vector<int64_t> residentBytes(const Problem &problem) {
  std::vector<int64_t> sums(problem.workers, 0);
  if (!problem.bytes.empty())
    for (const Pipeline &pipeline : problem.pipelines)
      for (size_t s = 0; s < pipeline.workers.size(); ++s)
        sums[pipeline.workers[s]] +=
            weightVersions(problem, static_cast<int32_t>(s)) *
                problem.bytes[s].weights +
            problem.bytes[s].optimizer;
  return sums;
}

MemoryPeaks::MemoryPeaks(const Problem &problem)
    : walk(std::make_unique<MemoryWalk>(problem)) {}

MemoryPeaks::~MemoryPeaks() = default;

MemoryPeak MemoryPeaks::peakOf(std::span<const Action> order,
                               int64_t resident) {
  MemoryPeak peak;
  peak.bytes = resident;
  peak.index = order.empty() ? -1 : 0;
  auto raise = [&](size_t i, int64_t bytes, int64_t, int32_t activations) {
    if (bytes > peak.bytes) {
      peak.bytes = bytes;
      peak.index = static_cast<int32_t>(i);
    }
    peak.activations = std::max(peak.activations, activations);
  };
  walk->run(order, peak.bytes, raise);
  return peak;
}

std::optional<CapExcess> capExcess(const Problem &problem,
                                   const Schedule &schedule) {
  std::optional<CapExcess> most;
  int64_t above = 0;
  int32_t workers = 0;
  std::vector<int64_t> resident = residentBytes(problem);
  MemoryPeaks peaks(problem);
  for (size_t w = 0; w < problem.memoryCaps.size(); ++w) {
    auto worker = static_cast<int32_t>(w);
    MemoryPeak peak = peaks.peakOf(schedule.workers[w], resident[w]);
    int64_t excess = peak.bytes - problem.memoryCaps[w];
    workers += excess > 0;
    if (excess <= above)
      continue;
    above = excess;
    most = CapExcess{worker, peak, 0};
  }
  if (most)
    most->others = workers - 1;
  return most;
}

std::string othersAbove(int64_t others) {
  if (others <= 0)
    return {};
  return ", and " + std::to_string(others) +
         (others == 1 ? " other worker" : " other workers") + " above the cap";
}

std::string describe(const CapExcess &excess, const Problem &problem,
                     const Schedule &schedule) {
  std::string text = "at least " + std::to_string(excess.peak.bytes) +
                     " bytes on worker " + std::to_string(excess.worker);
  if (excess.peak.index >= 0)
    text +=
        " at " +
        describe(problem, schedule.workers[excess.worker][excess.peak.index]);
  return text + othersAbove(excess.others);
}

std::vector<MemorySample> memoryOverTime(const Problem &problem,
                                         const Schedule &schedule,
                                         const Timing &timing, int32_t worker,
                                         int64_t resident) {
  const std::vector<Action> &order = schedule.workers[worker];
  std::vector<MemorySample> samples = {{0, resident}};
  auto add = [&](int64_t time, int64_t bytes) {
    if (samples.back().time == time)
      samples.back().bytes = bytes;
    else
      samples.push_back({time, bytes});
  };
  auto sample = [&](size_t i, int64_t bytes, int64_t bytesAfter, int32_t) {
    add(timing.starts[worker][i], bytes);
    add(timing.ends[worker][i], bytesAfter);
  };
  MemoryWalk(problem).run(order, resident, sample);
  return samples;
}

} // namespace chimera::schedule
