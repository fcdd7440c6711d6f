// SPDX-License-Identifier: Apache-2.0
// A body as pieces: ranges of the client's own bytes with edits between them. Nothing is copied but the
// edits; the pieces go to the socket as one gather write.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "router/protocol/json_members.h"

namespace eldr::router {

/// Pieces in order. Views point into the scanned text and into strings this object owns: it may be moved, and
/// must not outlive the text. Not thread-safe.
class SplicedBody {
 public:
  void append_view(std::string_view bytes);  ///< bytes that outlive this object
  void append_owned(std::string bytes);      ///< bytes that this object keeps
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  std::size_t size() const { return size_; }
  std::string to_string() const;  ///< one string, for tests and logs of sizes

 private:
  std::vector<std::string_view> pieces_;
  std::deque<std::string> owned_;  // a deque: growing never moves a string that a view points into
  std::size_t size_ = 0;
};

/// What to do with members of a name, at the top level only. Every duplicate is edited, so that it does not
/// matter which one a reader takes.
struct JsonEdit {
  enum class What {
    kSet,             ///< replace the value; add the member at the end when it is absent
    kReplaceIfThere,  ///< replace the value; absent stays absent
    kRemove,          ///< take name, value and one comma away
  };
  std::string_view name;  ///< plain: nothing in it that JSON must escape
  What what = What::kSet;
  std::string value;  ///< JSON text
};

/// The object's text with the edits made, whitespace around the object kept.
SplicedBody splice(const JsonObject& object, const std::vector<JsonEdit>& edits);

}  // namespace eldr::router
