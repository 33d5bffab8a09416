//===- ControlGroups.cpp - Control groups of a process --------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/system/ControlGroups.h"

#include <fstream>
#include <sstream>

using namespace chimera::runtime;
namespace fs = std::filesystem;

namespace {
using Version = ControlGroup::Version;

/// The mount point of a hierarchy of control groups. In a container, the mount
/// may show only a part of the hierarchy (because of a namespace or a bind
/// mount).
struct Mount {
  Version version;
  std::string root;  ///< the group that is mounted at `point`
  std::string point; ///< the folder of the mount
};

bool hasWord(const std::string &list, const std::string &word) {
  std::istringstream stream(list);
  for (std::string next; std::getline(stream, next, ',');)
    if (next == word)
      return true;
  return false;
}

/// Converts a path from /proc/self/mountinfo to plain text. In this file,
/// spaces, tabs, newlines and backslashes are written as \ and three octal
/// digits.
std::string unescape(const std::string &text) {
  std::string plain;
  auto isOctal = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\\' && i + 3 < text.size() && isOctal(i + 1) &&
        isOctal(i + 2) && isOctal(i + 3)) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  return plain;
}

/// The mount in a line of /proc/self/mountinfo (proc(5)). None if it is not a
/// mount of control groups with the controller `controller`.
std::optional<Mount> readMount(const std::string &line,
                               const std::string &controller) {
  std::istringstream stream(line);
  std::string skipped, type, options;
  Mount mount;
  stream >> skipped >> skipped >> skipped >> mount.root >> mount.point;
  while (stream >> skipped && skipped != "-")
    ;
  stream >> type >> skipped >> options;
  mount.root = unescape(mount.root);
  mount.point = unescape(mount.point);
  if (type == "cgroup2")
    mount.version = Version::Two;
  else if (type == "cgroup" && hasWord(options, controller))
    mount.version = Version::One;
  else
    return std::nullopt;
  return mount;
}

/// The group of this process, as an absolute path in its hierarchy.
std::optional<std::string> findGroup(const std::string &root, Version version,
                                     const std::string &controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // A line is ID:CONTROLLERS:PATH. In version 2, CONTROLLERS is empty.
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    if (version == Version::Two ? controllers.empty()
                                : hasWord(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// The path of `group` relative to the mount. Empty, which is the mount itself,
/// if the mount does not show the group.
fs::path belowMount(const std::string &group, const std::string &mountRoot) {
  fs::path path = fs::path(group).lexically_relative(mountRoot);
  return path.empty() || path == "." || *path.begin() == ".." ? fs::path()
                                                              : path;
}
} // namespace

std::vector<ControlGroup>
chimera::runtime::findControlGroups(const std::string &controller,
                                    const std::string &root) {
  std::vector<ControlGroup> groups;
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::optional<Mount> mount = readMount(line, controller);
    std::optional<std::string> group;
    if (mount)
      group = findGroup(root, mount->version, controller);
    if (!group)
      continue;
    for (fs::path path = belowMount(*group, mount->root);;
         path = path.parent_path()) {
      groups.push_back({mount->version, fs::path(root + mount->point) / path});
      if (path.empty())
        break;
    }
  }
  return groups;
}

std::optional<double> chimera::runtime::readNumber(const fs::path &file) {
  double number = 0;
  return std::ifstream(file) >> number ? std::optional(number) : std::nullopt;
}
