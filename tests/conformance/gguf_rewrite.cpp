// Reads a GGUF file and writes it again: usage: godwit_gguf_rewrite IN OUT. A peer's file goes in,
// and gguf_writer.py compares what comes out.
#include <cstdio>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"

namespace {

using namespace godwit;

Status rewrite(const char* from, const char* to) {
  const auto file = gguf::File::open(from);
  if (!file) return fail(file.error());
  std::vector<gguf::TensorSpec> specs;
  for (const gguf::Tensor& tensor : file->tensors()) {
    specs.push_back({.name = tensor.name, .type = tensor.type, .dims = tensor.dims});
  }
  auto writer = gguf::Writer::create(to, file->metadata(), specs);
  if (!writer) return fail(writer.error());
  for (const gguf::Tensor& tensor : file->tensors()) {
    if (auto appended = writer->append(tensor.data); !appended) return appended;
  }
  return writer->finish();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s IN OUT\n", argv[0]);
    return 2;
  }
  if (const Status status = rewrite(argv[1], argv[2]); !status) {
    std::fprintf(stderr, "%s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
