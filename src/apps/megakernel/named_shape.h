// What the commands of the grader share: shapes by name, results into files.
#pragma once

#include <string>

#include "base/result.h"
#include "grader/graded_model.h"

namespace godwit::apps {

// Errors: an unknown name; the known ones are listed.
[[nodiscard]] Result<grader::GradedShape> named_shape(const std::string& name);
[[nodiscard]] Status write_text(const std::string& path, const std::string& text);

}  // namespace godwit::apps
