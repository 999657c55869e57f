#include "apps/megakernel/named_shape.h"

#include <fstream>

namespace godwit::apps {

Result<grader::GradedShape> named_shape(const std::string& name) {
  if (const grader::GradedShape* shape = grader::find_graded_shape(name); shape != nullptr) {
    return *shape;
  }
  std::string known;
  for (const grader::GradedShape& shape : grader::graded_shapes()) {
    known += known.empty() ? "" : ", ";
    known += shape.name;
  }
  return fail("model shape '{}' is not known; there are {}", name, known);
}

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << '\n';
  file.close();
  if (!file) return fail("{}: cannot be written", path);
  return {};
}

}  // namespace godwit::apps
