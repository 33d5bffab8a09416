//===- PlanSettings.cpp - Options of chimera-plan -------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/PlanSettings.h"

#include "runtime/program/Program.h"
#include "tools/MlirDriver.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <numeric>
#include <thread>

namespace cl = llvm::cl;

namespace chimera {

static cl::OptionCategory category("chimera-plan options");
static cl::list<std::string>
    inputs(cl::Positional, cl::desc("<module with a model and a machine>"),
           cl::cat(category));
static cl::opt<int64_t> batch("batch",
                              cl::desc("Samples in a step, over all copies"),
                              cl::value_desc("samples"), cl::cat(category));
static cl::opt<std::string> output(
    "o",
    cl::desc("Write a plan as a described pipeline for chimera-compile, - for "
             "standard output: then the table goes to standard error"),
    cl::value_desc("file"), cl::cat(category));
static cl::opt<uint32_t> pick(
    "pick",
    cl::desc("The plan of the table that -o writes, the first unless given"),
    cl::value_desc("number"), cl::init(1), cl::cat(category));
static cl::opt<uint32_t> top("top", cl::desc("Number of plans in the table"),
                             cl::value_desc("number"), cl::init(10),
                             cl::cat(category));
static cl::opt<bool> allColumns(
    "all-columns",
    cl::desc("Also show what limits each plan, when it sums gradients, and the "
             "time of its all-reduces and updates"),
    cl::cat(category));
static cl::list<uint32_t> compared(
    "explain",
    cl::desc("Compare two plans of the table: where the slower one loses time"),
    cl::value_desc("i,j"), cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string> json(
    "json",
    cl::desc("Write the whole answer as JSON, even if no plan is possible"),
    cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string>
    svg("svg",
        cl::desc("Write a picture of the plans: time of a step against memory"),
        cl::value_desc("file"), cl::cat(category));
static cl::opt<int64_t>
    devices("devices",
            cl::desc("Number of devices to use, the machine's unless given"),
            cl::value_desc("number"), cl::cat(category));
static cl::opt<std::string>
    modelName("model", cl::desc("Name of the model, if there are several"),
              cl::value_desc("name"), cl::cat(category));
static cl::opt<std::string>
    machineName("machine",
                cl::desc("Name of the machine, if there are several"),
                cl::value_desc("name"), cl::cat(category));
static cl::opt<std::string>
    trainingName("training",
                 cl::desc("Name of the training, if there are several"),
                 cl::value_desc("name"), cl::cat(category));
static cl::list<std::string> schedules(
    "schedule",
    cl::desc("Try only these schedules, with only these values of the options "
             "that are named: \"1f1b, chimera {pipelines = 4}\""),
    cl::value_desc("schedules"), cl::cat(category));
static cl::opt<bool> withoutFlush(
    "without-flush",
    cl::desc(
        "Also try schedules without a flush, which apply gradients to newer "
        "weights than those that they were computed from"),
    cl::cat(category));
static cl::list<int32_t>
    workers("workers", cl::desc("Try only these numbers of workers (D)"),
            cl::value_desc("numbers"), cl::CommaSeparated, cl::cat(category));
static cl::list<int32_t>
    copies("copies",
           cl::desc("Try only these numbers of copies of all workers (W)"),
           cl::value_desc("numbers"), cl::CommaSeparated, cl::cat(category));
static cl::list<int32_t>
    stages("stages-per-worker",
           cl::desc("Try only these numbers of stages per worker"),
           cl::value_desc("numbers"), cl::CommaSeparated, cl::cat(category));
static cl::list<int32_t> microBatches(
    "micro-batches",
    cl::desc("Try only these numbers of micro-batches in a copy (N)"),
    cl::value_desc("numbers"), cl::CommaSeparated, cl::cat(category));
static cl::list<int32_t> microBatchSizes(
    "micro-batch-size",
    cl::desc("Try only these numbers of samples in a micro-batch (B)"),
    cl::value_desc("numbers"), cl::CommaSeparated, cl::cat(category));
enum class Split { Any, Yes, No };
static cl::opt<Split>
    split("split-backward", cl::desc("Whether backwards are split"),
          cl::values(clEnumValN(Split::Any, "any", "try both"),
                     clEnumValN(Split::Yes, "yes", "split all"),
                     clEnumValN(Split::No, "no",
                                "only if a schedule splits them anyway")),
          cl::init(Split::Any), cl::cat(category));
static cl::opt<plan::Recomputation> recompute(
    "recompute", cl::desc("Which stages are recomputed"),
    cl::values(
        clEnumValN(plan::Recomputation::Least, "least",
                   "as few as needed for the plan to fit into the memory"),
        clEnumValN(plan::Recomputation::None, "none", "none"),
        clEnumValN(plan::Recomputation::All, "all", "all"),
        clEnumValN(plan::Recomputation::Fused, "fused",
                   "all, as a part of their backwards")),
    cl::init(plan::Recomputation::Least), cl::cat(category));
static cl::list<schedule::AllReducePolicy> policies(
    "all-reduce", cl::desc("Try only these all-reduce policies"),
    cl::values(clEnumValN(schedule::AllReducePolicy::Lazy, "lazy",
                          "after all actions"),
               clEnumValN(schedule::AllReducePolicy::EagerOpt, "eager_opt",
                          "after the stage's actions, if the worker is idle "
                          "then"),
               clEnumValN(schedule::AllReducePolicy::Eager, "eager",
                          "after the stage's actions")),
    cl::CommaSeparated, cl::cat(category));
static cl::opt<int64_t> bucketBytes(
    "bucket-bytes",
    cl::desc(
        "Sum gradients in buckets of at most this many bytes, whole unless "
        "given, which is never slower by the planner's model"),
    cl::value_desc("bytes"), cl::cat(category));
static cl::opt<DataType>
    weightType("weight-type", cl::desc("Type of weights"),
               cl::values(clEnumValN(DataType::F32, "f32", "float32"),
                          clEnumValN(DataType::F64, "f64", "float64"),
                          clEnumValN(DataType::BF16, "bf16",
                                     "bfloat16, and so are activations")),
               cl::init(DataType::F32), cl::cat(category));
static cl::opt<bool> bfloat16("bf16",
                              cl::desc("Compute in bfloat16 "
                                       "(activation_type(bf16))"),
                              cl::cat(category));
static cl::list<std::string>
    costsFrom("costs-from",
              cl::desc("Profiles of runs on the machine (chimera-run "
                       "--profile) for the times of layers"),
              cl::value_desc("files"), cl::CommaSeparated, cl::cat(category));
static cl::opt<uint32_t> threads(
    "threads",
    cl::desc("Number of threads that search, one for each core unless given"),
    cl::init(0), cl::cat(category));

/// The option as users write it: "-o" or "--json".
static std::string nameOf(const cl::Option &option) {
  return (option.ArgStr.size() == 1 ? "-" : "--") + option.ArgStr.str();
}

/// An error message if an option that has one value is given several times,
/// else empty. LLVM would silently use the last value.
static std::string errorOfCounts() {
  for (auto &entry : cl::getRegisteredOptions()) {
    const cl::Option &option = *entry.second;
    bool isList = option.getNumOccurrencesFlag() == cl::ZeroOrMore;
    if (!isList && llvm::is_contained(option.Categories, &category) &&
        option.getNumOccurrences() > 1)
      return "expected " + nameOf(option) + " once, got it " +
             std::to_string(option.getNumOccurrences()) + " times";
  }
  return {};
}

static std::string errorOfTypes() {
  if (bfloat16 && weightType == DataType::F64)
    return "expected --weight-type f32 with --bf16, got f64";
  // The largest value that a pipeline's bucket_bytes allows.
  constexpr int64_t kMostBytes = INT32_MAX;
  if (bucketBytes.getNumOccurrences() > 0 &&
      (bucketBytes < 8 || bucketBytes > kMostBytes))
    return "expected --bucket-bytes from 8 to " + std::to_string(kMostBytes) +
           ", got " + std::to_string(bucketBytes);
  return {};
}

static std::string errorOfFiles() {
  for (const cl::opt<std::string> *file : {&output, &json, &svg})
    if (file->getNumOccurrences() > 0 && file->empty())
      return "expected " + nameOf(*file) +
             " with the name of a file, got an empty one";
  if (llvm::is_contained(costsFrom, ""))
    return "expected --costs-from with the names of profiles, got an empty one";
  if (pick.getNumOccurrences() > 0 && output.empty())
    return "expected -o FILE with --pick, which selects the plan in it";
  return {};
}

static std::string errorOfTable() {
  constexpr uint32_t kMaxShown = 1000;
  for (const cl::opt<uint32_t> *option : {&top, &pick})
    if (*option < 1 || *option > kMaxShown)
      return "expected " + nameOf(*option) + " from 1 to " +
             std::to_string(kMaxShown) + ", got " + std::to_string(*option);
  if (compared.empty())
    return {};
  std::string got;
  for (uint32_t number : compared)
    got += (got.empty() ? "" : ",") + std::to_string(number);
  if (compared.size() != 2 || llvm::any_of(compared, [&](uint32_t number) {
        return number < 1 || number > kMaxShown;
      }))
    return "expected --explain with the numbers of two plans, such as 1,2, "
           "got " +
           got;
  return {};
}

/// Fills `pins` from the options. Returns an error message about --schedule,
/// else an empty string.
static std::string readPins(plan::Pins &pins) {
  for (const std::string &text : schedules)
    if (std::string error = plan::readSchemes(text, pins.schemes);
        !error.empty())
      return "--schedule: " + error;
  pins.withoutFlush = withoutFlush;
  pins.workers.assign(workers.begin(), workers.end());
  pins.copies.assign(copies.begin(), copies.end());
  pins.stagesPerWorker.assign(stages.begin(), stages.end());
  pins.microBatches.assign(microBatches.begin(), microBatches.end());
  pins.microBatchSizes.assign(microBatchSizes.begin(), microBatchSizes.end());
  if (split != Split::Any)
    pins.splitBackward = {split == Split::Yes};
  pins.policies.assign(policies.begin(), policies.end());
  pins.recomputation = recompute;
  pins.bucketBytes = bucketBytes;
  return {};
}

std::string readPlanSettings(int argc, char **argv, PlanSettings &settings) {
  cl::HideUnrelatedOptions(category);
  setVersion("chimera-plan");
  cl::ParseCommandLineOptions(
      argc, argv,
      "Finds the fastest way to train a model on a machine: how many stages "
      "and copies, how large micro-batches, which schedule\n");
  settings.batch = batch;
  settings.output = output;
  settings.json = json;
  settings.svg = svg;
  settings.pick = pick;
  settings.top = top;
  settings.allColumns = allColumns;
  settings.compared.assign(compared.begin(), compared.end());
  settings.model = modelName;
  settings.machine = machineName;
  settings.training = trainingName;
  if (devices.getNumOccurrences() > 0)
    settings.devices = devices;
  if (weightType.getNumOccurrences() > 0)
    settings.weights = weightType;
  if (bfloat16)
    settings.activations = DataType::BF16;
  settings.costsFrom.assign(costsFrom.begin(), costsFrom.end());
  settings.threads =
      threads > 0 ? threads.getValue()
                  : std::clamp(std::thread::hardware_concurrency(), 1u, 256u);
  if (std::string error =
          setSingleInput(inputs, settings.input, "the model and the machine",
                         "cat here.mlir model.mlir > question.mlir");
      !error.empty())
    return error;
  if (std::string error = errorOfCounts(); !error.empty())
    return error;
  if (batch.getNumOccurrences() == 0)
    return "expected --batch, the number of samples in a step";
  if (batch < 1 || batch > INT32_MAX)
    return "expected --batch of 1 to 2147483647 samples, got " +
           std::to_string(batch);
  if (threads > 256)
    return "expected at most 256 --threads, got " + std::to_string(threads);
  for (const std::string &error :
       {errorOfTable(), errorOfFiles(), errorOfTypes()})
    if (!error.empty())
      return error;
  return readPins(settings.pins);
}

/// An error message if one of the `values` of `option` is not in `possible`,
/// else empty. `needs` describes the possible values in words.
static std::string errorOf(const char *option,
                           const std::vector<int32_t> &values,
                           const std::string &needs,
                           const std::vector<int64_t> &possible) {
  for (int32_t value : values) {
    if (llvm::is_contained(possible, value))
      continue;
    std::string text = std::string("expected --") + option + " " + needs;
    constexpr size_t kMaxListed = 16;
    if (possible.size() <= kMaxListed) {
      text += " (";
      for (size_t i = 0; i < possible.size(); ++i)
        text += (i > 0 ? ", " : "") + std::to_string(possible[i]);
      text += ")";
    }
    return text + ", got " + std::to_string(value);
  }
  return {};
}

/// The `numbers` that are at most `most`.
static std::vector<int64_t> upTo(int64_t most, std::vector<int64_t> numbers) {
  llvm::erase_if(numbers, [&](int64_t number) { return number > most; });
  return numbers;
}

std::string errorOfPins(const plan::Question &question) {
  const plan::Pins &pins = question.pins;
  const int64_t layers = question.model.layerCount();
  const int64_t batch = question.batch;
  const int64_t devices = question.machine.devices;
  std::vector<int64_t> powers;
  for (int64_t power = 1; power <= layers; power *= 2)
    powers.push_back(power);
  const std::string theDevices =
      "the " + program::countWithNoun(devices, "device");
  const std::string theBatch =
      "the " + program::countWithNoun(batch, "sample") + " of --batch";
  const std::string atMostLayers =
      "at most the model's " + program::countWithNoun(layers, "layer");
  for (const std::string &error :
       {errorOf("workers", pins.workers,
                "that divide " + theDevices + " and are " + atMostLayers,
                upTo(layers, plan::divisorsOf(devices))),
        errorOf("copies", pins.copies,
                "that divide " + theDevices + " and " + theBatch,
                plan::divisorsOf(std::gcd(devices, batch))),
        errorOf("stages-per-worker", pins.stagesPerWorker,
                "that are powers of two and " + atMostLayers, powers),
        // A program with the losses of more micro-batches than this cannot be
        // compiled.
        errorOf("micro-batches", pins.microBatches,
                "that divide " + theBatch + " and are at most 65535",
                upTo(UINT16_MAX, plan::divisorsOf(batch))),
        errorOf("micro-batch-size", pins.microBatchSizes,
                "that divides " + theBatch, plan::divisorsOf(batch))})
    if (!error.empty())
      return error;
  return {};
}

} // namespace chimera
