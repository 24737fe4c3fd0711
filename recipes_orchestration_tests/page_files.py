"""Page files as bytes, good and bad, for the tests that need them."""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from PIL import Image, ImageDraw

PDF_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def picture(size: tuple[int, int] = (60, 90), mode: str = "RGB") -> Image.Image:
    """A white page with one dark bar in its upper left quarter, so that every turn is seen."""
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).rectangle((5, 5, size[0] // 2, size[1] // 8), fill=(40, 20, 0))
    return image.convert(mode)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def jpeg(seed: int = 0) -> bytes:
    return encoded(picture((60 + seed % 7, 90 + seed // 7)), "JPEG")


def tiff_of(count: int, **options: Any) -> bytes:
    pages = [picture((60 + page, 90)) for page in range(count)]
    return encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:], **options)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_claiming(width: int, height: int) -> bytes:
    """A PNG whose header claims that many RGB pixels and that holds next to none."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


Tag = tuple[int, int, Sequence[int]]


def grey_tiff(
    width: int, height: int, bits: int, photometric: int, data: bytes, extra: Sequence[Tag] = ()
) -> bytes:
    """An uncompressed one-strip TIFF, its directory behind its data."""
    tags: list[Tag] = [
        *((256, 4, [width]), (257, 4, [height]), (258, 3, [bits]), (259, 3, [1])),
        *((262, 3, [photometric]), (273, 4, [8]), (277, 3, [1]), (278, 4, [height])),
        (279, 4, [len(data)]),
        *extra,
    ]
    entries = b"".join(
        struct.pack("<HHI", tag, kind, 1)
        + struct.pack("<" + {3: "H", 4: "I"}[kind], *values).ljust(4, b"\0")
        for tag, kind, values in sorted(tags)
    )
    directory = struct.pack("<H", len(tags)) + entries + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory


def chained(first: bytes, next_offset: int) -> bytes:
    """The same one-page TIFF, its directory saying that another follows at that offset."""
    return first[:-4] + struct.pack("<I", next_offset)


def pdf_of(
    sizes: Sequence[tuple[float, float]],
    *,
    rotate: int = 0,
    password: str | None = None,
    drawing: bytes = b"",
) -> bytes:
    """A PDF of pages of these sizes in points; with a password (maybe "") it is encrypted."""
    kids = " ".join(f"{3 + index} 0 R" for index in range(len(sizes)))
    content = 3 + len(sizes)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(sizes)} >>".encode(),
        *(
            (
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] "
                f"/Rotate {rotate} /Resources << >> /Contents {content} 0 R >>"
            ).encode()
            for width, height in sizes
        ),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawing), drawing),
    ]
    trailer = f"/Size {len(objects) + 1} /Root 1 0 R"
    if password is not None:
        identity = b"0123456789abcdef"
        owner = rc4(_md5(_padded("owner"))[:5], _padded(password))
        key = _md5(_padded(password) + owner + struct.pack("<i", -4) + identity)[:5]
        user = rc4(key, PDF_PAD)
        trailer += (
            f" /ID [<{identity.hex()}> <{identity.hex()}>] /Encrypt << /Filter /Standard /V 1 "
            f"/R 2 /O <{owner.hex()}> /U <{user.hex()}> /P -4 >>"
        )
    out = bytearray(b"%PDF-1.4\n")
    offsets: list[int] = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< %s >>\nstartxref\n%d\n%%%%EOF\n" % (trailer.encode(), start)
    return bytes(out)


def rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def _padded(password: str) -> bytes:
    return (password.encode() + PDF_PAD)[:32]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
