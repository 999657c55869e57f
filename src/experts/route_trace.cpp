#include "experts/route_trace.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "os/mapped_file.h"

namespace godwit::experts {
namespace {

constexpr std::string_view kMagic = "godwit-route-trace";
constexpr size_t kQuotedBytes = 40;

// Text from the file, fit for one line of a message.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kQuotedBytes)) {
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  return out + (text.size() > kQuotedBytes ? "...'" : "'");
}

// Takes the next word off `rest`; empty at the end of the line.
std::string_view next_word(std::string_view& rest) {
  const size_t begin = std::min(rest.find_first_not_of(" \t\r"), rest.size());
  const size_t end = std::min(rest.find_first_of(" \t\r", begin), rest.size());
  const std::string_view word = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return word;
}

std::optional<uint64_t> to_number(std::string_view word) {
  uint64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [last, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || last != end) return std::nullopt;
  return value;
}

}  // namespace

class TraceParser {
 public:
  TraceParser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  Result<RouteTrace> parse() {
    std::string_view line;
    if (!next_line(line)) {
      return fail("{}: expected '{} 1 layers=L experts=E', found nothing", name_, kMagic);
    }
    if (auto header = read_header(line); !header) return at_line(std::move(header.error()));
    while (next_line(line)) {
      if (auto event = read_event(line); !event) return at_line(std::move(event.error()));
    }
    return std::move(trace_);
  }

 private:
  tl::unexpected<Error> at_line(Error error) const {
    return fail(std::move(error).with(fmt::format("{}, line {}", name_, line_)));
  }

  // The next line that says something.
  bool next_line(std::string_view& line) {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      const size_t first = line.find_first_not_of(" \t\r");
      if (first != std::string_view::npos && line[first] != '#') return true;
    }
    return false;
  }

  Status read_header(std::string_view line) {
    const std::string_view whole = line;
    if (next_word(line) != kMagic) {
      return fail("expected '{} 1 layers=L experts=E', found {}", kMagic, quoted(whole));
    }
    if (const auto version = next_word(line); version != "1") {
      return fail("expected version 1, found {}", quoted(version));
    }
    const auto n_layers = read_setting(next_word(line), "layers=", kMaxTraceLayers);
    if (!n_layers) return fail(n_layers.error());
    const auto n_experts = read_setting(next_word(line), "experts=", kMaxTraceExperts);
    if (!n_experts) return fail(n_experts.error());
    if (const auto more = next_word(line); !more.empty()) {
      return fail("expected the end of the line, found {}", quoted(more));
    }
    trace_.shape_ = {.n_layers = *n_layers, .n_experts = *n_experts};
    last_use_.assign(*n_experts, 0);
    return {};
  }

  static Result<uint32_t> read_setting(std::string_view word, std::string_view name, uint32_t max) {
    const auto value = word.starts_with(name) ? to_number(word.substr(name.size())) : std::nullopt;
    if (!value || *value == 0 || *value > max) {
      return fail("expected {}N with N from 1 to {}, found {}", name, max, quoted(word));
    }
    return static_cast<uint32_t>(*value);
  }

  Status read_event(std::string_view line) {
    const std::string_view token_word = next_word(line);
    const auto token = to_number(token_word);
    if (!token) return fail("expected a token's number, found {}", quoted(token_word));
    const bool first = trace_.events_.empty();
    if (!first && *token < trace_.events_.back().token) {
      return fail("token {} after token {}", *token, trace_.events_.back().token);
    }
    const std::string_view layer_word = next_word(line);
    const auto layer = to_number(layer_word);
    if (!layer || *layer >= trace_.shape_.n_layers) {
      return fail("expected a layer below {}, found {}", trace_.shape_.n_layers,
                  quoted(layer_word));
    }
    RouteTrace::Event event{.token = *token,
                            .layer = static_cast<uint32_t>(*layer),
                            .n_experts = 0,
                            .first = trace_.ids_.size()};
    if (first || *token != trace_.events_.back().token) ++trace_.n_tokens_;
    if (auto read = read_experts(line, event); !read) return read;
    trace_.max_in_use_ = std::max(trace_.max_in_use_, event.n_experts);
    trace_.events_.push_back(event);
    return {};
  }

  Status read_experts(std::string_view line, RouteTrace::Event& event) {
    for (std::string_view word = next_word(line); !word.empty(); word = next_word(line)) {
      const auto expert = to_number(word);
      if (!expert || *expert >= trace_.shape_.n_experts) {
        return fail("expected an expert below {}, found {}", trace_.shape_.n_experts, quoted(word));
      }
      // The line that named an expert last: constant cost, however long lines are.
      uint64_t& last_line = last_use_[*expert];
      if (last_line == line_) return fail("expert {} stands there twice", *expert);
      last_line = line_;
      trace_.ids_.push_back(static_cast<uint32_t>(*expert));
      ++event.n_experts;
    }
    if (event.n_experts == 0) return fail("expected experts after the layer, found none");
    return {};
  }

  std::string_view rest_;
  std::string_view name_;
  uint64_t line_ = 0;
  RouteTrace trace_;
  std::vector<uint64_t> last_use_;  // of each expert: the line that named it
};

Result<RouteTrace> RouteTrace::parse(std::string_view text, std::string_view name) {
  return TraceParser(text, name).parse();
}

Result<RouteTrace> RouteTrace::open(const std::filesystem::path& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(file.error());
  const std::span<const std::byte> bytes = file->bytes();
  return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

Result<RouteTraceWriter> RouteTraceWriter::create(const std::filesystem::path& path,
                                                  TraceShape shape) {
  std::ofstream out(path);
  out << fmt::format("{} 1 layers={} experts={}\n", kMagic, shape.n_layers, shape.n_experts);
  if (!out.flush()) return fail("cannot write {}", path.string());
  return RouteTraceWriter(path, std::move(out));
}

void RouteTraceWriter::append(uint64_t token, uint32_t layer, std::span<const uint32_t> experts) {
  out_ << token << ' ' << layer;
  for (const uint32_t expert : experts) out_ << ' ' << expert;
  out_ << '\n';
}

Status RouteTraceWriter::finish() {
  if (out_.flush()) return {};
  return fail("cannot write {}: the disk may be full", path_.string());
}

}  // namespace godwit::experts
