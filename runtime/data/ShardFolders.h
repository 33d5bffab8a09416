//===- ShardFolders.h - Folders of data files -------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_SHARDFOLDERS_H
#define CHIMERA_RUNTIME_DATA_SHARDFOLDERS_H

#include <string>
#include <vector>

namespace chimera::runtime {

/// Whether `left` is before `right` if the digits in both are read as numbers:
/// "a-9" is before "a-10". So shards of two fields come in the same order.
bool isBeforeByNumbers(const std::string &left, const std::string &right);

/// The data files that the user named, with the files of a folder in place of
/// the folder, in the order of isBeforeByNumbers:
/// - FIELD=FOLDER: its .npy files, each as FIELD=FILE
/// - FOLDER: its .safetensors, its .npz or its .bin files
/// Other files of the folder are ignored. Throws std::runtime_error if a folder
/// cannot be read, has none of these files, or has files of two of these kinds.
std::vector<std::string> filesOfFolders(const std::vector<std::string> &given);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_SHARDFOLDERS_H
