//===- Attributes.cpp - Attributes of the chimera dialect -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/Chimera.h"
#include "dialect/Decimal.h"
#include "dialect/NumberFields.h"
#include "dialect/Spelling.h"

#include <limits>

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

#include "dialect/Enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Attributes.cpp.inc"

namespace chimera {

namespace {

/// A number of an attribute, with its name, and the function that prints it.
struct NamedNumber {
  StringRef name;
  int64_t value;
  function_ref<std::string(int64_t)> textOf;
};

/// Prints the first `required` numbers, and all others that are not 0.
void printNumbers(AsmPrinter &printer, ArrayRef<NamedNumber> numbers,
                  size_t required) {
  StringRef separator = "<";
  for (auto [i, number] : llvm::enumerate(numbers))
    if (i < required || number.value != 0) {
      printer << separator << number.name << " = "
              << number.textOf(number.value);
      separator = ", ";
    }
  printer << (separator == "<" ? "<>" : ">");
}

/// "3.1 ms" or "5 ns"; "5" or "0.5" if the attribute has no units.
template <typename Attribute>
std::string timeText(const Attribute &of, int64_t time) {
  std::string text = of.getHasUnits() ? quantityText(Dimension::Time, time)
                                      : textOf(Decimal(time, of.getPlaces()));
  return of.getHasUnits() && time != 0 && llvm::isDigit(text.back())
             ? text + " ns"
             : text;
}

/// Parses the times of an attribute. Either all times have units or none has.
/// If they have no units, they may have fractions.
class TimeFields {
public:
  explicit TimeFields(AsmParser &parser)
      : parser(parser), at(parser.getCurrentLocation()) {}

  void add(StringRef name, int64_t &time, bool required = false) {
    times.push_back({name, &time, required, Dimension::Time});
  }
  /// Like add, for a time that may be divided into two halves. If the times
  /// have fractions, its half is a whole number of ticks.
  void addDivisible(StringRef name, int64_t &time) {
    divisible = times.size();
    add(name, time, /*required=*/true);
  }
  /// Adds a rate in bytes per second.
  void addRate(StringRef name, int64_t &rate) {
    rates.push_back({name, &rate, false, Dimension::BytesPerSecond});
  }

  ParseResult parse() {
    SmallVector<bool> units(times.size() + rates.size(), false);
    SmallVector<uint32_t> placesOf(times.size(), 0);
    for (auto [field, its] : llvm::zip_equal(times, placesOf))
      field.places = &its;
    SmallVector<NumberField> all = times;
    all.append(rates);
    for (auto [field, hasUnit] : llvm::zip_equal(all, units))
      field.hasUnit = &hasUnit;
    if (parseNumberFields(parser, all))
      return failure();
    haveUnits = llvm::is_contained(units, true);
    for (size_t i = 0; haveUnits && i < times.size(); ++i)
      if (*times[i].value != 0 && !units[i])
        return parser.emitError(at, "expected units on all times or on none, "
                                    "got ")
               << times[i].name << " = "
               << textOf(Decimal(*times[i].value, placesOf[i]));
    places = *llvm::max_element(placesOf);
    if (places > 0 && divisible && placesOf[*divisible] == places &&
        *times[*divisible].value % 2 != 0)
      ++places;
    for (auto [field, its] : llvm::zip_equal(times, placesOf)) {
      int64_t finer = 0;
      if (places > kMostPlaces ||
          llvm::MulOverflow(*field.value, powerOfTen(places - its), finer))
        return parser.emitError(at, "expected times of fewer digits, and at "
                                    "most ")
               << kMostPlaces << " of them after the point, got " << field.name
               << " = " << textOf(Decimal(*field.value, its));
      *field.value = finer;
    }
    return success();
  }

  bool haveUnits = false;
  /// The times are the parsed values × 10^-places.
  uint32_t places = 0;

private:
  /// The most decimal places, one of which may be for halves.
  static constexpr uint32_t kMostPlaces = 10;

  AsmParser &parser;
  SMLoc at;
  SmallVector<NumberField> times, rates;
  std::optional<size_t> divisible; ///< its index in `times`
};

} // namespace

Attribute CostAttr::parse(AsmParser &parser, Type) {
  SMLoc at = parser.getCurrentLocation();
  int64_t forward = 0, backward = 0, inputGradient = 0, weightGradient = 0,
          recompute = 0, update = 0, pairedForward = 0,
          joinedWeightGradient = 0;
  TimeFields fields(parser);
  fields.add("forward", forward, /*required=*/true);
  fields.addDivisible("backward", backward);
  fields.add("input_gradient", inputGradient);
  fields.add("weight_gradient", weightGradient);
  fields.add("recompute", recompute);
  fields.add("update", update);
  fields.add("paired_forward", pairedForward);
  fields.add("joined_weight_gradient", joinedWeightGradient);
  if (fields.parse())
    return {};
  return parser.getChecked<CostAttr>(
      at, parser.getContext(), forward, backward, inputGradient, weightGradient,
      recompute, update, pairedForward, joinedWeightGradient, fields.haveUnits,
      fields.places);
}

void CostAttr::print(AsmPrinter &printer) const {
  auto time = [&](int64_t value) { return timeText(*this, value); };
  printNumbers(printer,
               {{"forward", getForward(), time},
                {"backward", getBackward(), time},
                {"input_gradient", getInputGradient(), time},
                {"weight_gradient", getWeightGradient(), time},
                {"recompute", getRecompute(), time},
                {"update", getUpdate(), time},
                {"paired_forward", getPairedForward(), time},
                {"joined_weight_gradient", getJoinedWeightGradient(), time}},
               /*required=*/2);
}

Attribute BytesAttr::parse(AsmParser &parser, Type) {
  SMLoc at = parser.getCurrentLocation();
  int64_t weights = 0, optimizer = 0, stash = 0, boundary = 0, copy = 0,
          weightStash = 0;
  auto field = [](StringRef name, int64_t &bytes, bool required = false) {
    return NumberField{name, &bytes, required, Dimension::Bytes};
  };
  if (parseNumberFields(
          parser,
          {field("weights", weights, true), field("optimizer", optimizer, true),
           field("stash", stash, true), field("boundary", boundary, true),
           field("copy", copy), field("weight_stash", weightStash)}))
    return {};
  return parser.getChecked<BytesAttr>(at, parser.getContext(), weights,
                                      optimizer, stash, boundary, copy,
                                      weightStash);
}

void BytesAttr::print(AsmPrinter &printer) const {
  auto size = [](int64_t value) { return std::to_string(value); };
  printNumbers(printer,
               {{"weights", getWeights(), size},
                {"optimizer", getOptimizer(), size},
                {"stash", getStash(), size},
                {"boundary", getBoundary(), size},
                {"copy", getCopy(), size},
                {"weight_stash", getWeightStash(), size}},
               /*required=*/4);
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
                   {"boundary", &boundary, false, Dimension::Bytes}}))
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
  if (getBoundary() != 0)
    printer << ", boundary = " << quantityText(Dimension::Bytes, getBoundary());
  printer << '>';
}

LogicalResult LayerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t forward, int64_t parameters,
                                int64_t stash, int64_t boundary, int64_t count,
                                int64_t backward, int64_t weightStash) {
  const std::tuple<StringRef, int64_t, int64_t> all[] = {
      {"count", count, 1},       {"forward", forward, 1},
      {"backward", backward, 0}, {"parameters", parameters, 1},
      {"stash", stash, 1},       {"weight_stash", weightStash, 0},
      {"boundary", boundary, 0}};
  for (auto [name, value, least] : all)
    if (value < least)
      return emitError() << "expected " << name << " of at least " << least
                         << ", got " << value;
  if (count > UINT16_MAX)
    return emitError() << "expected at most " << UINT16_MAX
                       << " layers, got count " << count;
  return success();
}

/// The time for 2^20 bytes: `nanoseconds`, or, if a bandwidth in bytes per
/// second is given, the nanoseconds that follow from it, rounded up.
static int64_t timeOfMebibyte(int64_t nanoseconds, int64_t bandwidth) {
  if (bandwidth == 0)
    return nanoseconds;
  __extension__ using Wide = __int128;
  Wide product = static_cast<Wide>(1000000000) << 20;
  return static_cast<int64_t>((product + bandwidth - 1) / bandwidth);
}

int64_t LinkAttr::timePerMib() const {
  return timeOfMebibyte(getPerMib(), getBandwidth());
}

int64_t LinkAttr::sendTimePerMib() const {
  return timeOfMebibyte(getSendPerMib(), getSendBandwidth());
}

int64_t LinkAttr::receiveTimePerMib() const {
  return timeOfMebibyte(getReceivePerMib(), getReceiveBandwidth());
}

Attribute LinkAttr::parse(AsmParser &parser, Type) {
  constexpr StringRef kNames[] = {"latency",      "per_mib", "send",
                                  "send_per_mib", "receive", "receive_per_mib"};
  constexpr StringRef kRates[] = {"bandwidth", "send_bandwidth",
                                  "receive_bandwidth"};
  constexpr int64_t kAbsent = std::numeric_limits<int64_t>::min();
  SMLoc at = parser.getCurrentLocation();
  int64_t v[6] = {}, rates[3] = {kAbsent, kAbsent, kAbsent};
  TimeFields fields(parser);
  for (size_t i = 0; i < std::size(v); ++i)
    fields.add(kNames[i], v[i]);
  for (size_t i = 0; i < std::size(rates); ++i)
    fields.addRate(kRates[i], rates[i]);
  if (fields.parse())
    return {};
  bool hasRate = false;
  for (size_t i = 0; i < std::size(rates); ++i) {
    if (rates[i] == kAbsent) {
      rates[i] = 0;
      continue;
    }
    if (rates[i] < 1) {
      parser.emitError(at, "expected either ")
          << kRates[i] << " (above 0) or " << kNames[2 * i + 1];
      return {};
    }
    hasRate = true;
  }
  if (hasRate && fields.places > 0) {
    parser.emitError(at, "expected times with units beside a bandwidth, such "
                         "as 0.5 us, got a fraction without a unit");
    return {};
  }
  return parser.getChecked<LinkAttr>(
      at, parser.getContext(), v[0], v[1], v[2], v[3], v[4], v[5], rates[0],
      rates[1], rates[2], fields.haveUnits || hasRate, fields.places);
}

void LinkAttr::print(AsmPrinter &printer) const {
  auto time = [&](int64_t value) { return timeText(*this, value); };
  auto rate = [](int64_t value) {
    return quantityText(Dimension::BytesPerSecond, value);
  };
  printNumbers(printer,
               {{"latency", getLatency(), time},
                {"per_mib", getPerMib(), time},
                {"bandwidth", getBandwidth(), rate},
                {"send", getSend(), time},
                {"send_per_mib", getSendPerMib(), time},
                {"send_bandwidth", getSendBandwidth(), rate},
                {"receive", getReceive(), time},
                {"receive_per_mib", getReceivePerMib(), time},
                {"receive_bandwidth", getReceiveBandwidth(), rate}},
               /*required=*/0);
}

LogicalResult CostAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t forward, int64_t backward,
                               int64_t inputGradient, int64_t weightGradient,
                               int64_t recompute, int64_t update,
                               int64_t pairedForward,
                               int64_t joinedWeightGradient, bool,
                               uint32_t places) {
  auto text = [&](int64_t time) { return textOf(Decimal(time, places)); };
  if (forward < 1 || backward < 1)
    return emitError() << "expected positive costs, got forward "
                       << text(forward) << " and backward " << text(backward);
  if (inputGradient < 0 || weightGradient < 0)
    return emitError() << "expected costs of at least 0, got input_gradient "
                       << text(inputGradient) << " and weight_gradient "
                       << text(weightGradient);
  if (recompute < 0)
    return emitError() << "expected a cost of at least 0, got recompute "
                       << text(recompute);
  if (update < 0)
    return emitError() << "expected a cost of at least 0, got update "
                       << text(update);
  if (pairedForward < 0)
    return emitError() << "expected a cost of at least 0, got paired_forward "
                       << text(pairedForward);
  if (joinedWeightGradient < 0)
    return emitError()
           << "expected a cost of at least 0, got joined_weight_gradient "
           << text(joinedWeightGradient);
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
    return emitError()
           << "expected a copy of at least 0 and less than the weights' "
           << weights << " bytes, got " << copy;
  return success();
}

LogicalResult LinkAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t latency, int64_t perMib, int64_t send,
                               int64_t sendPerMib, int64_t receive,
                               int64_t receivePerMib, int64_t bandwidth,
                               int64_t sendBandwidth, int64_t receiveBandwidth,
                               bool, uint32_t places) {
  const std::pair<StringRef, int64_t> times[] = {
      {"latency", latency}, {"per_mib", perMib},
      {"send", send},       {"send_per_mib", sendPerMib},
      {"receive", receive}, {"receive_per_mib", receivePerMib}};
  for (auto [name, time] : times)
    if (time < 0)
      return emitError() << "expected times of at least 0, got " << name << " "
                         << textOf(Decimal(time, places));
  const std::tuple<StringRef, int64_t, StringRef, int64_t> rates[] = {
      {"bandwidth", bandwidth, "per_mib", perMib},
      {"send_bandwidth", sendBandwidth, "send_per_mib", sendPerMib},
      {"receive_bandwidth", receiveBandwidth, "receive_per_mib",
       receivePerMib}};
  for (auto [rateName, rate, timeName, time] : rates) {
    if (rate < 0)
      return emitError() << "expected bandwidths of at least 0, got "
                         << rateName << " " << rate;
    if (rate > 0 && time > 0)
      return emitError() << "expected either " << rateName << " (above 0) or "
                         << timeName << ", got both";
  }
  return success();
}

void ChimeraDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Attributes.cpp.inc"
      >();
}

} // namespace chimera
