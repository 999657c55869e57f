#include "gguf/parse.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/bits.h"
#include "gguf/cursor.h"
#include "gguf/name_index.h"
#include "gguf/value.h"

namespace godwit::gguf {
namespace {

constexpr uint64_t kMaxCount = std::numeric_limits<int64_t>::max();
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;           // key, type, value
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // name, dims, type, offset

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What people save as .gguf by mistake, by its first bytes.
std::optional<std::string_view> recognise_other_file(std::string_view text) {
  if (text.starts_with("version https://git-lfs")) {
    return "a git-LFS pointer, not the model itself: fetch it with 'git lfs pull'";
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos) text.remove_prefix(begin);
  if (text.starts_with('<')) {
    return "a web page (HTML or XML), not a model: the download was answered by a page";
  }
  if (text.starts_with("http")) return "text that starts with a link, not a model";
  if (text.starts_with('{')) {
    return "JSON, not a model: a server's error message or a configuration file";
  }
  if (text.starts_with("PK\x03\x04")) return "a zip archive (or a PyTorch checkpoint)";
  if (text.starts_with("tjgg") || text.starts_with("lmgg") || text.starts_with("fmgg")) {
    return "in a format older than GGUF: convert the model again";
  }
  return std::nullopt;
}

Status check_magic(const HeaderSource& source) {
  const std::string_view text =
      as_text(source.bytes.first(std::min<size_t>(source.bytes.size(), 64)));
  if (text.starts_with("GGUF")) return {};
  if (const auto found = recognise_other_file(text)) {
    return fail("gguf: {} is {}", source.name, *found);
  }
  if (std::string_view("GGUF").starts_with(text)) {
    return fail("gguf: {} ends inside the magic 'GGUF': it has {} bytes", source.name, text.size());
  }
  return fail("gguf: expected the magic 'GGUF' at the start of {}, found {}", source.name,
              in_quotes(text.substr(0, 4)));
}

uint32_t read_version(Cursor& cursor) {
  const uint64_t start = cursor.position();
  cursor.set_subject("the version");
  const auto version = cursor.read<uint32_t>();
  if (cursor.failed()) return version;
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 0xffff) {
    cursor.fail_at(start,
                   "the file is big-endian (version {} with its bytes swapped), expected "
                   "little-endian: convert it",
                   swapped);
  } else if (version < 2 || version > 3) {
    cursor.fail_at(start, "the format version is {}, expected 2 or 3{}", version,
                   version == 1 ? ": convert the model again" : "");
  }
  return version;
}

// A count whose entries take at least `min_bytes` each in what is left of the file.
uint64_t check_count(Cursor& cursor, uint64_t at, uint64_t count, uint64_t min_bytes,
                     std::string_view what) {
  const uint64_t most = cursor.remaining() / min_bytes;
  if (cursor.failed() || count <= most) return count;
  cursor.fail_at(at,
                 "{} {} are promised, but the {} bytes left can hold at most {} (truncated or "
                 "corrupt)",
                 count, what, cursor.remaining(), most);
  return 0;
}

void check_header_size(Cursor& cursor) {
  if (cursor.position() > kMaxHeaderBytes) {
    cursor.fail_at(cursor.position(), "the header is larger than {} MiB, which no model needs",
                   kMaxHeaderBytes >> 20);
  }
}

// Metadata values, one type at a time.
class ValueReader {
 public:
  explicit ValueReader(Cursor& cursor) : cursor_(cursor) {}

  Value read(ValueType type) {
    Value value{.type = type, .content = {}};
    switch (type) {
      case ValueType::kU8:
        value.content = uint64_t{cursor_.read<uint8_t>()};
        break;
      case ValueType::kU16:
        value.content = uint64_t{cursor_.read<uint16_t>()};
        break;
      case ValueType::kU32:
        value.content = uint64_t{cursor_.read<uint32_t>()};
        break;
      case ValueType::kU64:
        value.content = cursor_.read<uint64_t>();
        break;
      case ValueType::kI8:
        value.content = int64_t{cursor_.read<int8_t>()};
        break;
      case ValueType::kI16:
        value.content = int64_t{cursor_.read<int16_t>()};
        break;
      case ValueType::kI32:
        value.content = int64_t{cursor_.read<int32_t>()};
        break;
      case ValueType::kI64:
        value.content = cursor_.read<int64_t>();
        break;
      case ValueType::kF32:
        value.content = static_cast<double>(cursor_.read<float>());
        break;
      case ValueType::kF64:
        value.content = cursor_.read<double>();
        break;
      case ValueType::kBool:
        value.content = read_bool();
        break;
      case ValueType::kString:
        value.content = read_text();
        break;
      case ValueType::kArray:
        value.content = read_array();
        break;
    }
    return value;
  }

 private:
  bool read_bool() {
    const uint64_t at = cursor_.position();
    const auto byte = cursor_.read<uint8_t>();
    if (byte > 1) {
      cursor_.fail_at(at, "{}: a bool is {}, expected 0 or 1", cursor_.subject(), byte);
    }
    return byte == 1;
  }

  std::string read_text() {
    return std::string(cursor_.read_string("its string", kMaxHeaderBytes));
  }

  Array read_array() {
    const uint64_t at = cursor_.position();
    const auto id = cursor_.read<uint32_t>();
    const auto type = find_value_type(id);
    const auto count = cursor_.read<uint64_t>();
    if (cursor_.failed()) return {};
    if (!type) {
      cursor_.fail_at(at, "{} is an array of type {} (unknown)", cursor_.subject(), id);
      return {};
    }
    if (*type == ValueType::kArray) {
      cursor_.fail_at(at, "{} is an array of arrays, which is not supported", cursor_.subject());
      return {};
    }
    const auto what = fmt::format("elements of {}", cursor_.subject());
    check_count(cursor_, at + 4, count, value_min_bytes(*type), what);
    if (!cursor_.failed() && count > kMaxArrayElements - array_elements_) {
      cursor_.fail_at(at + 4, "{} {} are promised, expected at most {} in all arrays", count, what,
                      kMaxArrayElements);
    }
    if (cursor_.failed()) return {};
    array_elements_ += count;
    return read_elements(*type, count);
  }

  Array read_elements(ValueType type, uint64_t n) {
    Array array{.element = type, .values = {}};
    switch (type) {
      case ValueType::kU8:
        array.values = widened<uint8_t, uint64_t>(n);
        break;
      case ValueType::kU16:
        array.values = widened<uint16_t, uint64_t>(n);
        break;
      case ValueType::kU32:
        array.values = widened<uint32_t, uint64_t>(n);
        break;
      case ValueType::kU64:
        array.values = widened<uint64_t, uint64_t>(n);
        break;
      case ValueType::kI8:
        array.values = widened<int8_t, int64_t>(n);
        break;
      case ValueType::kI16:
        array.values = widened<int16_t, int64_t>(n);
        break;
      case ValueType::kI32:
        array.values = widened<int32_t, int64_t>(n);
        break;
      case ValueType::kI64:
        array.values = widened<int64_t, int64_t>(n);
        break;
      case ValueType::kF32:
        array.values = widened<float, double>(n);
        break;
      case ValueType::kF64:
        array.values = widened<double, double>(n);
        break;
      case ValueType::kBool:
        array.values = bools(n);
        break;
      case ValueType::kString:
        array.values = strings(n);
        break;
      case ValueType::kArray:
        break;  // refused by read_array
    }
    return array;
  }

  // n is already known to fit in what is left of the file.
  template <class Stored, class Wide>
  std::vector<Wide> widened(uint64_t n) {
    std::vector<Wide> values(n);
    for (Wide& value : values) value = static_cast<Wide>(cursor_.read<Stored>());
    return values;
  }

  std::vector<bool> bools(uint64_t n) {
    std::vector<bool> values(n);
    for (size_t i = 0; i < n && !cursor_.failed(); ++i) values[i] = read_bool();
    return values;
  }

  std::vector<std::string> strings(uint64_t n) {
    std::vector<std::string> values;
    values.reserve(n);
    for (size_t i = 0; i < n && !cursor_.failed(); ++i) {
      values.push_back(read_text());
      check_header_size(cursor_);
    }
    return values;
  }

  Cursor& cursor_;
  uint64_t array_elements_ = 0;
};

struct Metadata {
  std::vector<KeyValue> entries;
  std::vector<uint64_t> positions;  // of each entry in the file, for messages
};

Metadata read_metadata(Cursor& cursor, uint64_t n) {
  Metadata metadata;
  ValueReader values(cursor);
  for (uint64_t i = 0; i < n && !cursor.failed(); ++i) {
    const uint64_t start = cursor.position();
    cursor.set_subject(fmt::format("metadata entry {}", i));
    const std::string_view key = cursor.read_string("its key", kMaxKeyBytes);
    if (key.empty()) cursor.fail_at(start, "metadata entry {} has an empty key", i);
    cursor.set_subject(fmt::format("metadata key {}", in_quotes(key)));
    const uint64_t type_at = cursor.position();
    const auto id = cursor.read<uint32_t>();
    const auto type = find_value_type(id);
    if (!type) cursor.fail_at(type_at, "{} has value type {} (unknown)", cursor.subject(), id);
    if (cursor.failed()) break;
    metadata.entries.push_back({.key = std::string(key), .value = values.read(*type)});
    metadata.positions.push_back(start);
    check_header_size(cursor);
  }
  if (cursor.failed()) return metadata;
  const auto key_of = [&](size_t i) { return std::string_view(metadata.entries[i].key); };
  if (const auto again = NameIndex(metadata.entries.size(), key_of).find_duplicate(key_of)) {
    cursor.fail_at(metadata.positions[*again], "metadata key {} appears twice",
                   in_quotes(key_of(*again)));
  }
  return metadata;
}

// general.alignment, or its default.
uint64_t read_alignment(Cursor& cursor, const Metadata& metadata) {
  const auto entry = std::ranges::find(metadata.entries, "general.alignment", &KeyValue::key);
  if (entry == metadata.entries.end()) return kDefaultAlignment;
  const auto at =
      metadata.positions[static_cast<size_t>(std::distance(metadata.entries.begin(), entry))];
  if (entry->value.type != ValueType::kU32) {
    cursor.fail_at(at, "general.alignment is {}, expected u32", describe_type(entry->value));
    return kDefaultAlignment;
  }
  const auto alignment = std::get<uint64_t>(entry->value.content);
  if (!is_power_of_two(alignment) || alignment < kMinAlignment || alignment > kMaxAlignment) {
    cursor.fail_at(at, "general.alignment is {}, expected a power of two from {} to {}", alignment,
                   kMinAlignment, kMaxAlignment);
    return kDefaultAlignment;
  }
  return alignment;
}

std::vector<uint64_t> read_dims(Cursor& cursor) {
  const uint64_t at = cursor.position();
  const auto n = cursor.read<uint32_t>();
  if (!cursor.failed() && (n == 0 || n > kMaxDims)) {
    cursor.fail_at(at, "{} has {} dimensions, expected 1 to {}", cursor.subject(), n, kMaxDims);
  }
  if (cursor.failed()) return {};
  std::vector<uint64_t> dims(n);
  for (uint64_t& dim : dims) dim = cursor.read<uint64_t>();
  return dims;
}

// One directory entry. file_offset is still relative to the tensor data section.
Tensor read_tensor(Cursor& cursor, uint64_t index) {
  Tensor tensor;
  const uint64_t start = cursor.position();
  cursor.set_subject(fmt::format("tensor {} of the directory", index));
  tensor.name = cursor.read_string("its name", kMaxTensorNameBytes);
  if (tensor.name.empty()) cursor.fail_at(start, "tensor {} has an empty name", index);
  cursor.set_subject(fmt::format("tensor {}", in_quotes(tensor.name)));
  const uint64_t dims_at = cursor.position();
  tensor.dims = read_dims(cursor);
  const uint64_t type_at = cursor.position();
  const auto id = cursor.read<uint32_t>();
  tensor.file_offset = cursor.read<uint64_t>();
  if (cursor.failed()) return tensor;

  const TensorGeometry* const geometry = find_tensor_geometry(id);
  if (geometry == nullptr) {
    cursor.fail_at(type_at, "{} has type {} (unknown)", cursor.subject(), id);
    return tensor;
  }
  tensor.type = geometry->type;
  if (const auto bytes = tensor_bytes(tensor.type, tensor.dims)) {
    tensor.bytes = *bytes;
  } else {
    cursor.fail_at(dims_at, "{} {}", cursor.subject(), bytes.error().message);
  }
  return tensor;
}

struct Directory {
  std::vector<Tensor> tensors;
  std::vector<uint64_t> positions;  // of each entry in the file, for messages
};

Directory read_directory(Cursor& cursor, uint64_t n) {
  Directory directory;
  for (uint64_t i = 0; i < n && !cursor.failed(); ++i) {
    directory.positions.push_back(cursor.position());
    directory.tensors.push_back(read_tensor(cursor, i));
    check_header_size(cursor);
  }
  if (cursor.failed()) return directory;
  const auto name_of = [&](size_t i) { return std::string_view(directory.tensors[i].name); };
  if (const auto again = NameIndex(n, name_of).find_duplicate(name_of)) {
    cursor.fail_at(directory.positions[*again], "tensor {} appears twice",
                   in_quotes(name_of(*again)));
  }
  return directory;
}

// Turns offsets within the data section into offsets in the file: aligned, and no sum overflows.
void place_tensors(Cursor& cursor, Directory& directory, uint64_t data_offset, uint64_t alignment) {
  for (size_t i = 0; i < directory.tensors.size(); ++i) {
    Tensor& tensor = directory.tensors[i];
    const uint64_t at = directory.positions[i];
    if (tensor.file_offset % alignment != 0) {
      cursor.fail_at(at, "tensor {} has offset {}, expected a multiple of the alignment {}",
                     in_quotes(tensor.name), tensor.file_offset, alignment);
      return;
    }
    const auto begin = checked_add(data_offset, tensor.file_offset);
    const auto end = begin ? checked_add(*begin, tensor.bytes) : std::nullopt;
    if (!end || *end > kMaxCount) {
      cursor.fail_at(at, "tensor {} has offset {}, beyond any file (the sum overflows)",
                     in_quotes(tensor.name), tensor.file_offset);
      return;
    }
    tensor.file_offset = *begin;
  }
}

// Every tensor inside the file, and no two of them share a byte.
void check_extents(Cursor& cursor, const Directory& directory, uint64_t file_bytes) {
  const std::vector<Tensor>& tensors = directory.tensors;
  if (tensors.empty()) return;
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) {
    return std::pair(tensors[i].file_offset, i);  // the later of two in the file is named
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const Tensor& before = tensors[order[i - 1]];
    const Tensor& after = tensors[order[i]];
    if (after.file_offset - before.file_offset < before.bytes) {
      cursor.fail_at(directory.positions[order[i]],
                     "tensor {} starts at byte {:#x}, inside tensor {} ({:#x} to {:#x})",
                     in_quotes(after.name), after.file_offset, in_quotes(before.name),
                     before.file_offset, before.file_offset + before.bytes);
      return;
    }
  }
  // Apart and in order: the last one ends last.
  const Tensor& last = tensors[order.back()];
  const uint64_t end = last.file_offset + last.bytes;
  if (end > file_bytes) {
    cursor.fail_at(directory.positions[order.back()],
                   "the file has {} bytes, but tensor {} ends at byte {}: {} bytes are missing "
                   "(truncated?)",
                   file_bytes, in_quotes(last.name), end, end - file_bytes);
  }
}

}  // namespace

Result<uint64_t> tensor_bytes(TensorType type, std::span<const uint64_t> dims) {
  if (dims.empty() || dims.size() > kMaxDims) {
    return fail("has {} dimensions, expected 1 to {}", dims.size(), kMaxDims);
  }
  if (std::ranges::find(dims, uint64_t{0}) != dims.end()) {
    return fail("has a dimension of 0 in [{}]", fmt::join(dims, ", "));
  }
  const TensorGeometry& geometry = tensor_geometry(type);
  if (dims[0] % geometry.block_weights != 0) {
    return fail("has rows of {} weights, expected a multiple of {} for {}", dims[0],
                geometry.block_weights, geometry.name);
  }
  std::optional<uint64_t> weights = 1;
  for (const uint64_t dim : dims) weights = weights ? checked_mul(*weights, dim) : std::nullopt;
  // Rows are whole blocks, so the whole tensor is.
  const auto bytes =
      weights ? checked_mul(*weights / geometry.block_weights, geometry.block_bytes) : std::nullopt;
  if (!bytes || *bytes > kMaxCount || *weights > kMaxCount) {
    return fail("has dimensions [{}], whose product overflows", fmt::join(dims, ", "));
  }
  return *bytes;
}

Result<Header> parse_header(const HeaderSource& source) {
  if (auto magic = check_magic(source); !magic) return fail(std::move(magic.error()));
  Cursor cursor(source.bytes, source.name);
  (void)cursor.read<uint32_t>();  // the magic
  Header header;
  header.version = read_version(cursor);
  cursor.set_subject("the counts");
  const uint64_t tensors_at = cursor.position();
  const auto n_tensors = cursor.read<uint64_t>();
  const auto n_entries = cursor.read<uint64_t>();
  check_count(cursor, tensors_at, n_tensors, kMinTensorBytes, "tensors");
  check_count(cursor, tensors_at + 8, n_entries, kMinEntryBytes, "metadata entries");
  if (cursor.failed()) return fail(cursor.take_error());

  Metadata metadata = read_metadata(cursor, n_entries);
  if (cursor.failed()) return fail(cursor.take_error());
  header.alignment = read_alignment(cursor, metadata);
  Directory directory = read_directory(cursor, n_tensors);
  header.data_offset = round_up(cursor.position(), header.alignment);
  if (!cursor.failed()) place_tensors(cursor, directory, header.data_offset, header.alignment);
  if (!cursor.failed()) check_extents(cursor, directory, source.file_bytes);
  if (cursor.failed()) return fail(cursor.take_error());
  header.metadata = std::move(metadata.entries);
  header.tensors = std::move(directory.tensors);
  return header;
}

}  // namespace godwit::gguf
