// Names that come from a user or a server, and what is allowed in them: repositories, files,
// commits, checksums. What passes here may become part of a path or a URL.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace godwit::hub {

struct ModelReference {
  std::string repo;   // "org/name"
  std::string quant;  // as written; empty: the default
};

// "org/name" or "org/name:quant".
[[nodiscard]] Result<ModelReference> parse_reference(std::string_view text);

// Whether the text is "org/name" as the Hub allows it: letters, digits and ".-_", no ".." or "--".
[[nodiscard]] bool is_repo_id(std::string_view text);

// Whether a file's name in a repository, with "/" between folders, stays below whatever it is
// joined to, and can be shown.
[[nodiscard]] bool is_inner_path(std::string_view path);

[[nodiscard]] bool is_lower_hex(std::string_view text, size_t length);

}  // namespace godwit::hub
