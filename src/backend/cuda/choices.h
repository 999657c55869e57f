// The ways to run a model that differ in speed alone.
#pragma once

#include <cstdint>

namespace godwit::cuda {

// kBest: persistent where it runs the program, else stepwise. kPersistent: an error where it
// does not.
enum class ExecutorChoice : uint8_t { kBest, kStepwise, kPersistent };
// How a kernel follows the one before it in its stream: after its end, or overlapping its tail by
// programmatic dependent launch (each kernel then waits on the device before it reads anything
// but weights). Cards before 9.0 know the first way only.
enum class Overlap : uint8_t { kNone, kProgrammatic };
// Whether a CUDA graph stands between the launches of a token and the card.
enum class Capture : uint8_t { kNone, kGraph };
// kChunks: whole chunks of a prompt at once, by matrix products, near the bits of single rows.
// kRows: everything row by row, to the same bits however a text is cut into calls.
enum class PrefillChoice : uint8_t { kChunks, kRows };

}  // namespace godwit::cuda
