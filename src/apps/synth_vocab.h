// The vocabulary of a synthetic model: byte-level BPE that encodes any text byte by byte, so that
// every reader of GGUF accepts it. Ids 0..255 are the bytes in order, 256 is the one merge there
// is, the last three are special tokens, and all between are words that no text encodes to.
#pragma once

#include <cstdint>
#include <vector>

#include "gguf/file.h"

namespace godwit::apps {

// Appends the tokenizer's keys. vocab >= 260.
void append_vocab(uint32_t vocab, std::vector<gguf::KeyValue>& metadata);

}  // namespace godwit::apps
