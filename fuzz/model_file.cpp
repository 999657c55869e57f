// What a model file says beyond its format: a vocabulary, hyper-parameters, the shapes of tensors.
// The input is a file up to its data, which are zeros here. It is refused in one line, or gives a
// tokenizer whose ids lie in its vocabulary and a program with every weight in its place.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace godwit;

constexpr off_t kDataBytes = 1 << 20;

// A file in memory, under the name by which it can be opened again.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* head, std::size_t size) : fd_(memfd_create("model", 0)) {
    check(fd_ >= 0, "no file in memory");
    check(write(fd_, head, size) == static_cast<ssize_t>(size), "a short write into memory");
    check(ftruncate(fd_, static_cast<off_t>(size) + kDataBytes) == 0, "no room in memory");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Names of keys, tensors and tokens come from the file and may hold line breaks of their own.
void spoken(const Error& error) { check(!error.message.empty(), "a refusal without a message"); }

void try_tokenizer(const gguf::File& file) {
  using namespace tokenizer;
  const Result<Tokenizer> tokenizer = Tokenizer::load(file);
  if (!tokenizer) return spoken(tokenizer.error());
  constexpr std::string_view kText = " Hello 12\n\xC3\xA9<s></s> \xFF";
  for (const Specials specials : {Specials::kParse, Specials::kText}) {
    for (const TokenId id : tokenizer->encode(kText, specials, AddBos::kAsModelSays)) {
      check(id.value >= 0 && id.value < tokenizer->size(), "an id outside the vocabulary");
      check(tokenizer->bytes(id).data() != nullptr, "a token without text");
    }
  }
  for (const TokenId id : {tokenizer->bos(), tokenizer->eos()}) {
    check(!id.exists() || id.value < tokenizer->size(), "a special id outside the vocabulary");
  }
}

void try_model(const gguf::File& file) {
  const Result<model::Model> model = model::build_model(file, {.with_mtp = true});
  if (!model) return spoken(model.error());
  check(model->weights.size() == model->program.weights.size(), "weights without data");
  for (std::size_t i = 0; i < model->weights.size(); ++i) {
    const program::Weight& weight = model->program.weights[i];
    check(model->weights[i].size() == weight.rows * row_bytes(weight.type, weight.cols),
          "a weight whose data is not of its size");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const MemoryFile memory(data, size);
  const Result<gguf::File> file = gguf::File::open(memory.path());
  if (!file) {
    spoken(file.error());
    return 0;
  }
  try_tokenizer(*file);
  try_model(*file);
  return 0;
}
