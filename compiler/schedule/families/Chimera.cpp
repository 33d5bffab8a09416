//===- Chimera.cpp - Bidirectional pipelines ------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chimera: Li and Hoefler, "Chimera: Efficiently Training Large-Scale Neural
// Networks with Bidirectional Pipelines", SC'21, section 3 and Figure 3.
//
// D=4, N=4, upper case down pipeline, lower case up pipeline:
//
//   slot 0  1  2  3  4  5  6  7  8  9
//   P0   F0 .  F1 f2 b2 f3 b3 B0 .  B1
//   P1   .  F0 f2 F1 f3 b2 B0 b3 B1 .
//   P2   .  f2 F0 f3 F1 B0 b2 B1 b3 .
//   P3   f2 .  f3 F0 B0 F1 B1 b2 .  b3
//
// This is a basic unit: D micro-batches (the unit size) over 2f pipelines, with
// f=1 above. If a step has more micro-batches, they run in several units. The
// paper has four ways to concatenate units:
//
// - Direct concatenation (Figure 7b) runs one unit after another.
//
// The other three make a forward about as long as a backward, so that there is
// no idle time between units:
//
// - Forward doubling (Figure 7c) runs each forward over two micro-batches.
// - Fine-tuned doubling (Figure 7d) runs two forwards in the place of each
//   doubled forward.
// - Backward halving runs each backward over half a micro-batch. It uses the
//   table of Figure 7c.
//
// Eager concatenation is one more way, which is not in the paper. At the first
// stage of a pipeline, direct concatenation alternates backwards of one unit
// and forwards of the next: B0 F4 B1 F5 on P0 above, if a second unit follows.
// Eager concatenation swaps each of these backwards with the forward after it:
//
//   slot 5  6  7  8  9  10 11 12 13
//   P0   f3 b3 F4 B0 F5 B1 f6 b6 f7
//
// A forward of the first stage waits for no message, and no other worker waits
// for a backward of the first stage. So no step takes longer, whatever the
// costs and message times are, and later stages get their input earlier. No
// worker ever keeps the activations of more micro-batches than with direct
// concatenation, but more of these activations may belong to the first stage.
// At D=2, from the second unit on, a message may arrive up to one forward time
// after it is sent, without a delay. With direct concatenation, every late
// message delays the other worker.
//
// The paper does not define the following cases. These rules are from this
// project:
//
// - A unit with fewer micro-batches than the unit size assigns them one by one
//   to the pipelines down 0, up 0, down 1, up 1, … Micro-batches are numbered
//   pipeline by pipeline. Pipelines without micro-batches are left out.
// - If D is odd, the up pipeline runs one slot later and the unit size is D-1.
// - Doubling uses a different rule if N is not a multiple of the unit size or
//   if there are more than two pipelines. It begins with the direct schedule
//   for half as many micro-batches. Each forward is replaced by one forward
//   over two micro-batches or, if doubling is fine-tuned, by two forwards. Each
//   backward is replaced by two backwards. If N is odd, the last micro-batch is
//   not doubled. In these cases (more than two pipelines, or N is no multiple
//   of the unit size), halving is the direct schedule with two half backwards
//   in the place of each backward.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/families/Chimera.h"

#include "compiler/schedule/families/Families.h"

#include <algorithm>

namespace chimera::schedule {

/// Indexed by the value of `Concatenation`.
static constexpr std::string_view kConcatenations[] = {
    "direct", "eager", "doubling", "fine-tuned-doubling", "halving"};

static constexpr Option kOptions[] = {
    {"pipelines", "copies of the model, half of them down and half up",
     "2f for an f that divides half of the stages", 2},
    {"concatenation", "how basic units follow each other",
     "direct, eager, doubling, fine-tuned-doubling or halving",
     static_cast<int32_t>(Concatenation::Direct), kConcatenations}};

std::span<const Option> chimeraOptions() { return kOptions; }

int32_t pipelinesOf(const Options &options) { return options[0]; }

Concatenation concatenationOf(const Options &options) {
  return static_cast<Concatenation>(options[1]);
}

Options chooseChimera(int32_t pipelines, Concatenation concatenation) {
  Options options(kOptions);
  options.set(0, pipelines);
  options.set(1, static_cast<int32_t>(concatenation));
  return options;
}

namespace {

/// Every even divisor of `workers`, as text: "2, 4 or 8".
std::string possiblePipelines(int32_t workers) {
  std::string text, last;
  for (int32_t count = 2; count <= workers; count += 2)
    if (workers % count == 0) {
      text += (text.empty() || last.empty() ? "" : ", ") + last;
      last = std::to_string(count);
    }
  return text + (text.empty() ? "" : " or ") + last;
}

std::string checkChimera(const Request &request) {
  int32_t workers = request.workers;
  if (workers < 2)
    return "expected at least 2 workers for two directions, got 1: use gpipe "
           "or 1f1b";
  int32_t pipelines = pipelinesOf(request.options);
  if (workers % 2 != 0 && pipelines != 2)
    return "expected 2 pipelines for an odd number of workers (" +
           std::to_string(workers) + "), got " + std::to_string(pipelines);
  if (workers % 2 == 0 &&
      (pipelines < 2 || pipelines % 2 != 0 || workers % pipelines != 0))
    return "expected " + possiblePipelines(workers) + " pipelines for " +
           std::to_string(workers) + " workers, got " +
           std::to_string(pipelines);
  return checkOneStageEach(request);
}

/// The groups first, first + 1, … of one basic unit.
struct Unit {
  int32_t first;
  int32_t count;
  /// True if two forwards share a slot (Figure 7c). Each backward has its own
  /// slot.
  bool pairs;
};

/// All basic units of a step. A piece is the work of one backward action: a
/// micro-batch or, with halving, half of a micro-batch. A group is
/// `piecesPerGroup` pieces (1 or 2) that one slot of a worker has: the slot of
/// its forward, and the slot of its backwards.
struct Table {
  int32_t stages, pipelines;
  Concatenation concatenation;
  int32_t parts;  ///< backwards per micro-batch
  int32_t pieces; ///< micro-batches times `parts`
  int32_t piecesPerGroup = 1;
  std::vector<Unit> units;

  explicit Table(const Request &request)
      : stages(request.stageCount()), pipelines(pipelinesOf(request.options)),
        concatenation(concatenationOf(request.options)),
        parts(concatenation == Concatenation::Halving ? 2 : 1),
        pieces(request.microBatches * parts) {
    int32_t size = stages - stages % 2;
    int32_t groups = pieces;
    int32_t first = 0;
    if (!isOneByOne(concatenation)) {
      // If N were not a multiple of the unit size, halving could leave half a
      // unit over, in which each forward would cover half a micro-batch.
      if (pipelines == 2 && request.microBatches % size == 0) {
        for (; groups - first >= 2 * size; first += 2 * size)
          units.push_back({first, 2 * size, true});
      } else {
        piecesPerGroup = 2;
        groups = groups / 2 + groups % 2;
      }
    }
    for (; first < groups; first += size)
      units.push_back({first, std::min(size, groups - first), false});
  }

  /// True if every action of a worker has a slot of its own.
  bool hasSlots() const {
    return piecesPerGroup == 1 &&
           !(concatenation == Concatenation::FineTunedDoubling &&
             units.front().pairs);
  }
  /// The number of slots from the start of a unit to the start of the next.
  int32_t period(const Unit &unit) const {
    return unit.pairs ? 3 * stages - stages % 2 : 2 * stages;
  }
  /// The number of groups in `unit` that `pipeline` runs.
  int32_t share(const Unit &unit, int32_t pipeline) const {
    return unit.count / pipelines + (pipeline < unit.count % pipelines);
  }
  /// The `index`-th group of `unit` on `pipeline`.
  int32_t group(const Unit &unit, int32_t pipeline, int32_t index) const {
    // Figure 7c assigns pairs: down 0 1, up 2 3, down 4 5, up 6 7, …
    if (unit.pairs)
      return unit.first + index / 2 * 4 + index % 2 + 2 * pipeline;
    return unit.first + unit.count / pipelines * pipeline +
           std::min(pipeline, unit.count % pipelines) + index;
  }
  /// The number of groups of `unit` whose forwards share a slot.
  static int32_t perSlot(const Unit &unit) { return unit.pairs ? 2 : 1; }

  /// Calls `visit(first, count)`, both in micro-batches, for each forward of
  /// the slot whose first group is `group`.
  template <typename Visit>
  void forEachForward(const Unit &unit, int32_t group, Visit visit) const {
    int32_t first = piecesPerGroup * group;
    int32_t count = std::min(piecesPerGroup * perSlot(unit), pieces - first);
    if (parts > 1)
      visit(first / parts, count / parts);
    else if (concatenation == Concatenation::Doubling)
      visit(first, count);
    else
      for (int32_t i = 0; i < count; ++i)
        visit(first + i, 1);
  }
  /// Calls `visit(microBatch, part)` for each backward of `group`.
  template <typename Visit>
  void forEachBackward(int32_t group, Visit visit) const {
    for (int32_t i = piecesPerGroup * group;
         i < std::min(piecesPerGroup * (group + 1), pieces); ++i)
      visit(i / parts, i % parts);
  }
};

/// Stage s of down pipeline i is on worker s + i D/f (modulo D). Up pipeline i
/// uses the same workers in the opposite direction.
std::vector<Pipeline> pipelinesOf(const Table &table) {
  // The first unit is the largest, and gives one group to each pipeline in
  // turn. So pipelines from `used` on get no micro-batches. They are left out,
  // because there may be very many.
  int32_t used = std::min(table.pipelines, table.units.front().count);
  std::vector<Pipeline> pipelines;
  for (int32_t i = 0; 2 * i < used; ++i)
    for (Pipeline &pipeline : placeBothWays(
             table.stages, i * (table.stages / (table.pipelines / 2))))
      pipelines.push_back(std::move(pipeline));
  pipelines.resize(used);
  for (const Unit &unit : table.units)
    for (int32_t p = 0; p < used; ++p)
      for (int32_t j = 0; j < table.share(unit, p); j += table.perSlot(unit))
        table.forEachForward(unit, table.group(unit, p, j),
                             [&](int32_t first, int32_t count) {
                               pipelines[p].forwards.push_back(count);
                               for (int32_t i = 0; i < count; ++i)
                                 pipelines[p].microBatches.push_back(first + i);
                             });
  for (Pipeline &pipeline : pipelines) {
    pipeline.backwardParts = table.parts;
    if (std::ranges::count(pipeline.forwards, 1) ==
        std::ssize(pipeline.forwards))
      pipeline.forwards.clear();
  }
  return pipelines;
}

Plan placeChimera(const Request &request) {
  Plan plan;
  plan.pipelines = pipelinesOf(Table(request));
  return plan;
}

/// The contents of one slot of a worker: the forwards or backwards of a group.
struct Slot {
  int64_t number;
  const Unit *unit;
  Kind kind;
  int32_t pipeline, stage, group;
};

void appendSlot(const Table &table, const Slot &slot, Schedule &schedule,
                int32_t worker) {
  auto append = [&](int32_t microBatch, int32_t count, int32_t part) {
    bool isPart = slot.kind == Kind::Backward;
    schedule.workers[worker].push_back(
        {slot.kind, slot.pipeline, slot.stage, microBatch,
         static_cast<uint16_t>(count), static_cast<uint8_t>(part),
         static_cast<uint8_t>(isPart ? table.parts : 1)});
    if (table.hasSlots())
      schedule.slots[worker].push_back(slot.number);
  };
  if (slot.kind == Kind::Forward)
    table.forEachForward(
        *slot.unit, slot.group,
        [&](int32_t first, int32_t count) { append(first, count, 0); });
  else
    table.forEachBackward(slot.group,
                          [&](int32_t m, int32_t part) { append(m, 1, part); });
}

/// Sorts a worker's slots by number. Requires that all numbers differ. Takes
/// linear time unless the numbers are many times larger than the number of
/// slots.
void sortSlots(std::vector<Slot> &row) {
  int64_t most = -1;
  for (const Slot &slot : row)
    most = std::max(most, slot.number);
  if (most / 8 > std::ssize(row)) {
    std::ranges::sort(row, {}, &Slot::number);
    return;
  }
  std::vector<int32_t> indices(most + 1, -1); // index in `row`, by number
  for (size_t i = 0; i < row.size(); ++i)
    indices[row[i].number] = static_cast<int32_t>(i);
  std::vector<Slot> sorted;
  sorted.reserve(row.size());
  for (int32_t index : indices)
    if (index >= 0)
      sorted.push_back(row[index]);
  row = std::move(sorted);
}

/// Swaps each first-stage forward with the first-stage backward directly before
/// it.
void hoistFirstStageForwards(std::vector<Slot> &row) {
  auto isFirst = [](const Slot &slot, Kind kind) {
    return slot.kind == kind && slot.stage == 0;
  };
  for (size_t i = 1; i < row.size(); ++i)
    if (isFirst(row[i - 1], Kind::Backward) && isFirst(row[i], Kind::Forward)) {
      std::swap(row[i - 1], row[i]);
      std::swap(row[i - 1].number, row[i].number);
      ++i;
    }
}

/// In every pipeline of a unit, group j runs on stage s in these slots:
///
///   forward 2j + s, backward 2j + 2D - 1 - s
///
/// With pairs, j counts pairs in the formula of the forward, and both forwards
/// of a pair share that slot.
///
/// For even D, no two of these actions are in one slot of a worker:
/// - On a worker, down forwards and up backwards have slots of equal parity,
///   but the forwards are all earlier. Up forwards and down backwards have
///   slots of the other parity, and again the forwards are all earlier.
/// - Pipelines of one direction are shifted against each other by D/f workers,
///   so the slots of their first groups on a worker differ by at least D/f. The
///   D/(2f) groups of a pipeline span fewer than D/f slots.
///
/// For odd D, the up pipeline starts one slot later, so that the parities are
/// as described.
PlanOrError makeChimera(const Request &request) {
  Table table(request);
  Plan plan;
  plan.pipelines = pipelinesOf(table);
  int32_t stages = table.stages;
  std::vector<Slot> row;
  auto fill = [&](int32_t p, int32_t s) {
    int64_t start = plan.pipelines[p].up ? stages % 2 : 0;
    for (const Unit &unit : table.units) {
      int32_t perSlot = table.perSlot(unit);
      for (int32_t j = 0; j < table.share(unit, p); ++j) {
        int32_t group = table.group(unit, p, j);
        if (j % perSlot == 0)
          row.push_back({start + 2 * (j / perSlot) + s, &unit, Kind::Forward, p,
                         s, group});
        row.push_back({start + 2 * j + 2 * stages - 1 - s, &unit,
                       Kind::Backward, p, s, group});
      }
      start += table.period(unit);
    }
  };
  std::vector<std::vector<std::pair<int32_t, int32_t>>> replicas(
      request.workers); // pipelines and stages of each worker
  for (size_t p = 0; p < plan.pipelines.size(); ++p)
    for (int32_t s = 0; s < stages; ++s)
      replicas[plan.pipelines[p].workers[s]].emplace_back(p, s);
  Schedule &schedule = plan.order;
  schedule.workers.resize(request.workers);
  if (table.hasSlots())
    schedule.slots.resize(request.workers);
  for (int32_t w = 0; w < request.workers; ++w) {
    row.clear();
    for (auto [p, s] : replicas[w])
      fill(p, s);
    sortSlots(row);
    if (table.concatenation == Concatenation::Eager)
      hoistFirstStageForwards(row);
    for (const Slot &slot : row)
      appendSlot(table, slot, schedule, w);
  }
  return plan;
}

std::string noteChimera(const Problem &problem) {
  if (problem.pipelines.size() != problem.stages.size())
    return {};
  return "with as many pipelines as stages every worker holds the whole model: "
         "plain data parallelism does the same without messages";
}

} // namespace

const Scheme kChimera = {
    "chimera",
    "bidirectional pipelines: 2f copies of the model, half of them down and "
    "half up",
    "any D >= 2, S = D, any N >= 1",
    kOptions,
    checkChimera,
    placeChimera,
    makeChimera,
    chimeraBubbles(),
    chimeraPeaks(),
    noteChimera};

} // namespace chimera::schedule
