//===- ReportFormats.cpp - Reports as table, CSV and JSON -----------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/schedule/report/ReportColumns.h"
#include "compiler/schedule/text/Magnitude.h"

#include <algorithm>
#include <array>

namespace chimera::schedule {

namespace {

using nlohmann::ordered_json;

/// Formats a number for people.
std::string formatNumber(const ordered_json &value, ReportForm form,
                         const TimeScale &scale) {
  if (form == ReportForm::Share && value.is_number_float())
    return percent(value.get<double>());
  if (form == ReportForm::Time && scale.unit->isDuration)
    return shortTime(value.get<double>() * static_cast<double>(scale.perUnit),
                     scale);
  if (form == ReportForm::Bytes)
    return shortBytes(value.get<int64_t>());
  return value.dump();
}

/// A value on one line. Strings of a list are separated by "; ". Numbers of a
/// list are separated by blanks or, if they have units, by ", ". An object is
/// written as "name = value, name = value".
std::string oneLine(const ordered_json &value,
                    ReportForm form = ReportForm::Plain,
                    const TimeScale &scale = {}) {
  std::string text;
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_number())
    return formatNumber(value, form, scale);
  if (value.is_object()) {
    for (const auto &[key, item] : value.items())
      text +=
          (text.empty() ? "" : ", ") + key + " = " + oneLine(item, form, scale);
    return text;
  }
  if (!value.is_array())
    return value.dump();
  std::vector<std::string> items;
  for (const ordered_json &item : value)
    items.push_back(oneLine(item, form, scale));
  // If numbers end with a blank and a unit, a comma must separate the items.
  bool isSpaced = std::ranges::any_of(items, [](const std::string &item) {
    return item.find(' ') < item.size();
  });
  const char *between = !value.empty() && value[0].is_string() ? "; "
                        : isSpaced                             ? ", "
                                                               : " ";
  for (const std::string &item : items)
    text += (&item == items.data() ? "" : between) + item;
  return text;
}

bool isEmpty(const ordered_json &value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

std::string renderTable(std::span<const Report> reports) {
  size_t width = 0;
  for (const ReportColumn &column : reportColumns())
    if (column.text)
      width = std::max(width, std::string_view(column.text).size());
  std::string text;
  for (const Report &report : reports) {
    if (!text.empty())
      text += "\n";
    text += report.title.empty() ? "" : report.title + "\n";
    for (const ReportColumn &column : reportColumns()) {
      if (!column.text)
        continue;
      ordered_json value = column.value(report);
      if (isEmpty(value))
        continue;
      std::string name = column.text;
      name.resize(width + 2, ' ');
      text += name + oneLine(value, column.form, report.scale) + "\n";
    }
  }
  return text;
}

/// `field` as a CSV field (RFC 4180). It is put in quotes if it contains a
/// quote, a comma or a line break.
std::string csvField(const std::string &field) {
  if (field.find_first_of("\",\r\n") == std::string::npos)
    return field;
  std::string text = "\"";
  for (char c : field)
    text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + "\"";
}

std::string renderCsv(std::span<const Report> reports) {
  std::string text;
  for (const ReportColumn &column : reportColumns())
    text += (text.empty() ? "" : ",") + std::string(column.name);
  text += "\n";
  for (const Report &report : reports) {
    std::string row;
    for (const ReportColumn &column : reportColumns()) {
      ordered_json value = column.value(report);
      row += (&column == &reportColumns().front() ? "" : ",") +
             (isEmpty(value) ? "" : csvField(oneLine(value)));
    }
    text += row + "\n";
  }
  return text;
}

std::string renderJson(std::span<const Report> reports) {
  ordered_json document = ordered_json::array();
  for (const Report &report : reports) {
    ordered_json object;
    for (const ReportColumn &column : reportColumns())
      object[column.name] = column.value(report);
    document.push_back(std::move(object));
  }
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

} // namespace

std::span<const ReportFormat> reportFormats() {
  static constexpr std::array<ReportFormat, 4> all = {{
      {"table", "lines for people", renderTable},
      {"comparison", "a line for each pipeline, the fastest first",
       renderComparison},
      {"csv", "a row for each pipeline", renderCsv},
      {"json", "an object for each pipeline", renderJson},
  }};
  return all;
}

} // namespace chimera::schedule
