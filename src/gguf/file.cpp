#include "gguf/file.h"

#include <utility>

#include "gguf/name_index.h"
#include "gguf/parse.h"
#include "gguf/shard_name.h"
#include "gguf/value.h"
#include "os/mapped_file.h"

namespace godwit::gguf {
namespace {

struct Shard {
  std::filesystem::path path;
  MappedFile file;
  Header header;
};

Result<Shard> open_shard(const std::filesystem::path& path) {
  auto file = MappedFile::open(path);
  if (!file) return fail(std::move(file.error()).with("gguf"));
  auto header = parse_header(
      {.bytes = file->bytes(), .file_bytes = file->bytes().size(), .name = path.native()});
  if (!header) return fail(std::move(header.error()));
  return Shard{.path = path, .file = *std::move(file), .header = *std::move(header)};
}

// The split.* keys of one shard; absent in a model of one file.
struct SplitKeys {
  std::optional<uint64_t> number;     // split.no, from 0
  std::optional<uint64_t> count;      // split.count
  std::optional<uint64_t> n_tensors;  // split.tensors.count, of all shards together
};

Result<SplitKeys> read_split_keys(const Shard& shard) {
  SplitKeys keys;
  for (const KeyValue& entry : shard.header.metadata) {
    std::optional<uint64_t>* const slot = entry.key == "split.no"              ? &keys.number
                                          : entry.key == "split.count"         ? &keys.count
                                          : entry.key == "split.tensors.count" ? &keys.n_tensors
                                                                               : nullptr;
    if (slot == nullptr) continue;
    const auto number = to_uint(entry);
    if (!number) return fail("{} in {}", number.error().message, shard.path.string());
    *slot = *number;
  }
  return keys;
}

// What shard `number` (from 1) says about itself must agree with its name and with shard 1.
Status check_split_keys(const Shard& shard, const SplitKeys& keys, const ShardName& name,
                        const SplitKeys& first) {
  const std::string path = shard.path.string();
  if (!keys.count || !keys.number) {
    return fail("gguf: {} is named shard {} of {}, but has no metadata key '{}'", path, name.number,
                name.count, keys.count ? "split.no" : "split.count");
  }
  if (*keys.count != name.count) {
    return fail("gguf: split.count is {} in {}, expected {} from its name", *keys.count, path,
                name.count);
  }
  if (*keys.number != name.number - 1) {
    return fail("gguf: split.no is {} in {}, expected {} from its name", *keys.number, path,
                name.number - 1);
  }
  if (keys.n_tensors && keys.n_tensors != first.n_tensors) {
    return fail("gguf: split.tensors.count is {} in {}, but {} in the first shard", *keys.n_tensors,
                path, first.n_tensors ? fmt::to_string(*first.n_tensors) : "absent");
  }
  return {};
}

// What the user gave must be a whole model, or the first shard of one.
Result<std::optional<ShardName>> split_of(const Shard& shard, const SplitKeys& keys) {
  auto name = parse_shard_name(shard.path);
  if (keys.count.value_or(1) > 1 && !name) {
    return fail(
        "gguf: {} is shard {} of {} (split.no, split.count), but is not named "
        "'...-{:05}-of-{:05}.gguf', so that the other shards cannot be found",
        shard.path.string(), keys.number.value_or(0) + 1, *keys.count, keys.number.value_or(0) + 1,
        *keys.count);
  }
  if (!name || (name->count == 1 && !keys.count)) return std::optional<ShardName>();
  if (auto agrees = check_split_keys(shard, keys, *name, keys); !agrees) {
    return fail(std::move(agrees.error()));
  }
  return name;
}

Result<std::vector<Shard>> open_all(const std::filesystem::path& path) {
  const auto given = parse_shard_name(path);
  if (given && given->number != 1) {
    return fail("gguf: {} is shard {} of {}: open the first one, {}", path.string(), given->number,
                given->count, given->sibling(1).string());
  }
  std::vector<Shard> shards;
  auto first = open_shard(path);
  if (!first) return fail(std::move(first.error()));
  const auto first_keys = read_split_keys(*first);
  if (!first_keys) return fail(first_keys.error());
  auto split = split_of(*first, *first_keys);
  if (!split) return fail(std::move(split.error()));
  shards.push_back(*std::move(first));
  if (!*split) return shards;

  size_t n_tensors = shards[0].header.tensors.size();
  for (uint32_t number = 2; number <= (*split)->count; ++number) {
    ShardName name = **split;
    name.number = number;
    auto shard = open_shard(name.sibling(number));
    if (!shard) {
      return fail(std::move(shard.error())
                      .with(fmt::format("gguf: shard {} of {} of this model", number, name.count)));
    }
    const auto keys = read_split_keys(*shard);
    if (!keys) return fail(keys.error());
    if (auto agrees = check_split_keys(*shard, *keys, name, *first_keys); !agrees) {
      return fail(std::move(agrees.error()));
    }
    n_tensors += shard->header.tensors.size();
    shards.push_back(*std::move(shard));
  }
  if (first_keys->n_tensors && *first_keys->n_tensors != n_tensors) {
    return fail("gguf: split.tensors.count is {} in {}, but its shards hold {} tensors",
                *first_keys->n_tensors, path.string(), n_tensors);
  }
  return shards;
}

}  // namespace

size_t Array::size() const {
  return std::visit([](const auto& held) { return held.size(); }, values);
}

uint64_t Tensor::rows() const {
  uint64_t n = 1;
  for (size_t i = 1; i < dims.size(); ++i) n *= dims[i];
  return n;
}

struct File::Impl {
  std::filesystem::path path;
  uint32_t version = 3;
  uint64_t total_bytes = 0;
  std::vector<MappedFile> mappings;
  std::vector<KeyValue> metadata;
  std::vector<Tensor> tensors;
  NameIndex key_index;
  NameIndex tensor_index;

  // Takes a shard's tensors, pointing into its mapping.
  void add(Shard shard) {
    const std::span<const std::byte> bytes = shard.file.bytes();
    for (Tensor& tensor : shard.header.tensors) {
      tensor.shard = static_cast<uint32_t>(mappings.size());
      tensor.data = bytes.subspan(tensor.file_offset, tensor.bytes);
      tensors.push_back(std::move(tensor));
    }
    total_bytes += bytes.size();
    mappings.push_back(std::move(shard.file));
  }

  [[nodiscard]] std::string_view key(size_t i) const { return metadata[i].key; }
  [[nodiscard]] std::string_view tensor_name(size_t i) const { return tensors[i].name; }

  [[nodiscard]] const KeyValue* find_entry(std::string_view name) const {
    const auto found = key_index.find(name, [this](size_t i) { return key(i); });
    return found ? &metadata[*found] : nullptr;
  }
};

void File::discard_read() const {
  for (const MappedFile& mapping : impl_->mappings) mapping.discard(mapping.bytes());
}

File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

Result<File> File::open(const std::filesystem::path& path) {
  auto shards = open_all(path);
  if (!shards) return fail(std::move(shards.error()));
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->version = shards->front().header.version;
  impl->metadata = std::move(shards->front().header.metadata);
  std::vector<std::filesystem::path> paths;
  for (Shard& shard : *shards) {
    paths.push_back(shard.path);
    impl->add(std::move(shard));
  }
  const auto name_of = [&](size_t i) { return impl->tensor_name(i); };
  impl->key_index = NameIndex(impl->metadata.size(), [&](size_t i) { return impl->key(i); });
  impl->tensor_index = NameIndex(impl->tensors.size(), name_of);
  // Within a shard parse.cpp has looked; what is left is one name in two shards.
  if (const auto again = impl->tensor_index.find_duplicate(name_of)) {
    const Tensor& tensor = impl->tensors[*again];
    const auto before = impl->tensor_index.find(tensor.name, name_of);
    return fail("gguf: tensor {} is both in {} and in {}", in_quotes(tensor.name),
                paths[impl->tensors[*before].shard].string(), paths[tensor.shard].string());
  }
  return File(std::move(impl));
}

const std::filesystem::path& File::path() const { return impl_->path; }
uint32_t File::version() const { return impl_->version; }
uint64_t File::total_bytes() const { return impl_->total_bytes; }
size_t File::n_shards() const { return impl_->mappings.size(); }
std::span<const KeyValue> File::metadata() const { return impl_->metadata; }
std::span<const Tensor> File::tensors() const { return impl_->tensors; }

const Value* File::find(std::string_view key) const {
  const KeyValue* const entry = impl_->find_entry(key);
  return entry == nullptr ? nullptr : &entry->value;
}

const Tensor* File::find_tensor(std::string_view name) const {
  const auto found =
      impl_->tensor_index.find(name, [this](size_t i) { return impl_->tensor_name(i); });
  return found ? &impl_->tensors[*found] : nullptr;
}

namespace {

// A conversion of value.h over an entry that may be absent.
template <class T>
Result<std::optional<T>> optional_value(const KeyValue* entry,
                                        Result<T> (*convert)(const KeyValue&)) {
  if (entry == nullptr) return std::optional<T>();
  auto value = convert(*entry);
  if (!value) return fail(std::move(value.error()));
  return std::optional<T>(*std::move(value));
}

template <class T>
Result<T> needed_value(const KeyValue* entry, std::string_view key, const std::string& path,
                       Result<T> (*convert)(const KeyValue&)) {
  if (entry == nullptr) {
    return fail("gguf: metadata key '{}' is missing in {}", key, path);
  }
  return convert(*entry);
}

}  // namespace

Result<std::optional<uint64_t>> File::get_uint(std::string_view key) const {
  return optional_value(impl_->find_entry(key), to_uint);
}
Result<std::optional<double>> File::get_double(std::string_view key) const {
  return optional_value(impl_->find_entry(key), to_double);
}
Result<std::optional<bool>> File::get_bool(std::string_view key) const {
  return optional_value(impl_->find_entry(key), to_bool);
}
Result<std::optional<std::string_view>> File::get_string(std::string_view key) const {
  return optional_value(impl_->find_entry(key), to_string);
}
Result<const std::vector<std::string>*> File::get_strings(std::string_view key) const {
  const KeyValue* const entry = impl_->find_entry(key);
  if (entry == nullptr) return nullptr;
  return to_strings(*entry);
}
Result<std::optional<std::vector<int64_t>>> File::get_ints(std::string_view key) const {
  return optional_value(impl_->find_entry(key), to_ints);
}
Result<std::optional<std::vector<double>>> File::get_doubles(std::string_view key) const {
  return optional_value(impl_->find_entry(key), to_doubles);
}

Result<uint64_t> File::need_uint(std::string_view key) const {
  return needed_value(impl_->find_entry(key), key, path().string(), to_uint);
}
Result<double> File::need_double(std::string_view key) const {
  return needed_value(impl_->find_entry(key), key, path().string(), to_double);
}
Result<std::string_view> File::need_string(std::string_view key) const {
  return needed_value(impl_->find_entry(key), key, path().string(), to_string);
}

}  // namespace godwit::gguf
