// Files that are GGUF but no language model of the kind Godwit runs, told apart from merely unknown
// architectures so that the message can say what they are: vision projectors, LoRA adapters,
// embedding models, diffusion and recurrent models.
#pragma once

#include <string_view>

#include "base/result.h"
#include "gguf/file.h"

namespace godwit::model {

// Errors: one line that says what the file is and why it is not run.
[[nodiscard]] Status refuse_out_of_scope(const gguf::File& file, std::string_view architecture);

}  // namespace godwit::model
