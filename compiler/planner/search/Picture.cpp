//===- Picture.cpp - Time against memory ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/search/AnswerFormats.h"
#include "compiler/schedule/text/Magnitude.h"
#include "compiler/schedule/text/SvgText.h"
#include "runtime/program/Program.h"

#include <algorithm>
#include <cmath>

namespace chimera::plan {

using schedule::escapeXml;
using schedule::svgNumber;

namespace {

// Lengths in pixels.
constexpr double kWidth = 640, kHeight = 400; ///< of the plot
constexpr double kLeft = 84, kTop = 62, kRight = 190, kBottom = 54;
constexpr double kLine = 17; ///< height of a line of the legend

/// Colours that can also be told apart without hue.
constexpr const char *kColours[] = {"#2b6cb0", "#c05621", "#2f855a", "#6b46c1",
                                    "#b7791f", "#111111", "#d53f8c", "#718096"};

const schedule::TimeScale &nanoseconds() {
  static const schedule::TimeScale kScale{schedule::findTimeUnit("ns"), 1};
  return kScale;
}

/// The distance between marks of the time axis: 1, 2 or 5 times a power of ten,
/// for about five marks.
double timeMark(double range) {
  double power = std::pow(10, std::floor(std::log10(range / 5)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= range / 5)
      return factor * power;
  return 10 * power;
}

/// The distance between marks of the byte axis: a power of two, for four to
/// eight marks.
double bytesMark(double range) {
  return std::exp2(std::floor(std::log2(range / 4)));
}

class Picture {
public:
  Picture(const Question &question, const Answer &answer)
      : question(question), answer(answer) {
    least = most = answer.ranked.front().stepTime;
    for (const Proposal &proposal : answer.simulated)
      least = std::min(least, proposal.stepTime);
    // Leave out plans that are far slower than the fastest: they would leave no
    // room for the others.
    for (const Proposal &proposal : answer.simulated)
      if (proposal.stepTime <= 2.5 * least)
        most = std::max(most, proposal.stepTime);
    // If all plans need far less than the memory of a device, leave out the
    // line that marks this memory: it would leave no room for the plans.
    const auto memory = static_cast<double>(question.machine.memory);
    double held = 1;
    for (const Proposal &proposal : answer.simulated)
      if (proposal.stepTime <= most)
        held = std::max(held, static_cast<double>(proposal.peakBytes));
    hasLimit = held > memory / 2;
    bytes = hasLimit ? memory : 1.1 * held;
    double room = std::max((most - least) * 0.03, least * 0.001);
    least -= room;
    most += room;
  }

  std::string draw() const {
    double width = kLeft + kWidth + kRight, height = kTop + kHeight + kBottom;
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                      svgNumber(width) + "\" height=\"" + svgNumber(height) +
                      "\" font-family=\"sans-serif\" "
                      "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" "
                      "fill=\"white\"/>\n";
    svg += text(kLeft, 24, "start", title(), 14);
    svg += text(kLeft, 42, "start",
                "each dot is a plan; the line joins the plans that no other "
                "plan beats in both time and memory");
    return svg + axes() + dots() + front() + legend() + "</svg>\n";
  }

private:
  double x(double step) const {
    return kLeft + kWidth * (step - least) / (most - least);
  }
  double y(double held) const { return kTop + kHeight * (1 - held / bytes); }

  static std::string text(double x, double y, const char *anchor,
                          const std::string &content, int size = 11) {
    return "<text x=\"" + svgNumber(x) + "\" y=\"" + svgNumber(y) +
           "\" text-anchor=\"" + anchor + "\" font-size=\"" +
           std::to_string(size) + "\">" + escapeXml(content) + "</text>\n";
  }
  static std::string line(double x1, double y1, double x2, double y2,
                          const char *colour) {
    return "<line x1=\"" + svgNumber(x1) + "\" y1=\"" + svgNumber(y1) +
           "\" x2=\"" + svgNumber(x2) + "\" y2=\"" + svgNumber(y2) +
           "\" stroke=\"" + colour + "\"/>\n";
  }

  std::string title() const {
    return program::countWithNoun(question.batch, "sample") + " a step on " +
           program::countWithNoun(question.machine.devices, "device") + " of " +
           schedule::shortBytes(question.machine.memory);
  }

  std::string axes() const {
    std::string svg;
    double step = timeMark(most - least);
    for (double at = std::ceil(least / step) * step; at <= most; at += step)
      svg += line(x(at), kTop, x(at), kTop + kHeight, "#e2e8f0") +
             text(x(at), kTop + kHeight + 16, "middle",
                  schedule::roundedTime(at, nanoseconds()));
    double each = bytesMark(bytes);
    for (double at = 0; at <= bytes; at += each)
      svg += line(kLeft, y(at), kLeft + kWidth, y(at), "#e2e8f0") +
             text(kLeft - 6, y(at) + 4, "end",
                  schedule::shortBytes(static_cast<int64_t>(at)));
    if (hasLimit)
      svg += line(kLeft, y(bytes), kLeft + kWidth, y(bytes), "#c53030") +
             text(kLeft + kWidth, y(bytes) - 5, "end", "memory of a device");
    svg += text(kLeft + kWidth / 2, kTop + kHeight + 38, "middle",
                "time of a step");
    return svg;
  }

  const char *colourOf(const schedule::Scheme *scheme) const {
    auto place = std::ranges::find(
        answer.ofSchemes, scheme,
        [](const Proposal &proposal) { return proposal.choice.scheme; });
    return kColours[static_cast<size_t>(place - answer.ofSchemes.begin()) %
                    std::size(kColours)];
  }

  std::string dots() const {
    std::string svg;
    for (const Proposal &proposal : answer.simulated)
      if (proposal.stepTime <= most)
        svg +=
            "<circle cx=\"" + svgNumber(x(proposal.stepTime)) + "\" cy=\"" +
            svgNumber(y(static_cast<double>(proposal.peakBytes))) +
            "\" r=\"3\" fill-opacity=\"0.55\" fill=\"" +
            colourOf(proposal.choice.scheme) + "\"><title>" +
            escapeXml(nameOf(proposal.choice) + ": " +
                      schedule::roundedTime(proposal.stepTime, nanoseconds()) +
                      ", " + schedule::shortBytes(proposal.peakBytes)) +
            "</title></circle>\n";
    return svg;
  }

  /// The Pareto front as a staircase: the plans that no other plan beats in
  /// both time and memory.
  std::string front() const {
    std::vector<std::pair<double, int64_t>> all;
    for (const Proposal &proposal : answer.simulated)
      if (proposal.stepTime <= most)
        all.emplace_back(proposal.stepTime, proposal.peakBytes);
    std::ranges::sort(all);
    std::string points;
    int64_t smallest = INT64_MAX;
    for (auto [step, held] : all) {
      if (held >= smallest)
        continue;
      auto add = [&](int64_t at) {
        points += svgNumber(x(step)) + "," +
                  svgNumber(y(static_cast<double>(at))) + " ";
      };
      if (smallest != INT64_MAX)
        add(smallest);
      add(held);
      smallest = held;
    }
    return "<polyline fill=\"none\" stroke=\"#1a202c\" points=\"" + points +
           "\"/>\n";
  }

  std::string legend() const {
    std::string svg;
    double at = kTop + 6;
    for (const Proposal &best : answer.ofSchemes) {
      svg += "<circle cx=\"" + svgNumber(kLeft + kWidth + 18) + "\" cy=\"" +
             svgNumber(at) + "\" r=\"4\" fill=\"" +
             colourOf(best.choice.scheme) + "\"/>\n" +
             text(kLeft + kWidth + 28, at + 4, "start",
                  best.choice.scheme->name + std::string(" ") +
                      schedule::roundedTime(best.stepTime, nanoseconds()));
      at += kLine;
    }
    return svg;
  }

  const Question &question;
  const Answer &answer;
  double least, most; ///< step times in ns at the ends of the axis
  double bytes;       ///< bytes at the end of the axis
  bool hasLimit;      ///< whether `bytes` is the memory of a device
};

} // namespace

std::string pictureOf(const Question &question, const Answer &answer) {
  return Picture(question, answer).draw();
}

} // namespace chimera::plan
