//===- Zip.h - The members of a zip archive ---------------------*- C++ -*-===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NumPy's .npz files are zip archives of .npy files. numpy.savez stores the
// members as they are, so that parts of them can be read directly. (A library
// such as libzip does not say where in the file the bytes of a member are.)
//
//   each member   a local header of 30 bytes, its name and extra fields, then
//                 its bytes
//   directory     for each member 46 bytes, its name, extra fields and comment
//   end           22 bytes and a comment. For large archives, an end in the
//                 zip64 format comes before it, with numbers of 64 bits.
//
// All numbers are little-endian (PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3).
//
//===----------------------------------------------------------------------===//

#ifndef CHIMERA_RUNTIME_DATA_ZIP_H
#define CHIMERA_RUNTIME_DATA_ZIP_H

#include "runtime/data/InputFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace chimera::runtime {

/// A member whose bytes are in the archive as they are.
struct ZipMember {
  std::string name;
  uint64_t begin; ///< the offset of its first byte in the archive
  uint64_t bytes;
};

/// The members of an archive. Throws std::runtime_error (InputFile::fail) if
/// the file is no zip archive or a truncated one, if it contradicts itself, or
/// if a member is compressed or encrypted. Does not check the members' CRC.
std::vector<ZipMember> readZipDirectory(const InputFile &file);

} // namespace chimera::runtime

#endif // CHIMERA_RUNTIME_DATA_ZIP_H
