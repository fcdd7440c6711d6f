// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/splice.h"

#include <utility>

namespace eldr::router {
namespace {

const JsonEdit* edit_for(const JsonObject& object, const JsonMember& member,
                         const std::vector<JsonEdit>& edits, std::vector<bool>& used) {
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (!object.is_named(member, edits[i].name)) continue;
    used[i] = true;
    return &edits[i];
  }
  return nullptr;
}

}  // namespace

void SplicedBody::append_view(std::string_view bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  pieces_.push_back(bytes);
}

void SplicedBody::append_owned(std::string bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  pieces_.emplace_back(owned_.emplace_back(std::move(bytes)));
}

std::string SplicedBody::to_string() const {
  std::string text;
  text.reserve(size_);
  for (const auto piece : pieces_) text += piece;
  return text;
}

SplicedBody splice(const JsonObject& object, const std::vector<JsonEdit>& edits) {
  SplicedBody body;
  const std::string_view text = object.text();
  const auto& members = object.members();
  std::vector<bool> used(edits.size(), false);
  std::size_t copied = 0;     // everything before this offset is in the body or was taken away
  std::size_t last_kept = 0;  // end of the last value that stayed
  bool kept_any = false;
  const auto copy_until = [&](std::size_t end) {
    body.append_view(text.substr(copied, end - copied));
    copied = end;
  };

  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto& member = members[i];
    const auto* edit = edit_for(object, member, edits, used);
    if (edit == nullptr) {
      last_kept = member.value_end;
      kept_any = true;
    } else if (edit->what != JsonEdit::What::kRemove) {
      copy_until(member.value_begin);
      body.append_owned(edit->value);
      copied = last_kept = member.value_end;
      kept_any = true;
    } else if (kept_any) {  // with the comma before it
      copy_until(last_kept);
      copied = last_kept = member.value_end;
    } else {  // nothing stands before it: with the comma after it, if there is one
      copy_until(member.key_begin);
      copied = i + 1 < members.size() ? members[i + 1].key_begin : member.value_end;
    }
  }

  copy_until(object.close());
  std::string added;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    if (used[i] || edits[i].what != JsonEdit::What::kSet) continue;
    if (kept_any || !added.empty()) added += ',';
    (added += '"').append(edits[i].name) += "\":";
    added += edits[i].value;
  }
  body.append_owned(std::move(added));
  copy_until(text.size());
  return body;
}

}  // namespace eldr::router
