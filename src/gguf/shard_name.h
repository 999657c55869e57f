// The naming of split models: "<stem>-00002-of-00005.gguf", numbers from 1, five digits each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace godwit::gguf {

struct ShardName {
  std::string stem;     // directory and name up to "-00002-of-"
  uint32_t number = 1;  // from 1 to count
  uint32_t count = 1;

  [[nodiscard]] std::filesystem::path sibling(uint32_t other) const;
};

// nullopt for a name that is not one of a shard.
[[nodiscard]] std::optional<ShardName> parse_shard_name(const std::filesystem::path& path);

}  // namespace godwit::gguf
