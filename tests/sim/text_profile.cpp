// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/text_profile.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <string>
#include <vector>

namespace eldr::sim {
namespace {

constexpr std::size_t kMostRead = 16U << 10U;

struct Decoded {
  char32_t code = 0;
  std::size_t length = 1;
};

// Lenient UTF-8: a bad byte counts as itself.
Decoded decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  if (length == 1 || at + length > text.size()) {
    return {first, 1};
  }
  char32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    code = (code << 6U) | (byte(at + i) & 0x3FU);
  }
  return {code, length};
}

struct Script {
  char32_t from;
  char32_t to;
  Language language;
};
constexpr std::array<Script, 6> kScripts{{{0x3040, 0x30FF, Language::kJa},
                                          {0x0400, 0x04FF, Language::kRu},
                                          {0x0980, 0x09FF, Language::kBn},
                                          {0x0E00, 0x0E7F, Language::kTh},
                                          {0x0C00, 0x0C7F, Language::kTe},
                                          {0x4E00, 0x9FFF, Language::kZh}}};

struct Stopwords {
  Language language;
  std::initializer_list<std::string_view> words;
};
const std::array<Stopwords, 5> kStopwords{{
    {Language::kEn,
     {"the", "of",  "and", "to",   "is",     "in",       "that", "how",  "many", "he",  "she", "with",
      "for", "was", "are", "this", "his",    "her",      "my",   "what", "if",   "it",  "has", "have",
      "on",  "at",  "by",  "each", "return", "function", "you",  "does", "they", "from"}},
    {Language::kDe,
     {"der", "die",  "das",  "und",   "ist",  "ein",   "eine", "einen", "einer", "nicht", "mit", "auf",
      "für", "von",  "den",  "dem",   "wie",  "viele", "wird", "sie",   "er",    "ich",   "zu",  "im",
      "hat", "oder", "sich", "jeden", "wenn", "mein",  "kann", "ihr",   "aus",   "dass",  "bei"}},
    {Language::kFr,
     {"le",   "la",   "les", "des",   "et",     "est",  "une", "un",      "du", "dans", "que", "qui",
      "pour", "sur",  "au",  "il",    "elle",   "avec", "par", "combien", "je", "mon",  "ma",  "ne",
      "pas",  "sont", "ce",  "cette", "chaque", "ses",  "son", "aux",     "si", "d",    "l"}},
    {Language::kEs,
     {"el",      "los",  "las", "y",  "es", "una",   "del", "en", "para", "por", "con", "cuánto", "cuántos",
      "cuántas", "cada", "se",  "su", "al", "tiene", "más", "lo", "como", "si",  "él",  "ella"}},
    {Language::kSw,
     {"na",   "ya",   "wa",   "kwa",   "ni",  "ana", "kila",  "za",   "la",    "katika", "alikuwa", "ngapi",
      "yake", "wake", "kama", "kiasi", "cha", "vya", "ikiwa", "gani", "mbili", "huyo",   "hiyo"}},
}};

struct Words {
  Domain domain;
  double weight;
  std::initializer_list<std::string_view> prefixes;
};
// Beginnings of words, so that inflected forms count.
const std::array<Words, 5> kWords{{
    {Domain::kCode,
     1.0,
     {"python",   "javascript", "typescript",    "java",      "rust",        "golang",    "sql",
      "html",     "function",   "fonction",      "funktion",  "code",        "quellcode", "program",
      "algorith", "compil",     "array",         "string",    "zeichenkett", "tableau",   "class",
      "klasse",   "classe",     "method",        "methode",   "méthode",     "variable",  "debug",
      "api",      "json",       "schnittstelle", "regex",     "script",      "skript",    "loop",
      "schleife", "boucle",     "thread",        "recurs",    "rekurs",      "récurs",    "unittest",
      "testfäll", "refactor",   "stack",         "bug",       "exception",   "ausnahme",  "implement",
      "développ", "c++",        "int",           "bool",      "def",         "struct",    "parser",
      "endpoint", "cache",      "deadlock",      "datenbank", "webpage",     "website"}},
    {Domain::kMath, 1.0, {"combien",   "calcul",    "berechn",  "solve",    "löse",      "résou",
                          "equation",  "gleichung", "équation", "integral", "intégral",  "derivative",
                          "ableitung", "dérivée",   "theorem",  "théorème", "beweis",    "prove",
                          "démontr",   "matrix",    "matrice",  "percent",  "prozent",   "pourcent",
                          "total",     "insgesamt", "sum",      "summe",    "somme",     "fraction",
                          "bruch",     "cuánto",    "ngapi",    "dollar",   "average",   "durchschnitt",
                          "moyenne",   "times",     "twice",    "half",     "probabil",  "wahrschein",
                          "triangle",  "dreieck",   "polynom",  "equals",   "remaining", "altogether",
                          "km/h",      "mph",       "x^2",      "km"}},
    {Domain::kMedical,
     1.3,
     {"patient", "symptom", "diagnos",   "therap",   "thérap",   "treatment", "behandlung", "traitement",
      "douleur", "schmerz", "pain",      "fever",    "fieber",   "fièvre",    "dose",       "dosis",
      "dosage",  "mg",      "clinic",    "klinik",   "clinique", "doctor",    "arzt",       "ärzt",
      "médecin", "disease", "krankheit", "maladie",  "blood",    "blut",      "sang",       "infecti",
      "infekti", "medic",   "medik",     "médic",    "surg",     "operation", "chirurg",    "hyperten",
      "diabet",  "diabèt",  "cardi",     "kardio",   "asthm",    "anamnes",   "cough",      "husten",
      "toux",    "antibio", "nausea",    "übelkeit", "nausée",   "x-ray",     "ecg",        "ekg",
      "mrt",     "irm",     "tumor",     "tumeur",   "biops",    "allerg"}},
    {Domain::kLegal,
     1.3,
     {"contract",  "vertrag",   "vertrags",    "contrat",   "clause",    "klausel",   "court",
      "gericht",   "tribunal",  "plaintiff",   "kläger",    "demandeur", "defendant", "beklagt",
      "défendeur", "statut",    "gesetz",      "loi",       "tenant",    "mieter",    "locataire",
      "landlord",  "vermieter", "bailleur",    "bail",      "liabil",    "haftung",   "responsabil",
      "lawyer",    "anwalt",    "rechtsanw",   "avocat",    "legal",     "juridi",    "recht",
      "kündig",    "licenci",   "terminat",    "breach",    "verletz",   "violation", "damages",
      "schadens",  "dommages",  "lawsuit",     "klage",     "litig",     "litige",    "jurisd",
      "paragraph", "§",         "bgb",         "article",   "arbitrat",  "schieds",   "arbitrage",
      "gdpr",      "dsgvo",     "rgpd",        "testament", "héritag",   "erbe",      "copyright",
      "urheber",   "warranty",  "gewährleist", "indemn",    "negligen",  "fahrlässig"}},
    {Domain::kGeneral, 0.0, {}},
}};

// Symbols and phrases that stand for a domain by themselves.
struct Phrases {
  Domain domain;
  double weight;
  std::initializer_list<std::string_view> phrases;
};
const std::array<Phrases, 2> kPhrases{{
    {Domain::kCode,
     3.0,
     {"def ", "import ", "return ", "->", ">>>", "():", "){", ") {", "};", "==", "();", "```", "#include",
      "SELECT ", "std::", "console.", "__", "List[", "self."}},
    {Domain::kMath, 2.5, {"how many", "How many",   "how much", "How much", "wie viel", "Wie viel",
                          "Combien",  "combien",    "Cuánt",    "cuánt",    "¿",        "多少",
                          "几",       "сколько",    "Сколько",  "いくつ",   "どれ",     "何",
                          "いくら",   "কত",         "กี่",        "เท่าไ",     "ఎన్ని",      "ఎంత",
                          "ngapi",    "kiasi gani", "x^",       "\\frac",   "= 0",      "f(x)"}},
}};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) != 0 || u >= 0x80 || c == '+' || c == '/' || c == '^') {
      word += static_cast<char>(std::tolower(u));
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) {
    words.push_back(std::move(word));
  }
  return words;
}

Language language_of(std::string_view text, const std::vector<std::string>& words) {
  std::array<int, kLanguages> seen{};
  int foreign = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Decoded d = decode(text, at);
    at += d.length;
    for (const Script& script : kScripts) {
      if (d.code >= script.from && d.code <= script.to) {
        ++seen[static_cast<std::size_t>(script.language)];
        ++foreign;
      }
    }
  }
  // Japanese mixes its own letters with Chinese ones; a few foreign letters in a Latin text decide nothing.
  if (foreign * 8 > static_cast<int>(text.size()) / 4) {
    if (seen[static_cast<std::size_t>(Language::kJa)] * 10 > foreign) {
      return Language::kJa;
    }
    return static_cast<Language>(std::max_element(seen.begin(), seen.end()) - seen.begin());
  }
  std::array<int, kLanguages> score{};
  for (const std::string& word : words) {
    for (const Stopwords& s : kStopwords) {
      if (std::find(s.words.begin(), s.words.end(), word) != s.words.end()) {
        ++score[static_cast<std::size_t>(s.language)];
      }
    }
  }
  const auto best = std::max_element(score.begin(), score.end());
  return *best == 0 ? Language::kOther : static_cast<Language>(best - score.begin());
}

int occurrences(std::string_view text, std::string_view phrase) {
  int n = 0;
  for (std::size_t at = text.find(phrase); at != std::string_view::npos && n < 5;
       at = text.find(phrase, at + 1)) {
    ++n;
  }
  return n;
}

// Numbers, found by their digits: some scripts put no spaces around them.
int numbers_in(std::string_view text) {
  int n = 0;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    n += digit && !in_number ? 1 : 0;
    in_number = digit || (in_number && (c == '.' || c == ','));
  }
  return n;
}

Domain domain_of(std::string_view text, const std::vector<std::string>& words) {
  std::array<double, kDomains> score{};
  for (const std::string& word : words) {
    for (const Words& group : kWords) {
      // Short beginnings must be the whole word: "int" is not in "into".
      const bool hit =
          std::any_of(group.prefixes.begin(), group.prefixes.end(), [&](std::string_view prefix) {
            return prefix.size() <= 4 ? word == prefix || word == std::string(prefix) + "s"
                                      : word.starts_with(prefix);
          });
      if (hit) {
        score[static_cast<std::size_t>(group.domain)] += group.weight;
      }
    }
  }
  for (const Phrases& group : kPhrases) {
    for (const std::string_view phrase : group.phrases) {
      score[static_cast<std::size_t>(group.domain)] += group.weight * occurrences(text, phrase);
    }
  }
  // A word problem in any language: several numbers in the text.
  score[static_cast<std::size_t>(Domain::kMath)] += 0.5 * std::min(numbers_in(text), 8);

  const auto best = std::max_element(score.begin(), score.end());
  return *best < 1.0 ? Domain::kGeneral : static_cast<Domain>(best - score.begin());
}

}  // namespace

std::string_view name_of(Domain domain) {
  constexpr std::array<std::string_view, kDomains> kNames{"general", "code", "math", "medical", "legal"};
  return kNames[static_cast<std::size_t>(domain)];
}

std::string_view name_of(Language language) {
  constexpr std::array<std::string_view, kLanguages> kNames{"en", "de", "fr", "es", "sw", "zh",
                                                            "ja", "ru", "bn", "th", "te", "other"};
  return kNames[static_cast<std::size_t>(language)];
}

TextProfile profile_of(std::string_view text) {
  text = text.substr(0, kMostRead);
  const std::vector<std::string> words = words_of(text);
  return {domain_of(text, words), language_of(text, words)};
}

}  // namespace eldr::sim
