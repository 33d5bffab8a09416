//===- ShowSettings.cpp - The options of chimera-show ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/ShowSettings.h"

#include "compiler/schedule/families/Registry.h"
#include "tools/CommandLine.h"
#include "tools/Version.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iostream>

namespace chimera {

bool ShowSettings::hasTimesOfActions() const {
  return !unit.empty() || forward.digits != 0 || backward.digits != 0 ||
         weightGradient.digits != 0 || update.digits != 0;
}

bool ShowSettings::hasTimes() const {
  return !costs.empty() || !messages.empty() || hasTimesOfActions();
}

bool ShowSettings::isAboutSchedule() const {
  const auto isGiven = [](const std::string *file) { return !file->empty(); };
  return printsComparison || printsReport || showsSlots || hasTimes() ||
         !costsFrom.empty() ||
         std::ranges::any_of(std::array{&svg, &pdf, &html, &trace, &json, &csv,
                                        &torchCsv, &description, &measured},
                             isGiven);
}

/// Names of a table's entries, for an option that takes one of them.
template <typename Entry>
static std::vector<std::string> namesOf(std::span<const Entry> table) {
  std::vector<std::string> names;
  for (const Entry &entry : table)
    names.emplace_back(entry.name);
  return names;
}

static std::string fileError(const std::string &text) {
  return text.empty() ? "expected a file, got an empty name" : "";
}

static std::string timeError(const std::string &text) {
  std::optional<Decimal> time = decimalOf(text);
  return time && time->digits >= 0
             ? ""
             : "expected a time such as 2 or 0.5, got " + text;
}

static std::string costError(const std::string &text) {
  std::optional<Decimal> time = decimalOf(text);
  return time && time->digits > 0
             ? ""
             : "expected a time above 0, such as 2 or 0.5, got " + text;
}

/// The clauses of an expression that are used most. dialect/Chimera.md has all.
static constexpr char kClauseHelp[] =
    "Clauses of -e:\n"
    "stages=4, workers=4: numbers of stages and workers; one of the two may be "
    "left out\n"
    "micro_batches=8: micro-batches in a step\n"
    "schedule=1f1b,chimera{pipelines=4}: schedules, with their options in "
    "braces; each is a pipeline\n"
    "split_backward: the two gradients of each backward are two actions, I and "
    "W\n"
    "recompute=all: stages that keep no activations and compute them again: "
    "all, [0,1] or, as a part of their backwards, (all fused)\n"
    "data_parallel=2: copies of all workers\n"
    "all_reduce=eager: when all-reduces start: lazy (after all actions, the "
    "default), eager (after the stage's actions) or eager_opt (eager if the "
    "worker is idle then)\n"
    "link=<latency=1>: time of a message\n"
    "micro_batch_size, memory_cap, bucket_bytes and others: see "
    "chimera.pipeline in dialect/Chimera.md\n";

/// Adds the options of `picture`.
static void addPictureOptions(CLI::App &app, schedule::Picture &picture) {
  app.add_option("--cell-width", picture.cellWidth,
                 "Width of the shortest action of all pipelines, in pixels "
                 "(unless given, as wide as the labels need)")
      ->type_name("PIXELS")
      ->check(within(1, 1000))
      ->group("Pictures");
  auto addTime = [&](const char *name, std::optional<double> &time,
                     const char *help) {
    app.add_option_function<std::string>(
           name,
           [&time](const std::string &text) {
             const Decimal read = *decimalOf(text);
             time =
                 static_cast<double>(read.digits) / std::pow(10, read.places);
           },
           help)
        ->type_name("TIME")
        ->check(CLI::Validator(timeError, ""))
        ->group("Pictures");
  };
  addTime("--from", picture.from,
          "Show only what runs after this time, in the unit of the picture's "
          "time axis. Idle shares and peaks are still those of the whole "
          "schedule");
  addTime("--to", picture.to,
          "Show only what runs before this time, in the same unit");
  auto addSwitch = [&](const char *name, bool &isShown, const char *help) {
    app.add_flag_function(
           name, [&isShown](int64_t count) { isShown = count <= 0; }, help)
        ->group("Pictures");
  };
  addSwitch("--no-title", picture.hasTitle,
            "Leave out the title and the text below it, for a picture with a "
            "caption. Each of several pipelines keeps its name");
  addSwitch("--no-idle", picture.hasIdle,
            "Leave out the idle shares, right of the rows");
  addSwitch("--no-peak", picture.hasPeak,
            "Leave out the peak activations, right of the rows");
}

/// The names of the options that `picture` was given, with commas between.
static std::string namesOf(const schedule::Picture &picture) {
  std::string names;
  auto add = [&](bool isGiven, const char *name) {
    if (isGiven)
      names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add(picture.cellWidth > 0, "--cell-width");
  add(picture.from.has_value(), "--from");
  add(picture.to.has_value(), "--to");
  add(!picture.hasTitle, "--no-title");
  add(!picture.hasIdle, "--no-idle");
  add(!picture.hasPeak, "--no-peak");
  return names;
}

/// The error in the options for pictures. Empty if they make sense.
static std::string pictureError(const ShowSettings &settings) {
  const schedule::Picture &picture = settings.picture;
  const std::string names = namesOf(picture);
  if (!names.empty() && settings.svg.empty() && settings.pdf.empty())
    return "expected --svg or --pdf with " + names +
           ": only pictures change with it";
  if (!picture.hasPeak && !settings.measured.empty())
    return "expected no --no-peak with --measured: a picture with a run shows "
           "no peak activations";
  if (picture.from && picture.to && *picture.from >= *picture.to)
    return "expected a time of --from before that of --to";
  return {};
}

/// The error if the words of the only -e are not in quotes, so that the shell
/// passes each of them as an argument. Empty if they are.
static std::string quotesError(const ShowSettings &settings,
                               const CLI::App &app) {
  std::error_code ignored;
  if (settings.expressions.size() != 1 || settings.input.empty() ||
      settings.input == "-" ||
      settings.expressions[0].find(' ') != std::string::npos ||
      std::filesystem::exists(settings.input, ignored))
    return {};
  std::string words = settings.expressions[0] + " " + settings.input;
  for (const std::string &extra : app.remaining()) {
    if (extra.starts_with('-'))
      return {};
    words += " " + extra;
  }
  return "expected the words of -e in quotes, got '" + settings.input +
         "' outside of them: write -e \"" + words + "\"";
}

std::optional<int> readShowSettings(int argc, char **argv,
                                    ShowSettings &settings) {
  CLI::App app(
      "Shows a schedule: the grid of its actions, its bubble and its "
      "memory.\n\n"
      "FILE is a description (chimera.pipeline) or a module of a later "
      "phase, a\n"
      "program (chimera-compile), a file with the order of each worker, or a\n"
      "schedule file of PyTorch (compute_only). A lowered program of PyTorch\n"
      "(compute_comms) is checked: it may wait for ever or lack actions. -e\n"
      "describes pipelines in one line.\n\n"
      "The schedule is printed even if options such as --svg write files. If "
      "a\n"
      "file is -, only its document is printed.\n",
      "chimera-show");
  app.set_version_flag("--version", std::string("chimera-show ") + kVersion);
  app.add_option("FILE", settings.input, "What to show, - for standard input");
  app.add_flag("--zero-bubble-notation", settings.hasZeroBubbleNotation,
               "FILE has the order of each worker in the letters of "
               "zero-bubble papers: B is an input gradient, W a weight "
               "gradient and BW a whole backward");
  app.add_option("-e,--expression", settings.expressions,
                 "Show this pipeline: clauses of chimera.pipeline as NAME or "
                 "NAME=VALUE, such as \"workers=4 micro_batches=8 "
                 "schedule=1f1b,zb-v\". Give -e again for further pipelines")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.add_flag("--compare", settings.printsComparison,
               "Print a line for each pipeline, the fastest first");
  app.add_flag("--report", settings.printsReport,
               "Print a table for each pipeline: bubbles, memory, lower bounds "
               "and formulas")
      ->excludes("--compare");
  app.add_option("--activations", settings.activationCap,
                 "With --compare, --report, --json or --csv: mark pipelines in "
                 "which a worker has the activations of more micro-batches "
                 "than this at once")
      ->check(wholeWithin(1, INT32_MAX));
  auto addFile = [&](const char *name, std::string &file, const char *help) {
    app.add_option(name, file, help)
        ->type_name("FILE")
        ->check(CLI::Validator(fileError, ""));
  };
  addFile("--svg", settings.svg, "Write a picture, - for standard output");
  addFile("--pdf", settings.pdf,
          "Write the picture as PDF, - for standard output; needs the program "
          "rsvg-convert (package librsvg2-bin)");
  addFile("--html", settings.html,
          "Write a page for a browser, to zoom and to look at actions, - for "
          "standard output");
  addFile("--trace", settings.trace,
          "Write a trace for ui.perfetto.dev, - for standard output");
  addFile("--json", settings.json,
          "Write the report as JSON, - for standard output");
  addFile("--csv", settings.csv,
          "Write the report as CSV, - for standard output");
  addFile("--torch-csv", settings.torchCsv,
          "Write the order as a schedule file of PyTorch (compute_only), - for "
          "standard output");
  addFile("--description", settings.description,
          "Write the pipelines as a description that chimera-compile reads, - "
          "for standard output");
  addFile("--measured", settings.measured,
          "Show this trace of a run (chimera-run --trace) beside the schedule");
  app.add_option("--copy", settings.copy,
                 "With --measured: the data-parallel copy to show, from 0 (the "
                 "one with the longest step unless given)")
      ->check(wholeWithin(0, INT32_MAX));
  app.add_option(
         "--costs-from", settings.costsFrom,
         "Take the costs of a model's layers from these profiles of runs "
         "on the pipeline's machine (chimera-run --profile)")
      ->type_name("FILE,…")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Validator(fileError, ""));
  app.add_option(
         "--costs", settings.costs,
         "uniform: a forward of each stage takes --forward. worker: a forward "
         "through all stages that a worker has in one direction takes "
         "--forward. stages: the times that the pipeline states. Unless given: "
         "stages if the pipeline states durations, else worker")
      ->check(oneOf(namesOf(timeSources())));
  auto addTime = [&](const char *name, Decimal &time, const char *help,
                     std::string (*fault)(const std::string &) = costError) {
    app.add_option_function<std::string>(
           std::string("--") + name,
           [&time](const std::string &text) { time = *decimalOf(text); }, help)
        ->type_name("TIME")
        ->check(CLI::Validator(fault, ""));
  };
  addTime("forward", settings.forward, "Time of a forward (1 unless given)");
  addTime("backward", settings.backward,
          "Time of a whole backward (twice the forward unless given)");
  addTime("weight-gradient", settings.weightGradient,
          "Time of the second half of a split backward (half of the backward "
          "unless given)");
  addTime("update", settings.update, "Time of a stage's optimizer step",
          timeError);
  for (const schedule::MessageOption &option : schedule::messageOptions())
    app.add_option_function<std::string>(
           std::string("--") + option.name,
           [&settings, &option](const std::string &text) {
             settings.messages.emplace_back(option.name, *decimalOf(text));
           },
           option.summary)
        ->type_name("TIME")
        ->check(CLI::Validator(timeError, ""));
  app.add_option("--unit", settings.unit, "Unit of the times that options give")
      ->check(oneOf(namesOf(schedule::timeUnits())));
  app.add_flag("--slots", settings.showsSlots,
               "Give each action one slot, as tables in papers do");
  app.add_option("--width", settings.width,
                 "Characters in a line of the grid (the terminal's unless "
                 "given)")
      ->check(wholeWithin(1, INT32_MAX));
  addPictureOptions(app, settings.picture);
  app.footer(std::string(kClauseHelp) + "\nSchedules:\n" +
             schedule::schemeHelp());
  app.allow_extras();
  auto fail = [](const std::string &fault) {
    std::cerr << "chimera-show: " << fault << "\n";
    return 1;
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    return fail(error.what());
  }
  if (std::string fault = quotesError(settings, app); !fault.empty())
    return fail(fault);
  if (std::string fault = unknownArgument(app); !fault.empty())
    return fail(fault);
  if (settings.input.empty() && settings.expressions.empty())
    return fail("expected a file or an expression, such as -e \"stages=4 "
                "micro_batches=8 schedule=1f1b\"; --help explains both");
  if (!settings.input.empty() && !settings.expressions.empty())
    return fail("expected a file or expressions (-e), got both");
  if (!settings.measured.empty() &&
      (settings.printsComparison || settings.printsReport ||
       !settings.json.empty() || !settings.csv.empty()))
    return fail("expected --measured alone or with --svg, --pdf, --html or "
                "--trace, got it "
                "with --compare, --report, --json or --csv, which show no run");
  if (std::string fault = pictureError(settings); !fault.empty())
    return fail(fault);
  if (settings.copy && settings.measured.empty())
    return fail("expected --measured with --copy");
  if (settings.activationCap && !settings.printsComparison &&
      !settings.printsReport && settings.json.empty() && settings.csv.empty())
    return fail("expected --compare, --report, --json or --csv with "
                "--activations");
  if (settings.showsSlots && settings.hasTimes())
    return fail("expected no times with --slots");
  if (settings.costs == "stages" && settings.hasTimesOfActions())
    return fail("expected no --forward, --backward, --weight-gradient, "
                "--update or --unit with --costs stages: the pipeline states "
                "these times");
  return std::nullopt;
}

} // namespace chimera
