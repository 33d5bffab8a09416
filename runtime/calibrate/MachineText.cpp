//===- MachineText.cpp - A calibration as text ----------------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/MachineText.h"

#include "runtime/program/Program.h"

#include <cmath>
#include <cstdio>

using namespace chimera;
using namespace chimera::runtime;

namespace {
std::string number(const char *format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

/// A rate as text, such as "12.3 GB/s". The text is always a whole number of
/// bytes or operations per second.
std::string perSecond(double value, const char *unit) {
  std::string digits =
      number(value < 1e10 ? "%.3f" : "%.1f", std::max(value, 1e6) * 1e-9);
  return digits + " G" + unit + "/s";
}

std::string bytesText(uint64_t bytes) {
  return bytes < 1024        ? std::to_string(bytes) + " B"
         : bytes < (1 << 20) ? std::to_string(bytes >> 10) + " KiB"
                             : std::to_string(bytes >> 20) + " MiB";
}

std::string percent(double part) {
  return number("%.0f", std::ceil(part * 100)) + " %";
}

/// A clause of a chimera.machine that describes the network `name`.
class Network {
public:
  explicit Network(const std::string &name) : begin("\n    " + name + " <") {}

  /// Adds a row with the coefficients of `line` that are not 0.
  void add(const std::string &latency, const std::string &perMib,
           const Line &line) {
    std::string row;
    for (const auto &[what, nanoseconds] :
         {std::pair(latency, line.base), {perMib, line.perByte * kMiB}})
      if (const long long whole = std::llround(nanoseconds); whole > 0)
        row += (row.empty() ? "" : ", ") + what + " = " +
               std::to_string(whole) + " ns";
    if (!row.empty())
      rows += (rows.empty() ? "" : ",\n" + std::string(begin.size() - 1, ' ')) +
              row;
  }

  /// The clause; empty if there are no rows.
  std::string clause() const { return rows.empty() ? "" : begin + rows + ">"; }

private:
  const std::string begin;
  std::string rows;
};

/// The clauses of a chimera.machine for messages and all-reduces. `link` and
/// `allReduce` are the names of the two clauses.
std::string clausesOf(const LinkTimes &links, const std::string &link,
                      const std::string &allReduce) {
  Network messages(link), sums(allReduce);
  messages.add("latency", "per_mib", links.transit);
  messages.add("send", "send_per_mib", links.send);
  messages.add("receive", "receive_per_mib", links.receive);
  sums.add("latency", "per_mib", links.sum.message);
  return messages.clause() + sums.clause();
}

/// A text such as "an all-reduce of 8 B takes 12.3 us (line: 14.5 us)".
std::string smallestText(const SumLine &sum) {
  return "an all-reduce of " + bytesText(sum.smallest.bytes) + " takes " +
         number("%.1f", sum.smallest.nanoseconds * 1e-3) +
         " us (line: " + number("%.1f", sum.smallestByLine * 1e-3) + " us)";
}

/// Comment text: the largest relative error of each fitted line, and the time
/// of the smallest all-reduce.
std::string offText(const LinkTimes &links) {
  return percent(links.send.residual) + " (send), " +
         percent(links.transit.residual) + " (way), " +
         percent(links.receive.residual) + " (receive), together " +
         percent(links.residual) + ".\n// All-reduces of " +
         bytesText(kLeastGradient) + " and more: at most " +
         percent(links.sum.message.residual) + ";\n// " +
         smallestText(links.sum) + ".\n";
}

/// Comment lines about the links of several hosts.
std::string linksText(const Hosts &hosts) {
  if (hosts.haveNodeLinks())
    return "// " + program::countWithNoun(hosts.count, "host") + " with " +
           program::countWithNoun(hosts.ranksOnEach, "rank") +
           " each: link is between hosts, node_link within\n"
           "// them; all_reduce is over all ranks, node_all_reduce over the "
           "ranks of each\n"
           "// host, on all hosts at the same time.\n";
  if (hosts.count > 1 && hosts.ranksOnEach == 0)
    return "// " + program::countWithNoun(hosts.count, "host") +
           " with different numbers of ranks, or with ranks that are not\n"
           "// consecutive: link and all_reduce mix messages within and "
           "between hosts.\n";
  return "";
}

/// Comment lines about ranks that share cores or devices. Empty if no ranks do.
std::string sharingText(const Hosts &hosts) {
  if (hosts.ranksOnDevice > 1)
    return "// Up to " + std::to_string(hosts.ranksOnDevice) +
           " ranks share a GPU: memory is the share of one rank, and the "
           "speeds\n"
           "// below are of one rank while all compute.\n";
  if (!hosts.shareCores)
    return "";
  if (hosts.concurrentRanks == 0)
    return "// Ranks share cores, and hosts have different numbers of ranks, "
           "cores or threads, or\n"
           "// ranks that are not consecutive: so there is no node_cores, and "
           "the speeds below\n"
           "// are of ranks that share cores.\n";
  return "// The " + std::to_string(hosts.ranksOnEach) +
         " ranks of a host share its cores, which are enough for " +
         program::countWithNoun(hosts.concurrentRanks, "rank") +
         " (node_cores):\n"
         "// the speeds below are the measured means times " +
         number("%.3g", hosts.speedup()) +
         ", for a rank that computes while no others do.\n";
}
/// Whether computation hides less than half of an all-reduce. A machine can
/// only say that computation hides all-reduces or that it does not.
bool sumsBlock(const Calibration &found) {
  return found.hiddenSum && *found.hiddenSum < 0.5;
}

/// A text such as "7 % of an all-reduce: blocking_all_reduce".
std::string hiddenText(const Calibration &found) {
  return number("%.0f", *found.hiddenSum * 100) +
         " % of an all-reduce: " + (sumsBlock(found) ? "" : "no ") +
         "blocking_all_reduce";
}
} // namespace

std::string chimera::runtime::machineText(const Calibration &found,
                                          const std::string &where) {
  const Hosts &hosts = found.hosts;
  std::string text =
      "// Measured by chimera-run --calibrate in " +
      number("%.0f", found.seconds) + " s:\n// " +
      program::countWithNoun(found.ranks, "rank") + ", " + where +
      ".\n"
      "//\n"
      "// Messages of 8 B to " +
      bytesText(found.largestMessage) +
      " between neighbours, all-reduces of 8 B to " +
      bytesText(found.largestSum) + " over all ranks.\n" + linksText(hosts) +
      (hosts.ranksOnDevice > 0
           ? "// Times are of the GPUs' queues, without the hosts' time to "
             "post.\n"
           : "") +
      "// Speed and memory bandwidth are of blocks of a GPT-2 of width " +
      std::to_string(found.sizes.width) +
      " and\n"
      "// of AdamW, in float32, while all ranks compute: " +
      perSecond(found.least.flopsPerSecond, "FLOP") + " to\n// " +
      perSecond(found.most.flopsPerSecond, "FLOP") + ", " +
      perSecond(found.least.bytesPerSecond, "B") + " to " +
      perSecond(found.most.bytesPerSecond, "B") + " a rank.\n" +
      sharingText(hosts) +
      "//\n"
      "// Largest errors of the lines (medians to lines, relative to the whole "
      "message):\n// " +
      offText(found.links);
  if (found.hostLinks)
    text += "// Within hosts: " + offText(*found.hostLinks);
  if (found.hiddenSum)
    text += "// Computation hides " + hiddenText(found) + ".\n";
  if (found.clockError > 0)
    text += "// Clocks of the hosts differ by at most " +
            number("%.1f", static_cast<double>(found.clockError) * 1e-3) +
            " us after correction; messages are means of both directions.\n";
  text += "chimera.machine @here devices(" + std::to_string(found.ranks) +
          ") memory(" + std::to_string(hosts.memory >> 20) +
          " MiB)\n    speed(\"" +
          perSecond(found.mean.flopsPerSecond * hosts.speedup(), "FLOP") +
          "\") memory_bandwidth(\"" +
          perSecond(found.mean.bytesPerSecond * hosts.speedup(), "B") + "\")";
  text += clausesOf(found.links, "link", "all_reduce");
  if (found.hostLinks || hosts.concurrentRanks > 0)
    text += "\n    node_devices(" + std::to_string(hosts.ranksOnEach) + ")";
  if (hosts.concurrentRanks > 0)
    text += " node_cores(" + std::to_string(hosts.concurrentRanks) + ")";
  if (found.hostLinks)
    text += clausesOf(*found.hostLinks, "node_link", "node_all_reduce");
  if (sumsBlock(found))
    text += "\n    blocking_all_reduce";
  return text + "\n";
}

/// The rows of a table for one kind of link.
static std::string linkRows(const LinkTimes &links) {
  std::string rows;
  for (const auto &[name, line] :
       {std::pair("message: sender", &links.send),
        {"message: way", &links.transit},
        {"message: receiver", &links.receive},
        {"all-reduce's message", &links.sum.message}}) {
    char row[128];
    std::snprintf(row, sizeof(row), "%-20s %8.2f %13.2f %16s\n", name,
                  line->base * 1e-3, line->perByte * kMiB * 1e-3,
                  percent(line->residual).c_str());
    rows += row;
  }
  return rows + "a whole message is off by at most " + percent(links.residual) +
         "\n" + smallestText(links.sum) + "\n";
}

std::string chimera::runtime::machineTable(const Calibration &found) {
  const Hosts &hosts = found.hosts;
  std::string table =
      "                     each, us   per MiB, us   off by at most\n";
  if (found.hostLinks)
    table += "between hosts\n" + linkRows(found.links) + "within a host\n" +
             linkRows(*found.hostLinks);
  else
    table += linkRows(found.links);
  auto add = [&](const char *name, double mean, double least, double most,
                 const char *unit) {
    table += std::string(name) + perSecond(mean, unit) + " (" +
             perSecond(least, unit) + " to " + perSecond(most, unit) +
             ") a rank\n";
  };
  add("layers reach         ", found.mean.flopsPerSecond,
      found.least.flopsPerSecond, found.most.flopsPerSecond, "FLOP");
  add("updates move         ", found.mean.bytesPerSecond,
      found.least.bytesPerSecond, found.most.bytesPerSecond, "B");
  if (found.hiddenSum)
    table += "computation hides    " + hiddenText(found) + "\n";
  if (hosts.concurrentRanks > 0)
    table += "alone, a rank is     " + number("%.3g", hosts.speedup()) +
             " times as fast: " + std::to_string(hosts.ranksOnEach) +
             " ranks share cores for " + std::to_string(hosts.concurrentRanks) +
             "\n";
  return table + "memory               " + std::to_string(hosts.memory >> 20) +
         " MiB a rank\n";
}
