// A timeline at a depth that nobody computed: what the positions before it left behind is made up,
// or read from a file, and brought in as any exported state is (backend/state.h). Speed does not
// depend on the values, as long as they are sane numbers; the text means nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/session.h"

namespace godwit::apps {

// What a context must hold at least.
inline constexpr size_t kLeastFillContext = 65;

struct StateFill {
  enum class Kind : uint8_t {
    kRandom,  // keys and values of deviation 1; recurrent states as a short prompt leaves them
    kZeros,
    kFile,  // what --state of run and chat keeps
  };
  Kind kind = Kind::kRandom;
  std::string path = {};  // of kFile

  friend bool operator==(const StateFill&, const StateFill&) = default;
};

// "random", "zeros", or a file. Errors: no such file.
[[nodiscard]] Result<StateFill> parse_state_fill(const std::string& text);

class StateFiller {
 public:
  // Errors: a file that is not a state of this model; a state that cannot be made.
  [[nodiscard]] static Result<StateFiller> create(engine::Session& session, const StateFill& fill,
                                                  uint64_t seed);

  // Makes the timeline n_positions long. There are no logits until something is appended. Errors:
  // more than the context or the file holds; with recurrent states, fewer than the file holds.
  [[nodiscard]] Status fill(engine::Session& session, size_t n_positions);

  // Of a file; 0: as many as one likes.
  [[nodiscard]] size_t n_file_positions() const { return file_tokens_.size(); }

 private:
  [[nodiscard]] Status fill_from_file(engine::Session& session, size_t n_positions);

  StateFill fill_;
  std::vector<std::byte> positions_;  // a pattern, repeated
  size_t n_pattern_ = 0;              // positions in it
  std::vector<std::byte> fixed_;
  std::vector<TokenId> file_tokens_;
  size_t n_filled_ = 0;  // positions that hold the pattern
};

// One position after the other, as backend/state.h lays them out.
[[nodiscard]] std::vector<std::byte> random_positions(const program::Program& program,
                                                      const backend::StateShape& shape,
                                                      size_t n_positions, uint64_t seed);

}  // namespace godwit::apps
