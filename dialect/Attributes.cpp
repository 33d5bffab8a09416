//===- Attributes.cpp - Attributes of the chimera dialect -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"
#include "dialect/Spelling.h"

#include <limits>

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialect/Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Attributes.cpp.inc"

namespace chimera {

namespace {

/// What an attribute of numbers is written as: its parameters by name, of which
/// the first `required` must be given and the others are 0 unless they are.
template <size_t N> struct Fields {
  StringRef names[N];
  size_t required;

  ParseResult parse(AsmParser &parser, int64_t (&values)[N]) const {
    SmallVector<NumberField> fields;
    for (size_t i = 0; i < N; ++i)
      fields.push_back({names[i], &values[i], i < required});
    return parseNumberFields(parser, fields);
  }

  void print(AsmPrinter &printer, const int64_t (&values)[N]) const {
    StringRef separator = "<";
    for (size_t i = 0; i < N; ++i)
      if (i < required || values[i] != 0) {
        printer << separator << names[i] << " = " << values[i];
        separator = ", ";
      }
    printer << (separator == "<" ? "<>" : ">");
  }
};

constexpr Fields<6> kCostFields = {{"forward", "backward", "input_gradient",
                                    "weight_gradient", "recompute", "update"},
                                   2};
constexpr Fields<6> kBytesFields = {
    {"weights", "optimizer", "stash", "boundary", "copy", "weight_stash"}, 4};
constexpr Fields<6> kLinkFields = {{"latency", "latency_per_mib", "send",
                                    "send_per_mib", "receive",
                                    "receive_per_mib"},
                                   0};

} // namespace

Attribute CostAttr::parse(AsmParser &parser, Type) {
  SMLoc at = parser.getCurrentLocation();
  int64_t v[6] = {};
  if (kCostFields.parse(parser, v))
    return {};
  return parser.getChecked<CostAttr>(at, parser.getContext(), v[0], v[1], v[2],
                                     v[3], v[4], v[5]);
}

void CostAttr::print(AsmPrinter &printer) const {
  kCostFields.print(printer,
                    {getForward(), getBackward(), getInputGradient(),
                     getWeightGradient(), getRecompute(), getUpdate()});
}

Attribute BytesAttr::parse(AsmParser &parser, Type) {
  SMLoc at = parser.getCurrentLocation();
  int64_t v[6] = {};
  if (kBytesFields.parse(parser, v))
    return {};
  return parser.getChecked<BytesAttr>(at, parser.getContext(), v[0], v[1], v[2],
                                      v[3], v[4], v[5]);
}

void BytesAttr::print(AsmPrinter &printer) const {
  kBytesFields.print(printer, {getWeights(), getOptimizer(), getStash(),
                               getBoundary(), getCopy(), getWeightStash()});
}

Attribute LinkAttr::parse(AsmParser &parser, Type) {
  SMLoc at = parser.getCurrentLocation();
  int64_t v[6] = {};
  if (kLinkFields.parse(parser, v))
    return {};
  return parser.getChecked<LinkAttr>(at, parser.getContext(), v[0], v[1], v[2],
                                     v[3], v[4], v[5]);
}

void LinkAttr::print(AsmPrinter &printer) const {
  kLinkFields.print(printer,
                    {getLatency(), getLatencyPerMib(), getSend(),
                     getSendPerMib(), getReceive(), getReceivePerMib()});
}

Attribute LayerAttr::parse(AsmParser &parser, Type) {
  SMLoc at = parser.getCurrentLocation();
  int64_t count = 1, forward = 0, backward = 0, parameters = 0, stash = 0,
          weightStash = 0, boundary = 0;
  if (parseNumberFields(
          parser, {{"count", &count, false},
                   {"forward", &forward, true, Dimension::Flop},
                   {"backward", &backward, false, Dimension::Flop},
                   {"parameters", &parameters},
                   {"stash", &stash, true, Dimension::Bytes},
                   {"weight_stash", &weightStash, false, Dimension::Bytes},
                   {"boundary", &boundary, true, Dimension::Bytes}}))
    return {};
  return parser.getChecked<LayerAttr>(at, parser.getContext(), forward,
                                      parameters, stash, boundary, count,
                                      backward, weightStash);
}

void LayerAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (getCount() != 1)
    printer << "count = " << getCount() << ", ";
  printer << "forward = " << quantityText(Dimension::Flop, getForward());
  if (getBackward() != 0)
    printer << ", backward = " << quantityText(Dimension::Flop, getBackward());
  printer << ", parameters = " << getParameters()
          << ", stash = " << quantityText(Dimension::Bytes, getStash());
  if (getWeightStash() != 0)
    printer << ", weight_stash = "
            << quantityText(Dimension::Bytes, getWeightStash());
  printer << ", boundary = " << quantityText(Dimension::Bytes, getBoundary())
          << '>';
}

LogicalResult LayerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t forward, int64_t parameters,
                                int64_t stash, int64_t boundary, int64_t count,
                                int64_t backward, int64_t weightStash) {
  const std::tuple<StringRef, int64_t, int64_t> all[] = {
      {"count", count, 1},       {"forward", forward, 1},
      {"backward", backward, 0}, {"parameters", parameters, 1},
      {"stash", stash, 1},       {"weight_stash", weightStash, 0},
      {"boundary", boundary, 1}};
  for (auto [name, value, least] : all)
    if (value < least)
      return emitError() << "expected " << name << " of at least " << least
                         << ", got " << value;
  if (count > UINT16_MAX)
    return emitError() << "expected at most " << UINT16_MAX
                       << " layers, got count " << count;
  return success();
}

/// The time for 2^20 bytes, rounded up.
static int64_t timeOfMebibyte(int64_t bytesPerSecond) {
  __extension__ using Wide = __int128;
  Wide product = static_cast<Wide>(1000000000) << 20;
  return static_cast<int64_t>((product + bytesPerSecond - 1) / bytesPerSecond);
}

Attribute NetworkAttr::parse(AsmParser &parser, Type) {
  constexpr StringRef kNames[] = {"latency",      "per_mib", "send",
                                  "send_per_mib", "receive", "receive_per_mib"};
  constexpr StringRef kRates[] = {"bandwidth", "send_bandwidth",
                                  "receive_bandwidth"};
  SMLoc at = parser.getCurrentLocation();
  constexpr int64_t kAbsent = std::numeric_limits<int64_t>::min();
  int64_t v[6], rates[3];
  SmallVector<NumberField> fields;
  for (size_t i = 0; i < std::size(v); ++i) {
    v[i] = kAbsent;
    fields.push_back({kNames[i], &v[i], false, Dimension::Time});
  }
  for (size_t i = 0; i < std::size(rates); ++i) {
    rates[i] = kAbsent;
    fields.push_back({kRates[i], &rates[i], false, Dimension::BytesPerSecond});
  }
  if (parseNumberFields(parser, fields))
    return {};
  for (size_t i = 0; i < std::size(rates); ++i) {
    int64_t &time = v[2 * i + 1];
    if (rates[i] == kAbsent)
      continue;
    if (time != kAbsent || rates[i] < 1) {
      parser.emitError(at, "expected ")
          << kRates[i] << " above 0 or " << kNames[2 * i + 1]
          << (rates[i] < 1 ? "" : ", got both");
      return {};
    }
    time = timeOfMebibyte(rates[i]);
  }
  for (int64_t &value : v)
    value = value == kAbsent ? 0 : value;
  return parser.getChecked<NetworkAttr>(at, parser.getContext(), v[0], v[1],
                                        v[2], v[3], v[4], v[5]);
}

void NetworkAttr::print(AsmPrinter &printer) const {
  const std::pair<StringRef, int64_t> all[] = {
      {"latency", getLatency()}, {"per_mib", getPerMib()},
      {"send", getSend()},       {"send_per_mib", getSendPerMib()},
      {"receive", getReceive()}, {"receive_per_mib", getReceivePerMib()}};
  StringRef separator = "<";
  for (auto [name, value] : all)
    if (value != 0) {
      printer << separator << name << " = "
              << quantityText(Dimension::Time, value);
      separator = ", ";
    }
  printer << (separator == "<" ? "<>" : ">");
}

LogicalResult NetworkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  int64_t latency, int64_t perMib, int64_t send,
                                  int64_t sendPerMib, int64_t receive,
                                  int64_t receivePerMib) {
  if (int64_t least =
          std::min({latency, perMib, send, sendPerMib, receive, receivePerMib});
      least < 0)
    return emitError() << "expected times of at least 0, got " << least;
  return success();
}

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t forward, int64_t backward,
                               int64_t inputGradient, int64_t weightGradient,
                               int64_t recompute, int64_t update) {
  if (forward < 1 || backward < 1)
    return emitError() << "expected positive costs, got forward " << forward
                       << " and backward " << backward;
  if (inputGradient < 0 || weightGradient < 0)
    return emitError() << "expected positive costs, got input_gradient "
                       << inputGradient << " and weight_gradient "
                       << weightGradient;
  if (recompute < 0)
    return emitError() << "expected a positive cost, got recompute "
                       << recompute;
  if (update < 0)
    return emitError() << "expected a cost of at least 0, got update "
                       << update;
  return success();
}

int64_t CostAttr::inputGradientTime() const {
  return getInputGradient() > 0 ? getInputGradient() : (getBackward() + 1) / 2;
}

int64_t CostAttr::weightGradientTime() const {
  return getWeightGradient() > 0 ? getWeightGradient()
                                 : std::max<int64_t>(1, getBackward() / 2);
}

int64_t CostAttr::recomputeTime() const {
  return getRecompute() > 0 ? getRecompute() : getForward();
}

LogicalResult BytesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t weights, int64_t optimizer,
                                int64_t stash, int64_t boundary, int64_t copy,
                                int64_t weightStash) {
  if (weights < 1 || optimizer < 0 || stash < 1 || boundary < 1)
    return emitError()
           << "expected positive sizes, and an optimizer state of at "
              "least 0, got weights "
           << weights << ", optimizer " << optimizer << ", stash " << stash
           << " and boundary " << boundary;
  if (weightStash < 0)
    return emitError() << "expected a size of at least 0, got weight_stash "
                       << weightStash;
  if (copy < 0 || copy >= weights)
    return emitError() << "expected a copy that is a part of the weights' "
                       << weights << " bytes, got " << copy;
  return success();
}

LogicalResult LinkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t latency, int64_t latencyPerMib,
                               int64_t send, int64_t sendPerMib,
                               int64_t receive, int64_t receivePerMib) {
  const std::pair<StringRef, int64_t> times[] = {
      {"latency", latency}, {"latency_per_mib", latencyPerMib},
      {"send", send},       {"send_per_mib", sendPerMib},
      {"receive", receive}, {"receive_per_mib", receivePerMib}};
  for (auto [name, time] : times)
    if (time < 0)
      return emitError() << "expected times of at least 0, got " << name << " "
                         << time;
  return success();
}

void ChimeraDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Attributes.cpp.inc"
      >();
}

} // namespace chimera
