// A session's timeline in a file: tokens, state, and a note of the caller's (a chat keeps its
// messages there). Version 1, little-endian: a header of kStateHeaderBytes, then four sections
// without gaps: tokens (4 bytes each), positions, fixed part, note. The header has a checksum of
// each section and of itself. Files are input that nobody vouches for: nothing is believed or
// allocated before it has been checked, a file that is not refused whole is taken whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/state.h"
#include "base/checksum.h"
#include "base/result.h"
#include "base/types.h"

namespace godwit::engine {

class Session;

inline constexpr std::string_view kStateMagic = "godwitST";
inline constexpr uint32_t kStateVersion = 1;
inline constexpr uint64_t kStateHeaderBytes = 112;
inline constexpr uint64_t kMaxStateNoteBytes = uint64_t{64} << 20;

// What a file must have been written for, to be of use here.
struct StateOwner {
  Digest model = {};
  backend::StateShape shape;
  uint64_t n_context = 0;  // positions there is room for
  uint64_t n_vocab = 0;
};
[[nodiscard]] StateOwner state_owner(const Session& session);

// Views into the bytes that were parsed.
struct StateFile {
  std::vector<TokenId> tokens;
  backend::StateSource state;
  std::string_view note;

  // Errors: another kind of file, a newer version, cut short or too long, damaged, of another
  // model or KV type, more tokens than the context holds, a token outside the vocabulary.
  [[nodiscard]] static Result<StateFile> parse(std::span<const std::byte> bytes,
                                               const StateOwner& owner);
};

// Writes the session's timeline; needs little memory whatever its length. An existing file is
// replaced in one step, or stays as it is.
[[nodiscard]] Status save_session(const Session& session, const std::filesystem::path& path,
                                  std::string_view note);

// Makes the session's timeline that of the file and returns its note. Going on from there gives
// the bits that the saved session would have given. On an error the session is as before.
[[nodiscard]] Result<std::string> restore_session(Session& session,
                                                  const std::filesystem::path& path);

}  // namespace godwit::engine
