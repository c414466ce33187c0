"""Colours as people see them: contrast, difference, and colour vision deficiencies; formulas and their sources."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet

Rgb = tuple[int, int, int]

DEFICIENCIES: Mapping[str, NDArray[np.float64]] = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""Matrices for linear RGB at severity 1.0 (Machado, Oliveira, Fernandes 2009, IEEE TVCG 15(6))."""

_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
"""From linear sRGB (IEC 61966-2-1)."""
_WHITE = np.array([0.95047, 1.0, 1.08883])
"""D65."""
_DEPTHS = {"truecolor": ColorSystem.TRUECOLOR, "256": ColorSystem.EIGHT_BIT, "16": ColorSystem.STANDARD}
DEPTHS = tuple(_DEPTHS)


def at_depth(rgb: Rgb, depth: str) -> Rgb:
    """Take the colour that is sent to a terminal of this depth; of the sixteen, as rich's palette has them."""
    triplet = Color.from_triplet(ColorTriplet(*rgb)).downgrade(_DEPTHS[depth]).get_truecolor()
    return triplet.red, triplet.green, triplet.blue


def linear(rgb: Rgb) -> NDArray[np.float64]:
    """Linear RGB, 0 to 1 (IEC 61966-2-1)."""
    values = np.array(rgb) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: Rgb, other: Rgb) -> float:
    """Contrast ratio, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted(float(linear(rgb) @ _XYZ[1]) for rgb in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb: Rgb, deficiency: str = "none") -> NDArray[np.float64]:
    """CIELAB of a colour as it is seen with a deficiency."""
    seen = np.clip(DEFICIENCIES[deficiency] @ linear(rgb), 0, 1)
    ratio = _XYZ @ seen / _WHITE
    x, y, z = np.where(ratio > 216 / 24389, np.cbrt(ratio), (ratio * 24389 / 27 + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one: Rgb, other: Rgb, deficiency: str = "none") -> float:
    """CIEDE2000 of two colours as they are seen with a deficiency."""
    return ciede2000(lab(one, deficiency), lab(other, deficiency))


def ciede2000(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Colour difference of two CIELAB colours (ISO/CIE 11664-6; Sharma, Wu, Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one.tolist(), other.tolist()
    mean7 = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    stretch = 1 + 0.5 * (1 - math.sqrt(mean7 / (mean7 + 25**7)))
    c1, c2 = math.hypot(a1 * stretch, b1), math.hypot(a2 * stretch, b2)
    h1, h2 = (math.degrees(math.atan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn, hue = _turn_and_mean(h1, h2, grey=c1 * c2 == 0)
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    weight = 1 - 0.17 * _cos(hue - 30) + 0.24 * _cos(2 * hue) + 0.32 * _cos(3 * hue + 6) - 0.20 * _cos(4 * hue - 63)
    by_l = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / math.sqrt(20 + (lightness - 50) ** 2))
    by_c = (c2 - c1) / (1 + 0.045 * chroma)
    by_h = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    rotation = 60 * math.exp(-(((hue - 275) / 25) ** 2))
    twist = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(rotation))
    return math.sqrt(by_l**2 + by_c**2 + by_h**2 + twist * by_c * by_h)


def _turn_and_mean(h1: float, h2: float, *, grey: bool) -> tuple[float, float]:
    """Difference and mean of two hues, in degrees; of a grey the sum."""
    if grey:
        return 0.0, h1 + h2
    turn = (h2 - h1 + 180) % 360 - 180
    total = h1 + h2
    if abs(h1 - h2) > 180:
        total += 360 if total < 360 else -360
    return turn, total / 2


def _cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))
