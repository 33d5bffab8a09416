//===- Svg.cpp - A schedule as a picture ----------------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/Svg.h"

#include "compiler/schedule/Magnitude.h"
#include "compiler/schedule/Markup.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

namespace chimera::schedule {

namespace {

/// Of each kind, by its number: down boxes are dark with white text, up boxes
/// pale with dark text and a dark edge, so that they differ without colour too.
struct Style {
  const char *name, *dark, *pale;
};
constexpr std::array<Style, 5> kStyles = {{
    {"forward", "#2b6cb0", "#bcd9f5"},
    {"backward", "#c05621", "#fbd5b5"},
    {"input gradient", "#b7791f", "#fbe8ad"},
    {"weight gradient", "#2f855a", "#bfe6cd"},
    {"recompute", "#6b46c1", "#ddd0f7"},
}};

constexpr const char *kBody = "what each step repeats";
constexpr const char *kSum = "all-reduce under way";
constexpr const char *kWait = "wait for it";
constexpr const char *kUpdate = "update";

// Lengths in pixels.
constexpr double kMargin = 20;
constexpr double kHeader = 84; ///< title, summary and legend, a line each
constexpr double kTitleLine = 19, kNoteLine = 15; ///< each further line
constexpr double kLabels = 46;   ///< worker names, left of the rows
constexpr double kFigures = 122; ///< name, idle and peak, right of the rows
constexpr double kAxis = 44;
constexpr double kRow = 26, kBox = 22;
constexpr double kLeastPlot = 460;
/// The width of the shortest action where the plot is then at most kMost wide.
/// Else the plot is as wide as the words of all actions need, up to kWidest.
constexpr double kBoxWidth = 26;
constexpr double kMost = 3600, kWidest = 12000;
/// The least mean width of actions, however wide the plot then is.
constexpr double kLeastBox = 3;
/// The least distance of two marks of the axis.
constexpr double kMark = 46;
/// The width of an entry of the legend without its name, and of each character
/// of the name.
constexpr double kEntry = 46, kCharacter = 5.9;
/// Characters of the widest font that a viewer may have for titles and notes,
/// on average over words; none is more than twice as wide.
constexpr double kTitleCharacter = 8.8, kNoteCharacter = 6.2;
/// Widths of a digit, and the font sizes they belong to.
constexpr std::array<std::pair<double, const char *>, 2> kDigits = {
    {{6.7, "n"}, {4.6, "s"}}};

std::string text(const char *style, double x, double y,
                 const std::string &content) {
  return std::string("<text class=\"") + style + "\" x=\"" + number(x) +
         "\" y=\"" + number(y) + "\">" + escape(content) + "</text>\n";
}

/// Cuts the first `most` characters off `text`.
std::string takeCharacters(std::string &text, size_t most) {
  size_t end = 0;
  for (; end < text.size(); ++end)
    if ((text[end] & 0xc0) != 0x80 && most-- == 0)
      break;
  std::string taken = text.substr(0, end);
  text.erase(0, end);
  return taken;
}

/// `text` in lines of at most `most` characters, cut at blanks. A longer word
/// than half a line may have wide characters only, so it is cut too.
std::vector<std::string> wrap(std::string_view text, size_t most) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t used = lengthOf(lines.back());
    if (used > 0 && lengthOf(word) <= most / 2 &&
        used + 1 + lengthOf(word) <= most) {
      lines.back() += " " + word;
      continue;
    }
    if (used > 0)
      lines.emplace_back();
    while (lengthOf(word) > most / 2) {
      lines.back() = takeCharacters(word, most / 2);
      lines.emplace_back();
    }
    lines.back() = std::move(word);
  }
  return lines;
}

std::string classOf(size_t kind, bool up) {
  return std::string("k") + std::to_string(kind) + (up ? " u" : " d");
}

/// The least number of 1, 2 or 5 times a power of ten that is `least` or more.
/// Requires a `least` above 0.
double niceStep(double least) {
  double power = std::pow(10, std::floor(std::log10(least)));
  for (double digit : {1, 2, 5})
    // A hair less, as powers of ten below 1 are rounded.
    if (digit * power >= least * (1 - 1e-9))
      return digit * power;
  return 10 * power;
}

/// One timeline, its upper left corner at (0, 0).
class Panel {
public:
  explicit Panel(const Timeline &timeline)
      : timeline(timeline), timing(timeline.timing),
        workers(timeline.schedule.workers.size()) {
    int64_t shortest = timing.makespan;
    double legible = 0; // pixels a tick
    size_t most = 1;
    for (const std::vector<Action> &row : timeline.schedule.workers) {
      most = std::max(most, row.size());
      for (const Action &action : row) {
        int64_t duration = timeline.duration(action);
        shortest = std::min(shortest, duration);
        legible = std::max(legible, textWidth(action, kDigits.back().first) /
                                        static_cast<double>(duration));
        kinds.insert({static_cast<size_t>(action.kind), isUp(action)});
      }
    }
    auto makespan = static_cast<double>(timeline.end());
    double ideal = kBoxWidth * makespan / static_cast<double>(shortest);
    double least = std::max(kLeastPlot, kLeastBox * static_cast<double>(most));
    // A hair more, that rounding does not take it away again.
    double enough = std::min(legible * makespan * 1.0001, kWidest);
    plot = std::max({least, std::min(ideal, kMost), std::min(ideal, enough)});
    pixels = plot / makespan;
    auto linesOf = [&](const std::string &text, double character) {
      return wrap(text, static_cast<size_t>(width() / character));
    };
    title = linesOf(timeline.title, kTitleCharacter);
    note = linesOf(summary(), kNoteCharacter);
  }

  double width() const {
    double legend = entryWidth("bubble");
    if (!timeline.schedule.bodies.empty())
      legend += entryWidth(kBody);
    if (timeline.tail)
      legend += entryWidth(kSum) + entryWidth(kWait) + entryWidth(kUpdate);
    for (auto [kind, up] : kinds)
      legend += entryWidth(legendName(kind, up));
    return std::max(kLabels + plot + kFigures, legend);
  }
  double height() const {
    return header() + kRow * static_cast<double>(workers) + kAxis;
  }

  std::string draw() const {
    std::string svg = words() + legend();
    svg += "<g transform=\"translate(" + number(kLabels) + " " +
           number(header()) + ")\">\n";
    for (size_t w = 0; w < workers; ++w)
      svg += bubble(w);
    svg += axis();
    for (size_t w = 0; w < workers; ++w)
      svg += row(w);
    return svg + "</g>\n";
  }

private:
  bool isUp(const Action &action) const {
    return timeline.problem.pipelines[action.pipeline].up;
  }
  /// The width of the words of a box, with a margin.
  double textWidth(const Action &action, double digit) const {
    return 3 + digit * static_cast<double>(
                           coverOf(timeline.problem, action).size());
  }
  double at(int64_t ticks) const { return static_cast<double>(ticks) * pixels; }

  std::string exact(int64_t ticks) const {
    return exactNumber(ticks, timeline.scale.perUnit);
  }

  /// Its times are short: a row and a box say exact ones when pointed at.
  std::string summary() const {
    const TimeScale &scale = timeline.scale;
    std::string times =
        timeline.slots ? "one slot each"
                       : describeTimes(timeline.problem, scale, Digits::Short);
    std::string steps = describeSteps(timeline.problem, timeline.schedule,
                                      scale, Digits::Short);
    return "makespan " +
           shortTime(static_cast<double>(timing.makespan), scale) + " (" +
           times + ") · bubble " + percent(timing.bubbleRatio()) +
           " of the makespan" + (steps.empty() ? "" : " · " + steps) +
           (timeline.tail ? " · " + describeStep(timeline) : "");
  }

  double header() const {
    return kHeader + kTitleLine * static_cast<double>(title.size() - 1) +
           kNoteLine * static_cast<double>(note.size() - 1);
  }

  std::string words() const {
    std::string svg;
    double y = 14;
    for (const std::string &line : title) {
      svg += text("title", 0, y, line);
      y += kTitleLine;
    }
    for (const std::string &line : note) {
      svg += text("note", 0, y, line);
      y += kNoteLine;
    }
    return svg;
  }

  static std::string legendName(size_t kind, bool up) {
    return std::string(styleOf(kind).name) + (up ? ", up" : ", down");
  }
  static double entryWidth(const std::string &name) {
    return kEntry + kCharacter * static_cast<double>(name.size());
  }

  /// Only what the picture shows.
  std::string legend() const {
    std::string svg;
    double x = 0, y = header() - 38;
    auto entry = [&](const std::string &rect, const std::string &name) {
      svg += "<rect " + rect + " x=\"" + number(x + 0.5) + "\" y=\"" +
             number(y) + "\" width=\"22\" height=\"14\" rx=\"2\"/>\n" +
             text("note", x + 28, y + 11, name);
      x += entryWidth(name);
    };
    for (auto [kind, up] : kinds)
      entry("class=\"" + classOf(kind, up) + "\"", legendName(kind, up));
    entry("class=\"bubble\"", "bubble");
    if (!timeline.schedule.bodies.empty())
      entry("class=\"body\"", kBody);
    if (timeline.tail) {
      entry("class=\"sum\"", kSum);
      entry("class=\"wait\"", kWait);
      entry("class=\"update\"", kUpdate);
    }
    return svg;
  }

  /// The whole row, hatched: what no action covers is idle.
  std::string bubble(size_t w) const {
    double share = static_cast<double>(timing.idle[w]) /
                   static_cast<double>(timing.makespan);
    double y = kRow * static_cast<double>(w);
    return "<g><title>P" + std::to_string(w) + ": idle " +
           exact(timing.idle[w]) + " of " + exact(timing.makespan) + " (" +
           percent(share) + "), peak activations " +
           std::to_string(timing.peakActivations[w]) +
           "</title><rect class=\"bubble\" x=\"0\" y=\"" +
           number(y + (kRow - kBox) / 2) + "\" width=\"" + number(plot) +
           "\" height=\"" + number(kBox) + "\"/></g>\n" +
           text("worker", -10, y + kRow / 2 + 4, "P" + std::to_string(w)) +
           text("worker", plot + 32, y + kRow / 2 + 4,
                "P" + std::to_string(w)) +
           text("figure", plot + 78, y + kRow / 2 + 4, percent(share)) +
           text("figure", plot + 112, y + kRow / 2 + 4,
                std::to_string(timing.peakActivations[w]));
  }

  /// Lines through all rows; slots are named in their middle, times where they
  /// are.
  std::string axis() const {
    double bottom = kRow * static_cast<double>(workers);
    Magnitude magnitude{1, ""};
    if (!timeline.slots)
      magnitude =
          magnitudeOf(timeline.scale.units(static_cast<double>(timeline.end())),
                      *timeline.scale.unit);
    // From here on lengths of time are in the magnitude.
    double each =
        pixels * magnitude.units * static_cast<double>(timeline.scale.perUnit);
    double end = plot / each, tick = pixels / each;
    auto nameOf = [&](double time) {
      char digits[32];
      auto [last, error] = std::to_chars(digits, digits + sizeof digits, time,
                                         std::chars_format::general, 10);
      return std::string(digits, last);
    };
    auto marksOf = [&](double step) {
      return static_cast<int64_t>(end / step * (1 + 1e-9));
    };
    // Of the last two, one has as many digits as any other.
    auto widest = [&](double step) {
      auto last = static_cast<double>(marksOf(step));
      return static_cast<double>(
          std::max(nameOf(step * last).size(),
                   nameOf(step * std::max(last - 1, 0.0)).size()));
    };
    double step = niceStep(std::max(kMark / each, tick));
    while (step * each < 16 + kDigits[0].first * widest(step))
      step = niceStep(1.1 * step);
    if (timeline.slots && pixels >= 2 * kDigits[0].first + 6)
      step = 1;
    std::string svg;
    for (int64_t i = 0, last = marksOf(step); i <= last; ++i) {
      double time = static_cast<double>(i) * step;
      double x = std::min(time * each, plot);
      svg += "<path class=\"mark\" d=\"M" + number(x) + " 0V" +
             number(bottom + 5) + "\"/>\n";
      if (timeline.slots && time < end * (1 - 1e-9))
        svg += text("axis", x + pixels / 2, bottom + 18, nameOf(time));
      else if (!timeline.slots)
        svg += text("axis", x, bottom + 18, nameOf(time));
    }
    std::string name = timeline.slots           ? timeline.axis()
                       : magnitude.name.empty() ? "time"
                                                : "time in " + magnitude.name;
    return svg + text("axis", plot / 2, bottom + 34, name) +
           text("figure", plot + 78, -6, "idle") +
           text("figure", plot + 112, -6, "peak");
  }

  std::string row(size_t w) const {
    const std::vector<Action> &actions = timeline.schedule.workers[w];
    std::string svg =
        "<g transform=\"translate(0 " +
        number(kRow * static_cast<double>(w) + (kRow - kBox) / 2) + ")\">\n";
    for (size_t i = 0; i < actions.size(); ++i)
      svg += box(actions[i], w, timing.starts[w][i]);
    if (!timeline.schedule.bodies.empty())
      svg += body(w);
    if (timeline.tail)
      svg += tail(w);
    return svg + "</g>\n";
  }

  /// What a worker does behind its actions, and a line below for each sum of
  /// its gradients that is under way.
  std::string tail(size_t w) const {
    std::string svg;
    auto add = [&](const char *style, const std::string &name,
                   const Tail::Span &span, double top, double bottom) {
      svg += "<g><title>" + name + ", P" + std::to_string(w) + ", " +
             timeline.axis() + " " + exact(span.begin) + " to " +
             exact(span.end) + "</title><rect class=\"" + style + "\" x=\"" +
             number(at(span.begin)) + "\" y=\"" + number(top) + "\" width=\"" +
             number(at(span.end) - at(span.begin)) + "\" height=\"" +
             number(bottom - top) + "\"/></g>\n";
    };
    for (const Tail::Work &work : timeline.tail->work[w])
      if (work.isUpdate())
        add("update", "update of stage " + std::to_string(*work.stage), work, 0,
            kBox);
      else
        add("wait", "wait for " + nameOfSum(work.stage), work, 0, kBox);
    for (const Tail::Sum &sum : timeline.tail->sums)
      if (sum.end > sum.begin &&
          std::ranges::count(sum.workers, static_cast<int32_t>(w)) > 0)
        add("sum", nameOfSum(sum.stage), sum, kBox, kRow);
    return svg;
  }

  /// A line below what a worker repeats.
  std::string body(size_t w) const {
    auto [begin, end] = timeline.schedule.bodies[w];
    if (begin == end)
      return {};
    const Action &last = timeline.schedule.workers[w][end - 1];
    int64_t from = timing.starts[w][begin];
    int64_t to = timing.starts[w][end - 1] + timeline.duration(last);
    return "<rect class=\"body\" x=\"" + number(at(from)) + "\" y=\"" +
           number(kBox) + "\" width=\"" + number(at(to) - at(from)) +
           "\" height=\"" + number(kRow - kBox) + "\"/>\n";
  }

  std::string box(const Action &action, size_t w, int64_t start) const {
    int64_t duration = timeline.duration(action);
    // A hair between neighbours, as long as they are not hairs themselves.
    double width = at(duration), gap = width > 4 ? 1 : 0;
    auto kind = static_cast<size_t>(action.kind);
    std::string name = coverOf(timeline.problem, action);
    std::string svg =
        std::string("<g><title>") + styleOf(kind).name + " of " +
        coverInWords(action) + ", stage " + std::to_string(action.stage) +
        ", pipeline " + std::to_string(action.pipeline) +
        (isUp(action) ? " (up)" : " (down)") + ", P" + std::to_string(w) +
        ", " + timeline.axis() + " " + exact(start) +
        (timeline.slots ? "" : " to " + exact(start + duration)) +
        "</title><rect class=\"" + classOf(kind, isUp(action)) + "\" x=\"" +
        number(at(start) + gap / 2) + "\" width=\"" + number(width - gap) +
        "\" height=\"" + number(kBox) + "\"" + (gap > 0 ? " rx=\"2\"" : "") +
        "/>";
    for (auto [digit, size] : kDigits)
      if (textWidth(action, digit) <= width) {
        svg += std::string("<text class=\"") + size +
               (isUp(action) ? " p" : "") + "\" x=\"" +
               number(at(start) + width / 2) + "\" y=\"" +
               number(kBox / 2 + 4) + "\">" + name + "</text>";
        break;
      }
    return svg + "</g>\n";
  }

  static std::string coverInWords(const Action &action) {
    std::string first = std::to_string(action.microBatch);
    if (action.microBatches > 1)
      return "micro-batches " + first + " to " +
             std::to_string(action.microBatch + action.microBatches - 1);
    if (action.parts > 1)
      return "part " + std::to_string(action.part) + " of " +
             std::to_string(action.parts) + " of micro-batch " + first;
    return "micro-batch " + first;
  }

  static const Style &styleOf(size_t kind) {
    return kStyles[std::min(kind, kStyles.size() - 1)];
  }

  const Timeline &timeline;
  const Timing &timing;
  size_t workers;
  std::set<std::pair<size_t, bool>> kinds; ///< with true for up
  double plot, pixels;                     ///< in pixels; pixels a tick
  std::vector<std::string> title, note;    ///< lines
};

std::string styleSheet() {
  std::string css =
      "<style>\n"
      "text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;"
      "font-size:11px;fill:#2d3748}\n"
      ".title{font-size:15px;font-weight:bold}\n"
      ".worker,.figure{text-anchor:end}\n"
      ".worker{font-weight:bold}\n"
      ".figure,.axis{fill:#4a5568}\n"
      ".axis,.n,.s{text-anchor:middle}\n"
      ".n,.s{fill:#fff}\n"
      ".s{font-size:8px}\n"
      ".p{fill:#1a202c}\n"
      ".u{stroke-width:.8}\n"
      ".mark{stroke:#a0aec0;stroke-width:.6}\n"
      ".bubble{fill:url(#bubble)}\n"
      ".body,.update{fill:#1a202c}\n"
      ".sum{fill:#b83280}\n"
      ".wait{fill:#f6c6de}\n";
  for (size_t k = 0; k < kStyles.size(); ++k) {
    std::string name = ".k" + std::to_string(k);
    css += name + ".d{fill:" + kStyles[k].dark + "}\n" + name +
           ".u{fill:" + kStyles[k].pale + ";stroke:" + kStyles[k].dark + "}\n";
  }
  return css +
         "</style>\n<defs><pattern id=\"bubble\" width=\"6\" height=\"6\" "
         "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
         "<rect width=\"6\" height=\"6\" fill=\"#edf2f7\"/>"
         "<path d=\"M0 0V6\" stroke=\"#cbd5e0\" stroke-width=\"1.6\"/>"
         "</pattern></defs>\n";
}

} // namespace

std::string renderSvg(std::span<const Timeline> timelines) {
  double width = 0, height = kMargin;
  std::string body;
  for (const Timeline &timeline : timelines) {
    Panel panel(timeline);
    body += "<g transform=\"translate(" + number(kMargin) + " " +
            number(height) + ")\">\n" + panel.draw() + "</g>\n";
    width = std::max(width, panel.width());
    height += panel.height() + kMargin;
  }
  width += 2 * kMargin;
  std::string size = number(width) + "\" height=\"" + number(height);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"" +
         size + "\" viewBox=\"0 0 " + number(width) + " " + number(height) +
         "\">\n" + styleSheet() + "<rect width=\"" + size +
         "\" fill=\"#fff\"/>\n" + body + "</svg>\n";
}

} // namespace chimera::schedule
