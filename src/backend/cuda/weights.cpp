#include "backend/cuda/weights.h"

#include <algorithm>

#include "quant/device_decode.h"

namespace godwit::cuda {
namespace {

// File bytes go to the card in pieces of this size, decoded there.
constexpr uint64_t kPieceBytes = uint64_t{32} << 20;
constexpr uint64_t kDecodedBytes = uint64_t{256} << 20;

// Rows of a weight from the file's layout to where they are kept.
struct PlaceRows {
  TensorType type = TensorType::kF32;
  std::span<const std::byte> host;  // [n_rows] rows of the file
  uint64_t first_row = 0;
  uint64_t n_rows = 0;
  DeviceMatrix to;
  std::byte* file_area = nullptr;  // device, at least host.size() bytes
  float* decode_area = nullptr;    // device, at least n_rows * cols floats
  cudaStream_t stream = nullptr;
};

Status place_rows(const PlaceRows& args) {
  const uint64_t word = args.to.type == TensorType::kF32 ? 4 : 2;
  std::byte* const to =
      const_cast<std::byte*>(args.to.data) + args.first_row * args.to.stride * word;
  if (args.type == args.to.type) {
    const uint64_t row = row_bytes(args.type, args.to.cols);
    return status_of(cudaMemcpy2DAsync(to, args.to.stride * word, args.host.data(), row, row,
                                       args.n_rows, cudaMemcpyHostToDevice, args.stream),
                     "copying weights to the card");
  }
  check(args.to.type == TensorType::kF32, "decoded weights are kept as F32");
  if (Status s = status_of(cudaMemcpyAsync(args.file_area, args.host.data(), args.host.size(),
                                           cudaMemcpyHostToDevice, args.stream),
                           "copying weights to the card");
      !s) {
    return s;
  }
  const uint64_t n_blocks = args.n_rows * (args.to.cols / tensor_geometry(args.type).block_weights);
  if (Status s = status_of(
          quant::enqueue_decode(args.type, args.file_area, n_blocks, args.decode_area, args.stream),
          "decoding weights");
      !s) {
    return s;
  }
  return status_of(
      cudaMemcpy2DAsync(to, args.to.stride * 4, args.decode_area, args.to.cols * 4,
                        args.to.cols * 4, args.n_rows, cudaMemcpyDeviceToDevice, args.stream),
      "placing weights");
}

uint64_t stored_bytes(const program::Weight& weight) {
  const uint64_t word = DeviceWeights::stored_type(weight) == TensorType::kF32 ? 4 : 2;
  return (weight.rows * padded(weight.cols) * word + 255) / 256 * 256;
}

}  // namespace

TensorType DeviceWeights::stored_type(const program::Weight& weight) {
  const bool half = weight.type == TensorType::kF16 || weight.type == TensorType::kBF16;
  return weight.rows > 1 && half ? weight.type : TensorType::kF32;
}

uint64_t DeviceWeights::need(const program::Program& program) {
  uint64_t bytes = 0;
  for (const program::Weight& weight : program.weights) bytes += stored_bytes(weight);
  return bytes;
}

Result<DeviceWeights> DeviceWeights::upload(const program::Program& program,
                                            std::span<const std::span<const std::byte>> weights,
                                            cudaStream_t stream,
                                            const backend::Progress& progress) {
  DeviceWeights out;
  uint64_t total = 0;
  for (const auto& bytes : weights) total += bytes.size();
  Result<DeviceMemory> memory = DeviceMemory::zeroed(need(program), "the model's weights");
  if (!memory) return fail(std::move(memory).error());
  out.memory_ = std::move(*memory);
  Result<DeviceMemory> file = DeviceMemory::allocate(kPieceBytes, "the upload's staging area");
  if (!file) return fail(std::move(file).error());
  Result<DeviceMemory> decoded = DeviceMemory::allocate(kDecodedBytes, "the upload's staging area");
  if (!decoded) return fail(std::move(decoded).error());

  std::byte* at = out.memory_.data();
  uint64_t done = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const program::Weight& weight = program.weights[i];
    const DeviceMatrix matrix{.data = at,
                              .type = stored_type(weight),
                              .rows = weight.rows,
                              .cols = weight.cols,
                              .stride = padded(weight.cols)};
    out.matrices_.push_back(matrix);
    const uint64_t row = row_bytes(weight.type, weight.cols);
    // Rows at once: what fits the staging areas, file bytes and decoded floats.
    const uint64_t n_at_once = std::min(kPieceBytes / std::max<uint64_t>(row, 1),
                                        kDecodedBytes / (4 * std::max<uint64_t>(weight.cols, 1)));
    if (n_at_once == 0) {
      return fail("cuda: weight '{}' has rows of {} bytes; expected at most {}", weight.name, row,
                  kPieceBytes);
    }
    for (uint64_t r = 0; r < weight.rows; r += n_at_once) {
      const uint64_t n = std::min(n_at_once, weight.rows - r);
      const Status s = place_rows({.type = weight.type,
                                   .host = weights[i].subspan(r * row, n * row),
                                   .first_row = r,
                                   .n_rows = n,
                                   .to = matrix,
                                   .file_area = file->data(),
                                   .decode_area = decoded->as<float>(),
                                   .stream = stream});
      if (!s) return fail(Error(s.error()).with(weight.name));
      done += n * row;
      if (progress) progress("loading", done, total);
    }
    at += stored_bytes(weight);
  }
  if (Status s = status_of(cudaStreamSynchronize(stream), "loading weights"); !s) {
    return fail(s.error());
  }
  return out;
}

}  // namespace godwit::cuda
