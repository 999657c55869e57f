// Which files of a repository are the model that a user means: by quantisation as llama.cpp reads
// "-hf org/name:quant" (upper and lower case alike), or by name. Pure: works on a list, fetched or
// cached.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/listing.h"

namespace godwit::hub {

// The files to fetch, the first to open in front; more than one for a split model. No quantisation:
// Q4_K_M, then Q8_0, then the first GGUF by name. Helpers of a model (mmproj, imatrix, drafts)
// are never chosen by quantisation. Errors name the files that there are.
[[nodiscard]] Result<std::vector<RepoFile>> choose_files(std::span<const RepoFile> files,
                                                         std::string_view quant);

// The file of this path and, if it is a shard, the others. Any file, not only GGUF.
[[nodiscard]] Result<std::vector<RepoFile>> choose_named(std::span<const RepoFile> files,
                                                         std::string_view path);

// "Q4_K_M" of "folder/Name-Q4_K_M-00001-of-00002.gguf", in capitals; empty if there is none.
[[nodiscard]] std::string quant_of(std::string_view path);

// Whether the file is a model and not another shard of one or a helper.
[[nodiscard]] bool is_model_start(std::string_view path);

}  // namespace godwit::hub
