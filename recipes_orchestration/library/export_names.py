"""File names for exported pages: like the page's own path, and safe on every file system."""

from __future__ import annotations

import hashlib
import re
import unicodedata

__all__ = ["PageNames"]

_UNSAFE = re.compile('[%\\\\:*?"<>|\x00-\x1f\x7f-\x9f\ud800-\udfff]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")
_COMPONENT_BYTES = 180
_KEPT_BYTES = 140


class PageNames:
    """Gives each page of an export a path below the export's folder.

    The page id with `ending` after it, and `%XX` for what no file name may have; `..` and an empty
    component are written so as well, so no path leaves the folder. A name that would meet another
    page's, also where capitals and accents do not tell files apart, gets a hash of its page id.
    Memory is that of one folder's names, so pages are to come folder by folder.
    """

    def __init__(self, ending: str) -> None:
        self._ending = ending
        self._folders: dict[str, str] = {}
        self._folder = ""
        self._taken: dict[str, str] = {}

    def path(self, page_id: str) -> str:
        """The page's relative path, with `/`. The same page gets the same path again."""
        folder, _, name = page_id.rpartition("/")
        safe_folder = self._own(
            "/".join(self._folder_part(part) for part in folder.split("/")) if folder else "",
            folder,
            self._folders,
        )
        if folder != self._folder:
            self._folder, self._taken = folder, {}
        safe = self._own(_safe(name), page_id, self._taken)
        return f"{safe_folder}/{safe}{self._ending}" if safe_folder else f"{safe}{self._ending}"

    def _folder_part(self, part: str) -> str:
        safe = _safe(part)
        # A folder `a.txt` must not stand where the page `a` is written.
        if safe.casefold().endswith(self._ending.casefold()):
            stem = safe[: -len(self._ending)]
            safe = f"{stem}%2E{safe[len(stem) + 1 :]}"
        return safe

    @staticmethod
    def _own(safe: str, of: str, taken: dict[str, str]) -> str:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", safe).casefold())
        if taken.setdefault(folded, of) == of:
            return safe
        digest = hashlib.sha256(of.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{safe}%~{digest}"


def _safe(part: str) -> str:
    text = _UNSAFE.sub(lambda match: _escaped(match[0]), part)
    if text in ("", ".", "..") or _RESERVED.match(text):
        text = "".join(map(_escaped, text[:3])) + text[3:] if text else "%"
    elif text.startswith(".") or text.endswith((".", " ")):
        # Hidden on one system, cut off on another.
        if text.startswith("."):
            text = "%2E" + text[1:]
        if text.endswith((".", " ")):
            text = text[:-1] + _escaped(text[-1])
    data = text.encode()
    if len(data) <= _COMPONENT_BYTES:
        return text
    digest = hashlib.sha256(data).hexdigest()[:16]
    return f"{data[:_KEPT_BYTES].decode('utf-8', 'ignore')}%~{digest}"


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
