//===- schedule.cpp - The cost of the schedule library --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times the calls of the schedule library, as PHASE/CASE/D/N:
//
//   generate   from sizes and options to an order: check, place, order, split,
//              insert recomputes
//   verify     all constraints, including memory caps
//   simulate   starts, makespan, idle times, peaks, critical path
//
// D is the number of workers, and N the number of micro-batches. All cases have
// costs, bytes, caps and message times. An item is an action. The arguments are
// those of Google Benchmark. `schedule.py` makes tables of the output.
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/MakePlan.h"
#include "compiler/schedule/families/Chimera.h"
#include "compiler/schedule/families/Registry.h"
#include "compiler/schedule/model/Recompute.h"
#include "compiler/schedule/simulate/Simulate.h"
#include "compiler/schedule/verify/Verify.h"

#include <benchmark/benchmark.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace {

using namespace chimera::schedule;

struct Case {
  const char *name;
  const char *scheme;
  Concatenation concatenation = Concatenation::Direct;
  bool splitBackward = false;
  Recompute recompute = Recompute::None;
  int32_t chunks = 1; ///< stages of each worker
};

constexpr Case kCases[] = {
    {"1f1b", "1f1b"},
    {"1f1b-split", "1f1b", Concatenation::Direct, true},
    {"1f1b-recompute", "1f1b", Concatenation::Direct, false, Recompute::Early},
    {"interleaved", "interleaved-1f1b", Concatenation::Direct, false,
     Recompute::None, 2},
    {"zb-v", "zb-v", Concatenation::Direct, false, Recompute::None, 2},
    {"gpipe", "gpipe"},
    {"gems", "gems"},
    {"pipedream", "pipedream"},
    {"pipedream-2bw", "pipedream-2bw"},
    {"chimera-direct", "chimera"},
    {"chimera-eager", "chimera", Concatenation::Eager},
    {"chimera-doubling", "chimera", Concatenation::Doubling},
    {"chimera-fine-tuned", "chimera", Concatenation::FineTunedDoubling},
    {"chimera-halving", "chimera", Concatenation::Halving},
    {"chimera-recompute", "chimera", Concatenation::Doubling, false,
     Recompute::Early},
};
/// The numbers of workers and micro-batches.
constexpr std::pair<int32_t, int32_t> kSizes[] = {
    {8, 64},    {16, 256},  {32, 256},  {32, 1024},
    {64, 1024}, {64, 4096}, {128, 8192}};

/// Makes the problem of a case and its schedule.
std::pair<Problem, Schedule> generate(const Case &what, int32_t workers,
                                      int32_t microBatches) {
  const Scheme *scheme = findScheme(what.scheme);
  Request request;
  request.workers = workers;
  request.microBatches = microBatches;
  request.options = scheme->options.empty()
                        ? Options()
                        : chooseChimera(2, what.concatenation);
  request.splitBackward = what.splitBackward;
  size_t stages = static_cast<size_t>(workers) * what.chunks;
  request.stages.assign(stages, {.forward = 20,
                                 .backward = 40,
                                 .inputGradient = 20,
                                 .weightGradient = 20,
                                 .recompute = 20});
  request.bytes.assign(stages, {.weights = 4000,
                                .optimizer = 8000,
                                .stash = 400,
                                .weightStash = 400,
                                .boundary = 100});
  request.link = {1, 1, 100};
  request.memoryCaps.assign(workers, int64_t{1} << 40);
  request.recompute.assign(stages, what.recompute);
  PlanOrError made = makePlan(*scheme, request);
  if (!made.plan)
    throw std::invalid_argument(made.reason);
  Problem problem = problemOf(request, *made.plan);
  Schedule schedule = std::move(made.plan->order);
  if (what.recompute != Recompute::None)
    schedule = insertRecompute(problem, schedule);
  return {std::move(problem), std::move(schedule)};
}

int64_t count(const Schedule &schedule) {
  int64_t actions = 0;
  for (const std::vector<Action> &order : schedule.workers)
    actions += std::ssize(order);
  return actions;
}

/// Times `run` on the problem and the schedule of the case `what`.
template <typename Run>
void measure(benchmark::State &state, const Case &what, Run run) {
  auto workers = static_cast<int32_t>(state.range(0));
  auto microBatches = static_cast<int32_t>(state.range(1));
  const auto [problem, schedule] = generate(what, workers, microBatches);
  if (!check(problem).empty() || !verify(problem, schedule).empty() ||
      !simulate(problem, schedule).complete)
    return state.SkipWithError("expected a valid schedule");
  for (auto _ : state)
    benchmark::DoNotOptimize(run(problem, schedule));
  state.counters["actions"] = static_cast<double>(count(schedule));
  state.SetItemsProcessed(state.iterations() * count(schedule));
}

void enroll(const Case &what) {
  auto add = [&](const char *phase, auto run) {
    benchmark::internal::Benchmark *bench = benchmark::RegisterBenchmark(
        (std::string(phase) + "/" + what.name).c_str(),
        [&what, run](benchmark::State &state) { measure(state, what, run); });
    for (auto [stages, microBatches] : kSizes)
      bench->Args({stages, microBatches});
    bench->Unit(benchmark::kMicrosecond);
  };
  add("generate", [&what](const Problem &problem, const Schedule &) {
    return generate(what, problem.workers, problem.microBatches());
  });
  add("verify", [](const Problem &problem, const Schedule &schedule) {
    return verify(problem, schedule);
  });
  add("simulate", [](const Problem &problem, const Schedule &schedule) {
    return simulate(problem, schedule);
  });
}

} // namespace

int main(int count, char **arguments) {
  for (const Case &what : kCases)
    enroll(what);
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments))
    return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
