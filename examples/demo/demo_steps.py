"""A step of one's own: how often each longer word stands on a page."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from recipes_orchestration.pages.page import Page
from recipes_orchestration.steps.step import Context, step


@step(version="1")
def count_words(_page: Page, context: Context) -> dict[str, Any]:
    """Counts the words of at least `min_length` letters in the text that the page was read as."""
    min_length = int(context.params.get("min_length", 1))
    text = str(context.needs["read"]["text"]).lower()
    words = [word for word in re.findall(r"[^\W\d_]+", text) if len(word) >= min_length]
    return {"words": len(words), "common": dict(Counter(words).most_common(10))}
