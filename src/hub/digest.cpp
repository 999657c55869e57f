#include "hub/digest.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

namespace godwit::hub {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string in_hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

DigestKind digest_kind(std::string_view checksum) {
  return checksum.size() == 40 ? DigestKind::kGitBlob : DigestKind::kSha256;
}

Result<std::string> digest_file(const std::filesystem::path& path, DigestKind kind,
                                const std::function<bool(uint64_t done)>& keep_going) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return fail("cannot read {}", path.string());

  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  const EVP_MD* method = kind == DigestKind::kSha256 ? EVP_sha256() : EVP_sha1();
  bool good = context != nullptr && EVP_DigestInit_ex(context.get(), method, nullptr) == 1;
  if (good && kind == DigestKind::kGitBlob) {
    const std::string header = fmt::format("blob {}", bytes);
    good = EVP_DigestUpdate(context.get(), header.c_str(), header.size() + 1) == 1;  // with its 0
  }
  std::vector<char> chunk(kChunkBytes);
  uint64_t done = 0;
  while (good && (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) ||
                  file.gcount() > 0)) {
    const auto n = static_cast<size_t>(file.gcount());
    good = EVP_DigestUpdate(context.get(), chunk.data(), n) == 1;
    done += n;
    if (keep_going && !keep_going(done)) return fail("interrupted");
  }
  if (file.bad() || done != bytes) return fail("cannot read {}", path.string());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  good = good && EVP_DigestFinal_ex(context.get(), digest.data(), &length) == 1;
  if (!good) return fail("OpenSSL cannot compute a checksum of {}", path.string());
  return in_hex(std::span(digest).first(length));
}

}  // namespace godwit::hub
