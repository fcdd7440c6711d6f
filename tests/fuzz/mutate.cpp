// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace eldr::fuzz {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

Bytes::iterator at(Bytes& bytes, std::size_t place) {
  return bytes.begin() + static_cast<std::ptrdiff_t>(place);
}

/// Numbers at the edges of what readers compare with.
std::uint64_t edge_number(Random& random) {
  constexpr std::array<std::uint64_t, 12> kEdges = {0,
                                                    1,
                                                    0x7f,
                                                    0xff,
                                                    0x7fff,
                                                    0xffff,
                                                    0x7fffffff,
                                                    0xffffffff,
                                                    0x100000000,
                                                    0x7fffffffffffffff,
                                                    0x8000000000000000,
                                                    ~0ULL};
  return kEdges[below(random, kEdges.size())] + below(random, 3) - 1;
}

void flip_bit(Bytes& bytes, Random& random) {
  bytes[below(random, bytes.size())] ^= static_cast<std::byte>(1U << below(random, 8));
}

void put_edge_number(Bytes& bytes, Random& random) {
  const std::uint64_t number = edge_number(random);
  const std::size_t place = below(random, bytes.size());
  const std::size_t width = std::min<std::size_t>(std::size_t{1} << below(random, 4), bytes.size() - place);
  std::memcpy(bytes.data() + place, &number, width);
}

void erase_part(Bytes& bytes, Random& random) {
  const std::size_t place = below(random, bytes.size());
  const std::size_t length = std::min(1 + below(random, 16), bytes.size() - place);
  bytes.erase(at(bytes, place), at(bytes, place + length));
}

void insert_part(Bytes& bytes, const Bytes& source, Random& random) {
  if (source.empty()) return;
  const std::size_t from = below(random, source.size());
  const std::size_t length = std::min(1 + below(random, 16), source.size() - from);
  const Bytes part(source.begin() + static_cast<std::ptrdiff_t>(from),
                   source.begin() + static_cast<std::ptrdiff_t>(from + length));
  bytes.insert(at(bytes, below(random, bytes.size() + 1)), part.begin(), part.end());
}

void overwrite_part(Bytes& bytes, const Bytes& source, Random& random) {
  if (source.empty()) return;
  const std::size_t from = below(random, source.size());
  const std::size_t to = below(random, bytes.size());
  const std::size_t length = std::min({1 + below(random, 32), source.size() - from, bytes.size() - to});
  std::memcpy(bytes.data() + to, source.data() + from, length);
}

/// Text is full of numbers: another digit keeps it well formed.
void change_digit(Bytes& bytes, Random& random) {
  const std::size_t start = below(random, bytes.size());
  for (std::size_t step = 0; step < bytes.size(); ++step) {
    std::byte& byte = bytes[(start + step) % bytes.size()];
    if (std::isdigit(static_cast<unsigned char>(byte)) == 0) continue;
    byte = static_cast<std::byte>('0' + below(random, 10));
    return;
  }
}

void truncate(Bytes& bytes, Random& random) { bytes.resize(below(random, bytes.size())); }

}  // namespace

Bytes mutate(const Bytes& input, const Bytes& other, Random& random) {
  Bytes bytes = input;
  const std::size_t limit = 2 * input.size() + 64;
  for (std::size_t rounds = 1 + below(random, 4); rounds > 0; --rounds) {
    if (bytes.empty()) bytes.push_back(static_cast<std::byte>(random()));
    switch (below(random, 9)) {
      case 0:
        bytes[below(random, bytes.size())] = static_cast<std::byte>(random());
        break;
      case 1:
        put_edge_number(bytes, random);
        break;
      case 2:
        erase_part(bytes, random);
        break;
      case 3:
        insert_part(bytes, bytes, random);
        break;
      case 4:
        insert_part(bytes, other, random);
        break;
      case 5:
        overwrite_part(bytes, other, random);
        break;
      case 6:
        change_digit(bytes, random);
        break;
      case 7:
        truncate(bytes, random);
        break;
      default:
        flip_bit(bytes, random);
        break;
    }
    bytes.resize(std::min(bytes.size(), limit));
  }
  return bytes;
}

}  // namespace eldr::fuzz
