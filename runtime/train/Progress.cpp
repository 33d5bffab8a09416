//===- Progress.cpp - Progress output and log of a run --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/Progress.h"

#include "runtime/train/Launch.h"
#include "runtime/train/StepRecord.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

using namespace chimera;
using namespace chimera::runtime;

Progress::Progress(const Options &options)
    // Show no progress line on the terminal in a job: a launcher may give ranks
    // a terminal even if its own output is a file.
    : options(options), terminal(isatty(STDOUT_FILENO) && !findJob()) {
  if (!options.logFile.empty())
    log.emplace(options.logFile, oldLines());
  if (log && log->unknownLines() > 0) {
    std::printf("--log: %s of %s cannot be read and will be left out\n",
                program::countWithNoun(log->unknownLines(), "line").c_str(),
                options.logFile.c_str());
    std::fflush(stdout);
  }
  if (lastOldStep > 0)
    noteOldStep(options.firstStep + 1);
  if (firstGap) {
    const auto [first, last] = *firstGap;
    const std::string steps = first == last
                                  ? " of step " + std::to_string(first)
                                  : "s of steps " + std::to_string(first) +
                                        " to " + std::to_string(last);
    std::printf("--log: %s has no line%s\n", options.logFile.c_str(),
                steps.c_str());
    std::fflush(stdout);
  }
  if (!options.eventFolder.empty())
    events.emplace(options.eventFolder, options.firstStep + 1);
}

/// Which lines of an existing log stay, if the run continues it: those of steps
/// up to firstStep. The line of a checkpoint may follow those of later steps.
LogFile::Classify Progress::oldLines() {
  if (!options.resumes)
    return {};
  return [this](std::string_view line, bool isWhole) {
    constexpr std::string_view kBegin = "{\"step\":";
    if (!isWhole)
      return kBegin.starts_with(line.substr(0, kBegin.size()))
                 ? LogFile::Line::Drop
                 : LogFile::Line::Unknown;
    const auto object =
        nlohmann::json::parse(line, nullptr, /*exceptions=*/false);
    if (!object.is_object())
      return LogFile::Line::Unknown;
    if (object.contains("summary"))
      return LogFile::Line::Drop;
    const bool isEvaluation = object.contains("held_out_loss");
    if (!object.contains("step") || !object["step"].is_number_unsigned() ||
        !(isEvaluation || object.contains("seconds")))
      return LogFile::Line::Unknown;
    const uint64_t step = object["step"].get<uint64_t>();
    hasOldEvaluation |= step == options.firstStep && isEvaluation;
    if (step > options.firstStep)
      return LogFile::Line::Drop;
    noteOldStep(step);
    return LogFile::Line::Keep;
  };
}

/// Notes that the log has a line of this step, or ends before it. A log may
/// begin with any step.
void Progress::noteOldStep(uint64_t step) {
  if (lastOldStep > 0 && step > lastOldStep + 1 && !firstGap)
    firstGap = {lastOldStep + 1, step - 1};
  lastOldStep = std::max(lastOldStep, step);
}

void Progress::step(const StepEvent &event) {
  const double took = event.seconds - std::exchange(lastSeconds, event.seconds);
  bool last = event.step + 1 == options.steps;
  if (event.loss && !event.loss->hasWeight && !options.quiet &&
      !std::exchange(hasToldOfNothing, true)) {
    endLine();
    std::printf("no label of step %llu counts: its loss is 0, and it changes "
                "no weight (further such steps are not reported)\n",
                static_cast<unsigned long long>(event.step + 1));
    std::fflush(stdout);
  }
  if (!options.quiet &&
      (last || event.seconds - lastShown >= (terminal ? 0.1 : 5))) {
    lastShown = event.seconds;
    show(event, event.seconds > 0
                    ? static_cast<double>(event.step + 1 - options.firstStep) /
                          event.seconds
                    : 0);
  }
  if (!log && !events)
    return;
  auto rateOf = [&](uint64_t count) {
    return count > 0 && took > 0
               ? std::optional(static_cast<double>(count) / took)
               : std::nullopt;
  };
  const StepRecord record{.event = event,
                          .tokensPerSecond = rateOf(options.tokensPerStep),
                          .samplesPerSecond =
                              options.tokensPerStep
                                  ? std::nullopt
                                  : rateOf(options.samplesPerStep)};
  nlohmann::ordered_json line;
  std::vector<Scalar> scalars;
  line["step"] = event.step + 1;
  for (const StepField &field : stepFields()) {
    nlohmann::ordered_json value = field.valueOf(record);
    if (value.is_null())
      continue;
    scalars.push_back({field.tag, value.get<double>()});
    line[field.name] = std::move(value);
  }
  line["seconds"] = event.seconds;
  write(line.dump(), event.step + 1, scalars);
}

std::string chimera::runtime::summaryOf(const EvaluationResult &result) {
  char text[64];
  // The absolute value of NaN has no sign, which would be printed.
  std::snprintf(text, sizeof(text), "held-out loss %.4f",
                std::isnan(result.loss) ? std::fabs(result.loss) : result.loss);
  std::string all = text;
  if (result.accuracy) {
    std::snprintf(text, sizeof(text), ", accuracy %.1f %%",
                  100 * *result.accuracy);
    all += text;
  }
  return all;
}

void Progress::evaluation(uint64_t steps, const EvaluationResult &result,
                          bool isLast) {
  if (!options.quiet && !isLast) {
    endLine();
    std::printf("%s after %llu steps\n", summaryOf(result).c_str(),
                static_cast<unsigned long long>(steps));
    std::fflush(stdout);
  }
  if (hasOldEvaluation && steps == options.firstStep)
    return;
  nlohmann::ordered_json line = {{"step", steps},
                                 {"held_out_loss", result.loss}};
  std::vector<Scalar> scalars = {{"validation/loss", result.loss}};
  if (result.accuracy) {
    line["held_out_accuracy"] = *result.accuracy;
    scalars.push_back({"validation/accuracy", *result.accuracy});
  }
  write(line.dump(), steps, scalars);
}

void Progress::checkpoint(const CheckpointOutcome &outcome) {
  write(nlohmann::ordered_json{{"step", outcome.step},
                               {"checkpoint", outcome.path},
                               {"bytes", outcome.bytes},
                               {"seconds", outcome.seconds},
                               {"waited_seconds", outcome.waited}}
            .dump(-1, ' ', false,
                  nlohmann::ordered_json::error_handler_t::replace));
}

/// If `file` is open, calls `action` with it. If that throws, closes the file
/// and adds the error to `failures`.
template <typename File, typename Action>
static void attempt(std::optional<File> &file, std::string &failures,
                    Action action) {
  if (!file)
    return;
  try {
    action(*file);
  } catch (const std::exception &error) {
    file.reset();
    failures += (failures.empty() ? "" : "; ") + std::string(error.what());
  }
}

static void throwIfAny(const std::string &failures) {
  if (!failures.empty())
    throw std::runtime_error(failures);
}

/// Writes a line of the log and, if there are any, points for TensorBoard. A
/// file that cannot be written does not keep the other from being written.
void Progress::write(const std::string &line, uint64_t step,
                     std::span<const Scalar> scalars) {
  std::string failures;
  attempt(log, failures, [&](LogFile &file) { file.append(line + "\n"); });
  if (!scalars.empty())
    attempt(events, failures,
            [&](EventFile &file) { file.append(step, scalars); });
  throwIfAny(failures);
}

/// "3:07" or "2:03:07": minutes and seconds, after hours if there are any.
static std::string durationText(long long seconds) {
  char text[64];
  if (seconds >= 3600)
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", seconds / 3600,
                  seconds / 60 % 60, seconds % 60);
  else
    std::snprintf(text, sizeof(text), "%lld:%02lld", seconds / 60,
                  seconds % 60);
  return text;
}

void Progress::show(const StepEvent &event, double perSecond) {
  // Write only if the pipe has room, because writing to a full pipe would block
  // the rank.
  pollfd room{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (poll(&room, 1, 0) == 0)
    return;
  std::string line = "step " + std::to_string(event.step + 1) + "/" +
                     std::to_string(options.steps);
  const auto [unit, each] =
      options.tokensPerStep    ? std::pair("tokens", options.tokensPerStep)
      : options.samplesPerStep ? std::pair("samples", options.samplesPerStep)
                               : std::pair("steps", uint64_t{1});
  char text[64];
  // Stages without a model have no samples. Their loss is a hash, so it is not
  // shown.
  if (event.loss && (options.tokensPerStep || options.samplesPerStep)) {
    std::snprintf(text, sizeof(text), "  loss %.4f  lr %.2e", event.loss->mean,
                  event.learningRate);
    line += text;
  }
  const double rate = perSecond * static_cast<double>(each);
  std::snprintf(text, sizeof(text), "  %.*f %s/s", rate < 10 ? 2 : 0, rate,
                unit);
  line += text;
  const double left =
      perSecond > 0
          ? static_cast<double>(options.steps - event.step - 1) / perSecond
          : 0;
  line += "  ETA " + durationText(std::llround(left));
  if (terminal)
    std::printf("\r%s\033[K", line.c_str());
  else
    std::printf("%s\n", line.c_str());
  isLineOpen = terminal;
  if (event.step + 1 == options.steps)
    endLine();
  std::fflush(stdout);
}

void Progress::endLine() {
  if (isLineOpen)
    std::printf("\n");
  isLineOpen = false;
}

void Progress::finish(const nlohmann::json &summary) {
  std::string failures;
  attempt(log, failures, [&](LogFile &file) {
    if (file.isUnchanged())
      return;
    file.append(nlohmann::json{{"summary", summary}}.dump() + "\n");
    file.complete();
  });
  attempt(events, failures, [](EventFile &file) { file.complete(); });
  throwIfAny(failures);
}
