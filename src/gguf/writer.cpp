#include "gguf/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/bits.h"
#include "gguf/encode.h"
#include "gguf/value.h"

namespace godwit::gguf {
namespace {

constexpr size_t kBufferBytes = 1u << 20;
constexpr int kMaxTemporaries = 16;  // left behind by processes that were killed

std::string errno_text(int code) { return std::generic_category().message(code); }

// An output file under a temporary name. Small writes are gathered.
class Output {
 public:
  static Result<Output> create(const std::filesystem::path& path) {
    for (int i = 0; i < kMaxTemporaries; ++i) {
      const std::string name = fmt::format("{}.partial{}", path.string(), i);
      const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd >= 0) return Output(fd, name);
      if (errno != EEXIST) return fail("gguf: cannot create {}: {}", name, errno_text(errno));
    }
    return fail("gguf: {}.partial0 to {} exist already: remove those left by earlier runs",
                path.string(), kMaxTemporaries - 1);
  }

  Output(Output&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        name_(std::move(other.name_)),
        buffer_(std::move(other.buffer_)) {}
  Output& operator=(Output&&) = delete;
  ~Output() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(name_.c_str());
  }

  Status append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kBufferBytes) {
      if (auto flushed = flush(); !flushed) return flushed;
      if (bytes.size() >= kBufferBytes) return write_all(bytes);
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }

  Status append_zeros(uint64_t n) {
    buffer_.resize(buffer_.size() + n);  // n < alignment
    return {};
  }

  // After this the file is in place and the object empty.
  Status publish(const std::filesystem::path& path) {
    if (auto flushed = flush(); !flushed) return flushed;
    if (::fsync(fd_) != 0) return fail("gguf: cannot sync {}: {}", name_, errno_text(errno));
    if (::rename(name_.c_str(), path.c_str()) != 0) {
      return fail("gguf: cannot rename {} to {}: {}", name_, path.string(), errno_text(errno));
    }
    // Synced above: close has nothing left to report.
    ::close(std::exchange(fd_, -1));
    return {};
  }

 private:
  Output(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  Status flush() {
    auto written = write_all(buffer_);
    buffer_.clear();
    return written;
  }

  Status write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail("gguf: cannot write {}: {}", name_, errno_text(errno));
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
    return {};
  }

  int fd_ = -1;
  std::string name_;
  std::vector<std::byte> buffer_;
};

}  // namespace

struct Writer::Impl {
  std::filesystem::path path;
  Output output;
  std::vector<std::string> names;
  std::vector<uint64_t> sizes;  // of each tensor's data
  uint64_t alignment = 0;
  size_t tensor = 0;     // being written
  uint64_t written = 0;  // bytes of it

  // Pads after the tensor that is now complete, and goes to the next.
  Status complete_tensor() {
    const uint64_t padding = round_up(sizes[tensor], alignment) - sizes[tensor];
    ++tensor;
    written = 0;
    return output.append_zeros(padding);
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::create(const std::filesystem::path& path, std::span<const KeyValue> metadata,
                              std::span<const TensorSpec> tensors) {
  auto header = encode_header(metadata, tensors);
  if (!header) return fail(std::move(header.error()));
  auto output = Output::create(path);
  if (!output) return fail(std::move(output.error()));
  if (auto written = output->append(header->bytes); !written) {
    return fail(std::move(written.error()));
  }
  std::vector<std::string> names;
  names.reserve(tensors.size());
  for (const TensorSpec& tensor : tensors) names.push_back(tensor.name);
  return Writer(std::make_unique<Impl>(Impl{.path = path,
                                            .output = *std::move(output),
                                            .names = std::move(names),
                                            .sizes = std::move(header->tensor_bytes),
                                            .alignment = header->alignment}));
}

Status Writer::append(std::span<const std::byte> bytes) {
  Impl& state = *impl_;
  while (!bytes.empty()) {
    if (state.tensor == state.sizes.size()) {
      return fail("gguf: {} more bytes for {} than its tensors take", bytes.size(),
                  state.path.string());
    }
    const uint64_t left = state.sizes[state.tensor] - state.written;
    const size_t n = std::min<size_t>(bytes.size(), left);
    if (auto written = state.output.append(bytes.first(n)); !written) return written;
    state.written += n;
    bytes = bytes.subspan(n);
    if (n == left) {
      if (auto padded = state.complete_tensor(); !padded) return padded;
    }
  }
  return {};
}

Status Writer::finish() {
  Impl& state = *impl_;
  if (state.tensor != state.sizes.size()) {
    return fail("gguf: tensor {} of {} got {} bytes, expected {}",
                in_quotes(state.names[state.tensor]), state.path.string(), state.written,
                state.sizes[state.tensor]);
  }
  return state.output.publish(state.path);
}

KeyValue make_uint(std::string key, uint32_t value) {
  return {.key = std::move(key), .value = {.type = ValueType::kU32, .content = uint64_t{value}}};
}
KeyValue make_float(std::string key, float value) {
  return {.key = std::move(key),
          .value = {.type = ValueType::kF32, .content = static_cast<double>(value)}};
}
KeyValue make_bool(std::string key, bool value) {
  return {.key = std::move(key), .value = {.type = ValueType::kBool, .content = value}};
}
KeyValue make_string(std::string key, std::string value) {
  return {.key = std::move(key),
          .value = {.type = ValueType::kString, .content = std::move(value)}};
}

namespace {

template <class T>
KeyValue make_array(std::string key, ValueType element, std::vector<T> values) {
  Array array{.element = element, .values = std::move(values)};
  return {.key = std::move(key), .value = {.type = ValueType::kArray, .content = std::move(array)}};
}

}  // namespace

KeyValue make_strings(std::string key, std::vector<std::string> values) {
  return make_array(std::move(key), ValueType::kString, std::move(values));
}
KeyValue make_ints(std::string key, std::vector<int64_t> values) {
  return make_array(std::move(key), ValueType::kI32, std::move(values));
}
KeyValue make_floats(std::string key, std::vector<double> values) {
  return make_array(std::move(key), ValueType::kF32, std::move(values));
}

}  // namespace godwit::gguf
