//===- Kernels.cu - chimera's own kernels for the GPU ---------------------===//
//
// Part of chimera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The chimera kernels for the GPU. NVRTC compiles this text for the GPU when a
// device is opened; tests compile it for the host. So it includes no header and
// uses no shared-memory variables. Multiplications and additions are not
// contracted (--fmad=false), so the results are the same bits as on the host.
//
// Every kernel accepts a grid of any size. Kernels.h documents the kernels.
//
//===----------------------------------------------------------------------===//

using Byte = unsigned char;
using Word = unsigned int;
using Count = unsigned long long;

/// The contributions of one sum. The limit keeps the struct small enough for a
/// kernel's arguments.
constexpr int kMaxSummands = 256;
struct Summands {
  const Byte *begin[kMaxSummands];
  int count;
};

/// A range of elements from `begin` on, split into consecutive runs. `end` has
/// the end of each run. In a run, either all weights decay or none of them
/// does. The limit keeps the struct small enough for a kernel's arguments.
constexpr int kMaxRuns = 256;
struct Runs {
  Count begin;
  Count end[kMaxRuns];
  bool decays[kMaxRuns];
  int count;
};

/// The factors of AdamW. `keep` is for weights that decay; for other weights
/// the factor is 1.
template <typename T> struct Factors {
  T scale, keep, new1, old2, new2, stepSize, perRoot2, epsilon;
};

namespace {
__device__ Count firstElement() {
  return Count(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ Count stride() { return Count(gridDim.x) * blockDim.x; }

/// Loads an element from an address of any alignment. Reads only `bytes` bytes;
/// the other bytes of the element are 0.
template <typename T> __device__ T loadElement(const Byte *at, int bytes) {
  if (bytes == sizeof(T) && Count(at) % sizeof(T) == 0)
    return *reinterpret_cast<const T *>(at);
  union {
    T value;
    Byte bytes[sizeof(T)];
  } element = {};
  for (int i = 0; i < bytes; ++i)
    element.bytes[i] = at[i];
  return element.value;
}
template <typename T>
__device__ void storeElement(Byte *at, int bytes, T value) {
  if (bytes == sizeof(T) && Count(at) % sizeof(T) == 0) {
    *reinterpret_cast<T *>(at) = value;
    return;
  }
  union {
    T value;
    Byte bytes[sizeof(T)];
  } element = {value};
  for (int i = 0; i < bytes; ++i)
    at[i] = element.bytes[i];
}

template <typename T>
__device__ void fold(const Summands &summands, Byte *sum, Count bytes) {
  for (Count i = firstElement(); i * sizeof(T) < bytes; i += stride()) {
    Count at = i * sizeof(T);
    int size = bytes - at < sizeof(T) ? int(bytes - at) : int(sizeof(T));
    T value = loadElement<T>(summands.begin[0] + at, size);
    for (int k = 1; k < summands.count; ++k)
      value += loadElement<T>(summands.begin[k] + at, size);
    storeElement(sum + at, size, value);
  }
}

template <typename T>
__device__ void scale(Byte *elements, Count count, double factor) {
  for (Count i = firstElement(); i < count; i += stride()) {
    Byte *at = elements + i * sizeof(T);
    T value = loadElement<T>(at, sizeof(T));
    storeElement(at, sizeof(T), static_cast<T>(value * factor));
  }
}

/// Each thread handles four elements of each array at a time, so that enough
/// reads are in flight. Requires arrays that are aligned for T.
template <typename T>
__device__ void adamW(const Factors<T> &f, const Runs &runs,
                      const T *gradientSum, T *weights, T *average,
                      T *averageOfSquares, const int *stops,
                      const double *clippedScale) {
  if (stops && *stops)
    return;
  const T scale = clippedScale ? T(*clippedScale) : f.scale;
  constexpr int kAtOnce = 4;
  const Count count = runs.end[runs.count - 1];
  int run = 0; // the run of the current element; it never decreases
  for (Count begin = runs.begin + firstElement(); begin < count;
       begin += kAtOnce * stride()) {
    T gradient[kAtOnce], weight[kAtOnce], mean[kAtOnce], square[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k) {
      Count i = begin + k * stride();
      if (i < count) {
        gradient[k] = gradientSum[i];
        weight[k] = weights[i];
        mean[k] = average[i];
        square[k] = averageOfSquares[i];
      }
    }
    for (int k = 0; k < kAtOnce; ++k) {
      Count i = begin + k * stride();
      if (i < count) {
        T scaled = scale * gradient[k];
        T newMean = mean[k] + f.new1 * (scaled - mean[k]);
        T newSquare = f.old2 * square[k] + f.new2 * scaled * scaled;
        average[i] = newMean;
        averageOfSquares[i] = newSquare;
        while (i >= runs.end[run])
          ++run;
        weights[i] =
            (runs.decays[run] ? f.keep : T(1)) * weight[k] -
            f.stepSize * newMean / (sqrt(newSquare) * f.perRoot2 + f.epsilon);
      }
    }
  }
}
} // namespace

extern "C" __global__ void chimeraFoldFloat(Summands summands, Byte *sum,
                                            Count bytes) {
  fold<float>(summands, sum, bytes);
}
extern "C" __global__ void chimeraFoldDouble(Summands summands, Byte *sum,
                                             Count bytes) {
  fold<double>(summands, sum, bytes);
}
extern "C" __global__ void chimeraFoldInteger(Summands summands, Byte *sum,
                                              Count bytes) {
  fold<Count>(summands, sum, bytes);
}

extern "C" __global__ void chimeraScaleFloat(Byte *elements, Count count,
                                             double factor) {
  scale<float>(elements, count, factor);
}
extern "C" __global__ void chimeraScaleDouble(Byte *elements, Count count,
                                              double factor) {
  scale<double>(elements, count, factor);
}

extern "C" __global__ void chimeraAdamWFloat(Factors<float> factors, Runs runs,
                                             const float *gradientSum,
                                             float *weights, float *average,
                                             float *averageOfSquares,
                                             const int *stops,
                                             const double *scale) {
  adamW(factors, runs, gradientSum, weights, average, averageOfSquares, stops,
        scale);
}
extern "C" __global__ void chimeraAdamWDouble(Factors<double> factors,
                                              Runs runs,
                                              const double *gradientSum,
                                              double *weights, double *average,
                                              double *averageOfSquares,
                                              const int *stops,
                                              const double *scale) {
  adamW(factors, runs, gradientSum, weights, average, averageOfSquares, stops,
        scale);
}

/// Does the same as computeDropoutMask of Philox.h. A thread computes the four
/// random numbers that Philox makes from one counter.
extern "C" __global__ void chimeraKeepElements(Count least, Count key,
                                               Count first, Count count,
                                               bool *kept) {
  Count end = first + count, counters = (end + 3) / 4;
  for (Count counter = first / 4 + firstElement(); counter < counters;
       counter += stride()) {
    Word a = Word(counter), b = Word(counter >> 32), c = 0, d = 0;
    Word low = Word(key), high = Word(key >> 32);
    for (int round = 0; round < 10; ++round) {
      Count one = Count(0xD2511F53) * a, two = Count(0xCD9E8D57) * c;
      a = Word(two >> 32) ^ b ^ low;
      b = Word(two);
      c = Word(one >> 32) ^ d ^ high;
      d = Word(one);
      low += 0x9E3779B9;
      high += 0xBB67AE85;
    }
    Word numbers[4] = {a, b, c, d};
    for (int k = 0; k < 4; ++k) {
      Count element = 4 * counter + k;
      if (element >= first && element < end)
        kept[element - first] = numbers[k] >= least;
    }
  }
}
