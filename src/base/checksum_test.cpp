// Checksums: the published values, and that pieces add up to the whole.
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace godwit {
namespace {

TEST(Checksum, IsXxh3Of128Bits) {
  // Of no bytes, as the xxhash specification gives it.
  EXPECT_EQ(digest_of({}), (Digest{0x6001c324468d497f, 0x99aa06d3014798d8}));
}

TEST(Checksum, PiecesAddUpToTheWhole) {
  const std::string text(5000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  for (const size_t piece : {1u, 63u, 1024u, 4999u}) {
    Checksum sum;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      sum.update(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(sum.digest(), digest_of(bytes)) << piece;
  }
}

TEST(Checksum, TextsDoNotRunTogether) {
  Checksum first;
  first.update_text("ab");
  first.update_text("c");
  Checksum second;
  second.update_text("a");
  second.update_text("bc");
  EXPECT_NE(first.digest(), second.digest());
}

}  // namespace
}  // namespace godwit
