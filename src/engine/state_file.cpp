#include "engine/state_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/bits.h"
#include "engine/fingerprint.h"
#include "engine/session.h"
#include "os/mapped_file.h"
#include "os/new_file.h"

namespace godwit::engine {
namespace {

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(TokenId) == 4);

constexpr uint64_t kWriteBytes = uint64_t{1} << 20;

// As it lies in the file.
struct Header {
  std::array<char, 8> magic = {};
  uint32_t version = kStateVersion;
  uint32_t header_bytes = kStateHeaderBytes;
  Digest model = {};
  uint32_t k_type = 0;
  uint32_t v_type = 0;
  uint64_t position_bytes = 0;
  uint64_t fixed_bytes = 0;
  uint64_t n_tokens = 0;
  uint64_t note_bytes = 0;
  // Low halves of the digests of the sections, and of all that precedes the last one.
  uint64_t tokens_sum = 0;
  uint64_t positions_sum = 0;
  uint64_t fixed_sum = 0;
  uint64_t note_sum = 0;
  uint64_t header_sum = 0;
};
static_assert(sizeof(Header) == kStateHeaderBytes);

uint64_t sum_of(std::span<const std::byte> bytes) { return digest_of(bytes)[0]; }

uint64_t header_sum(const Header& header) {
  return sum_of(std::as_bytes(std::span(&header, 1)).first(sizeof(Header) - sizeof(uint64_t)));
}

Header header_for(const StateOwner& owner, size_t n_tokens, size_t note_bytes) {
  Header header{.model = owner.model,
                .k_type = static_cast<uint32_t>(owner.shape.k_type),
                .v_type = static_cast<uint32_t>(owner.shape.v_type),
                .position_bytes = owner.shape.position_bytes,
                .fixed_bytes = owner.shape.fixed_bytes,
                .n_tokens = n_tokens,
                .note_bytes = note_bytes};
  std::copy(kStateMagic.begin(), kStateMagic.end(), header.magic.begin());
  return header;
}

// Magic, version, and that the header is the one that was written.
Result<Header> read_header(std::span<const std::byte> bytes) {
  Header header;
  const size_t n = std::min(bytes.size(), sizeof header);
  // Of an empty file there is no first byte to point at.
  if (n > 0) std::memcpy(&header, bytes.data(), n);
  if (n < kStateMagic.size() ||
      std::memcmp(bytes.data(), kStateMagic.data(), kStateMagic.size()) != 0) {
    return fail("not a saved state: expected '{}' at byte 0", kStateMagic);
  }
  if (n < sizeof header) {
    return fail("cut short: {} bytes, a saved state has a header of {}", n, sizeof header);
  }
  if (header.version != kStateVersion) {
    return fail("a saved state of version {}; this program reads version {}", header.version,
                kStateVersion);
  }
  if (header.header_bytes != kStateHeaderBytes || header.header_sum != header_sum(header)) {
    return fail("damaged: the checksum of the header at byte 0 is wrong");
  }
  return header;
}

std::string type_name(uint32_t id) {
  const TensorGeometry* const geometry = find_tensor_geometry(id);
  return geometry != nullptr ? std::string(geometry->name) : fmt::format("type {}", id);
}

// That the header speaks of this model. An intact header of another program may say anything.
Status check_owner(const Header& header, const StateOwner& owner) {
  if (header.model != owner.model) {
    return fail(
        "saved with another model, another -c of a model whose positions depend on it, or"
        " by a version that computes otherwise (fingerprint {:016x}, here {:016x})",
        header.model[0], owner.model[0]);
  }
  const Header expected = header_for(owner, 0, 0);
  if (header.k_type != expected.k_type || header.v_type != expected.v_type) {
    return fail("saved with KV types {} and {}, here they are {} and {} (-ctk, -ctv)",
                type_name(header.k_type), type_name(header.v_type), type_name(expected.k_type),
                type_name(expected.v_type));
  }
  if (header.position_bytes != expected.position_bytes ||
      header.fixed_bytes != expected.fixed_bytes) {
    return fail(
        "a state of {} bytes per position and {} besides; this model has {} and {} (with its head "
        "for further tokens, --spec-type draft-mtp, it has more)",
        header.position_bytes, header.fixed_bytes, expected.position_bytes, expected.fixed_bytes);
  }
  if (header.n_tokens > owner.n_context) {
    return fail("saved with {} tokens, the context holds {} (-c)", header.n_tokens,
                owner.n_context);
  }
  if (header.note_bytes > kMaxStateNoteBytes) {
    return fail("a note of {} bytes; at most {} are expected", header.note_bytes,
                kMaxStateNoteBytes);
  }
  return {};
}

// What a header's sections take together with it; nullopt when 64 bits do not count them.
std::optional<uint64_t> file_bytes(const Header& header) {
  const auto positions = checked_mul(header.n_tokens, header.position_bytes);
  const auto tokens = checked_mul(header.n_tokens, sizeof(TokenId));
  if (!positions || !tokens) return std::nullopt;
  std::optional<uint64_t> sum = kStateHeaderBytes;
  for (const uint64_t part : {*tokens, *positions, header.fixed_bytes, header.note_bytes}) {
    if (sum) sum = checked_add(*sum, part);
  }
  return sum;
}

// Takes the sections off the bytes, one after the other.
class Sections {
 public:
  explicit Sections(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<std::span<const std::byte>> take(const char* what, uint64_t size, uint64_t sum) {
    const std::span<const std::byte> section = bytes_.subspan(at_, size);
    if (sum_of(section) != sum) {
      return fail("damaged: the checksum of the {} at byte {} is wrong", what, at_);
    }
    at_ += size;
    return section;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = kStateHeaderBytes;
};

Result<std::vector<TokenId>> read_tokens(std::span<const std::byte> bytes, uint64_t n_vocab) {
  std::vector<TokenId> tokens(bytes.size() / sizeof(TokenId));
  if (!tokens.empty()) std::memcpy(tokens.data(), bytes.data(), bytes.size());
  for (const TokenId token : tokens) {
    if (token.value < 0 || static_cast<uint64_t>(token.value) >= n_vocab) {
      return fail("token {} is outside the vocabulary of {}", token.value, n_vocab);
    }
  }
  return tokens;
}

// Appends a section and returns its checksum.
Result<uint64_t> append(os::NewFile& file, std::span<const std::byte> bytes) {
  if (Status s = file.append(bytes); !s) return fail(s.error());
  return sum_of(bytes);
}

// The same of the positions, some at a time.
Result<uint64_t> append_positions(os::NewFile& file, const Session& session,
                                  const backend::StateShape& shape) {
  const uint64_t n_tokens = session.tokens().size();
  const uint64_t at_once =
      std::max<uint64_t>(1, kWriteBytes / std::max<uint64_t>(1, shape.position_bytes));
  std::vector<std::byte> buffer(std::min(at_once, n_tokens) * shape.position_bytes);
  Checksum sum;
  for (uint64_t at = 0; at < n_tokens; at += at_once) {
    const backend::PositionRange range{at, std::min(at + at_once, n_tokens)};
    const auto part = std::span(buffer).first(range.size() * shape.position_bytes);
    session.export_state(range, {.positions = part});
    if (Status s = file.append(part); !s) return fail(s.error());
    sum.update(part);
  }
  return sum.digest()[0];
}

Status write_state(os::NewFile& file, const Session& session, std::string_view note) {
  const StateOwner owner = state_owner(session);
  Header header = header_for(owner, session.tokens().size(), note.size());
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> fixed(owner.shape.fixed_bytes);
  session.export_state({0, header.n_tokens}, {.fixed = fixed});
  if (Status s = file.append(head); !s) return s;
  const Result<uint64_t> tokens = append(file, std::as_bytes(session.tokens()));
  if (!tokens) return fail(tokens.error());
  const Result<uint64_t> positions = append_positions(file, session, owner.shape);
  if (!positions) return fail(positions.error());
  const Result<uint64_t> rest = append(file, fixed);
  if (!rest) return fail(rest.error());
  const Result<uint64_t> last = append(file, std::as_bytes(std::span(note)));
  if (!last) return fail(last.error());
  header.tokens_sum = *tokens;
  header.positions_sum = *positions;
  header.fixed_sum = *rest;
  header.note_sum = *last;
  header.header_sum = header_sum(header);
  if (Status s = file.overwrite(0, head); !s) return s;
  return file.commit();
}

}  // namespace

StateOwner state_owner(const Session& session) {
  const Engine& engine = session.engine();
  return {.model = fingerprint_of(engine.file(), engine.program()),
          .shape = session.state_shape(),
          .n_context = engine.plan().n_context,
          .n_vocab = engine.program().n_vocab};
}

Result<StateFile> StateFile::parse(std::span<const std::byte> bytes, const StateOwner& owner) {
  const Result<Header> header = read_header(bytes);
  if (!header) return fail(header.error());
  if (Status s = check_owner(*header, owner); !s) return fail(s.error());
  const std::optional<uint64_t> expected = file_bytes(*header);
  if (!expected || *expected != bytes.size()) {
    return fail("{}: {} tokens take {} bytes, the file has {}",
                expected && *expected < bytes.size() ? "too long" : "cut short", header->n_tokens,
                expected ? fmt::format("{}", *expected) : "more than 2^64", bytes.size());
  }
  // The sizes add up to the file's, so each section lies inside it.
  Sections sections(bytes);
  const auto tokens =
      sections.take("tokens", header->n_tokens * sizeof(TokenId), header->tokens_sum);
  if (!tokens) return fail(tokens.error());
  const auto positions = sections.take(
      "state of positions", header->n_tokens * header->position_bytes, header->positions_sum);
  if (!positions) return fail(positions.error());
  const auto fixed = sections.take("fixed state", header->fixed_bytes, header->fixed_sum);
  if (!fixed) return fail(fixed.error());
  const auto note = sections.take("note", header->note_bytes, header->note_sum);
  if (!note) return fail(note.error());
  Result<std::vector<TokenId>> ids = read_tokens(*tokens, owner.n_vocab);
  if (!ids) return fail(std::move(ids).error());
  return StateFile{.tokens = *std::move(ids),
                   .state = {.positions = *positions, .fixed = *fixed},
                   .note = {reinterpret_cast<const char*>(note->data()), note->size()}};
}

Status save_session(const Session& session, const std::filesystem::path& path,
                    std::string_view note) {
  if (note.size() > kMaxStateNoteBytes) {
    return fail("a note of {} bytes is too long to be saved", note.size());
  }
  Result<os::NewFile> file = os::NewFile::create(path);
  if (!file) return fail(std::move(file).error());
  return write_state(*file, session, note);
}

Result<std::string> restore_session(Session& session, const std::filesystem::path& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(file.error());
  Result<StateFile> saved = StateFile::parse(file->bytes(), state_owner(session));
  if (!saved) return fail(std::move(saved).error().with(path.string()));
  session.restore(saved->tokens, saved->state);
  return std::string(saved->note);
}

}  // namespace godwit::engine
