//===- StepRecord.cpp - The recorded numbers of a step --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/StepRecord.h"

#include <nlohmann/json.hpp>

using namespace chimera::runtime;
using Json = nlohmann::ordered_json;

namespace {
/// `value`, or null if it is zero.
Json unlessZero(uint64_t value) { return value ? Json(value) : Json(); }

Json orNull(const std::optional<double> &value) {
  return value ? Json(*value) : Json();
}

constexpr StepField kFields[] = {
    {"loss", "train/loss",
     [](const StepRecord &of) {
       return of.event.loss ? Json(of.event.loss->mean) : Json();
     }},
    {"learning_rate", "train/lr",
     [](const StepRecord &of) { return Json(of.event.learningRate); }},
    {"grad_norm", "train/grad_norm",
     [](const StepRecord &of) {
       return of.event.loss ? orNull(of.event.loss->gradientNorm) : Json();
     }},
    {"tokens_per_s", "train/tokens_per_second",
     [](const StepRecord &of) { return orNull(of.tokensPerSecond); }},
    {"samples_per_s", "train/samples_per_second",
     [](const StepRecord &of) { return orNull(of.samplesPerSecond); }},
    {"resident_bytes", "train/memory",
     [](const StepRecord &of) {
       return unlessZero(of.event.use.residentBytes);
     }},
    {"device_bytes", "train/device_memory",
     [](const StepRecord &of) { return unlessZero(of.event.use.deviceBytes); }},
    {"waiting", "train/waiting",
     [](const StepRecord &of) {
       return of.event.use.measured ? Json(of.event.use.waiting) : Json();
     }},
};
} // namespace

std::span<const StepField> chimera::runtime::stepFields() { return kFields; }
