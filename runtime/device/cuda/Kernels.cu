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

/// A number in bfloat16, as BFloat16.h says. Arithmetic is in float.
struct BFloat16 {
  unsigned short bits;
};

namespace {
/// The type in which numbers of type T are added and multiplied.
template <typename T> struct ArithmeticOf { using Type = T; };
template <> struct ArithmeticOf<BFloat16> { using Type = float; };
template <typename T> using Arithmetic = typename ArithmeticOf<T>::Type;

/// Conversions between a number in memory and the type of its arithmetic.
template <typename T> __device__ T wide(T value) { return value; }
__device__ float wide(BFloat16 value) {
  union {
    Word bits;
    float value;
  } all = {Word(value.bits) << 16};
  return all.value;
}
template <typename T> __device__ T rounded(Arithmetic<T> value) {
  return static_cast<T>(value);
}
template <> __device__ BFloat16 rounded<BFloat16>(float value) {
  union {
    float value;
    Word bits;
  } all = {value};
  Word upper = (all.bits + 0x7FFF + (all.bits >> 16 & 1)) >> 16;
  return {static_cast<unsigned short>(value != value ? 0x7FC0 : upper)};
}
} // namespace

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
    auto value = wide(loadElement<T>(summands.begin[0] + at, size));
    for (int k = 1; k < summands.count; ++k)
      value += wide(loadElement<T>(summands.begin[k] + at, size));
    storeElement(sum + at, size, rounded<T>(value));
  }
}

template <typename T>
__device__ void scale(Byte *elements, Count count, double factor) {
  for (Count i = firstElement(); i < count; i += stride()) {
    Byte *at = elements + i * sizeof(T);
    auto value = wide(loadElement<T>(at, sizeof(T)));
    storeElement(at, sizeof(T),
                 rounded<T>(static_cast<Arithmetic<T>>(value * factor)));
  }
}

/// Each thread handles four elements of each array at a time, so that enough
/// reads are in flight. Requires arrays that are aligned for Number.
template <typename Number>
__device__ void adamW(const Factors<Arithmetic<Number>> &f, const Runs &runs,
                      const Number *gradientSum, Number *weights,
                      Number *average, Number *averageOfSquares,
                      const int *stops, const double *clippedScale) {
  using T = Arithmetic<Number>;
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
        gradient[k] = wide(gradientSum[i]);
        weight[k] = wide(weights[i]);
        mean[k] = wide(average[i]);
        square[k] = wide(averageOfSquares[i]);
      }
    }
    for (int k = 0; k < kAtOnce; ++k) {
      Count i = begin + k * stride();
      if (i < count) {
        T scaled = scale * gradient[k];
        T newMean = mean[k] + f.new1 * (scaled - mean[k]);
        T newSquare = f.old2 * square[k] + f.new2 * scaled * scaled;
        average[i] = rounded<Number>(newMean);
        averageOfSquares[i] = rounded<Number>(newSquare);
        while (i >= runs.end[run])
          ++run;
        weights[i] = rounded<Number>(
            (runs.decays[run] ? f.keep : T(1)) * weight[k] -
            f.stepSize * newMean / (sqrt(newSquare) * f.perRoot2 + f.epsilon));
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
extern "C" __global__ void chimeraFoldBFloat16(Summands summands, Byte *sum,
                                               Count bytes) {
  fold<BFloat16>(summands, sum, bytes);
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
extern "C" __global__ void chimeraScaleBFloat16(Byte *elements, Count count,
                                                double factor) {
  scale<BFloat16>(elements, count, factor);
}

extern "C" __global__ void
chimeraAdamWFloat(Factors<float> factors, Runs runs, const float *gradientSum,
                  float *weights, float *average, float *averageOfSquares,
                  const int *stops, const double *scale) {
  adamW(factors, runs, gradientSum, weights, average, averageOfSquares, stops,
        scale);
}
extern "C" __global__ void
chimeraAdamWDouble(Factors<double> factors, Runs runs,
                   const double *gradientSum, double *weights, double *average,
                   double *averageOfSquares, const int *stops,
                   const double *scale) {
  adamW(factors, runs, gradientSum, weights, average, averageOfSquares, stops,
        scale);
}

extern "C" __global__ void
chimeraAdamWBFloat16(Factors<float> factors, Runs runs,
                     const BFloat16 *gradientSum, BFloat16 *weights,
                     BFloat16 *average, BFloat16 *averageOfSquares,
                     const int *stops, const double *scale) {
  adamW(factors, runs, gradientSum, weights, average, averageOfSquares, stops,
        scale);
}

namespace {
/// The key of a dropout: see DropoutKey in StageKernels.h. The arithmetic is
/// splitMix64 of Mix.h.
__device__ Count keyOf(Count word, const Count *step) {
  if (!step)
    return word;
  Count x = (word ^ *step) + 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// Calls use(element, number) with elements of [0, count) and their random
/// numbers, as Philox.h makes them for the elements [first, first + count) and
/// the key keyOf(word, step). A thread computes the four numbers that Philox
/// makes from one counter.
template <typename Use>
__device__ void forRandomNumbers(Count word, const Count *step, Count first,
                                 Count count, Use use) {
  Count key = keyOf(word, step);
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
        use(element - first, numbers[k]);
    }
  }
}

/// Dropout of elements of type T. An element is kept if its number is at least
/// `least`.
template <typename T>
__device__ void drop(Count least, Count word, const Count *step, Count first,
                     Count count, const T *input, double scale, T *result) {
  auto factor = static_cast<Arithmetic<T>>(scale);
  forRandomNumbers(word, step, first, count, [&](Count element, Word number) {
    Arithmetic<T> kept = number >= least ? 1 : 0;
    result[element] = rounded<T>(wide(input[element]) * kept * factor);
  });
}
} // namespace

/// Does the same as computeDropoutMask of Philox.h.
extern "C" __global__ void chimeraKeepElements(Count least, Count word,
                                               const Count *step, Count first,
                                               Count count, bool *kept) {
  forRandomNumbers(word, step, first, count, [&](Count element, Word number) {
    kept[element] = number >= least;
  });
}

extern "C" __global__ void chimeraDropFloat(Count least, Count word,
                                            const Count *step, Count first,
                                            Count count, const float *input,
                                            double scale, float *result) {
  drop(least, word, step, first, count, input, scale, result);
}
extern "C" __global__ void chimeraDropDouble(Count least, Count word,
                                             const Count *step, Count first,
                                             Count count, const double *input,
                                             double scale, double *result) {
  drop(least, word, step, first, count, input, scale, result);
}
extern "C" __global__ void chimeraDropBFloat16(Count least, Count word,
                                               const Count *step, Count first,
                                               Count count,
                                               const BFloat16 *input,
                                               double scale, BFloat16 *result) {
  drop(least, word, step, first, count, input, scale, result);
}
