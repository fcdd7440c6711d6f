# SPDX-License-Identifier: Apache-2.0
"""Sentences that prompts are made of, one module a language.

Each module has DOMAINS: domain -> {"openings", "details", "questions": sentences, "slots": name -> values}. A sentence
may hold {slots} and {int:LOW:HIGH}.
"""

from . import de, en, fr

LANGUAGES = {"en": en.DOMAINS, "de": de.DOMAINS, "fr": fr.DOMAINS}
