"""Precision over recall of left-out edges, as a drawing."""

from pathlib import Path
from typing import Any

from _toolgraph_sets import BARE, FLOW
from train_toolgraph import LinkSet, edge_rows

COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f", "#475569")


def draw_curves(sets: dict[str, LinkSet], scores: dict[str, Any], path: Path) -> None:
    """Draw precision over recall of the left-out predictions: lines with outputs, dashes without."""
    width, height, left, top = 520, 380, 60, 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 300} {height + 70}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>'
        f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
    ]
    for tick in range(0, 11, 2):
        x, y = left + width * tick / 10, top + height * (1 - tick / 10)
        parts.append(f'<text x="{x}" y="{top + height + 18}" text-anchor="middle">{tick / 10}</text>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{tick / 10}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 40}" text-anchor="middle">recall</text>')
    parts.append(f'<text x="14" y="{top + height / 2}" transform="rotate(-90 14 {top + height / 2})">precision</text>')
    for number, name in enumerate(FLOW):
        for end in ("", BARE):
            data = sets[name + end]
            rows = edge_rows(data, scores[name + end])
            cuts = sorted({row["score"] for row in rows})
            points = [data.gold.edge_figures([row for row in rows if row["score"] >= cut]) for cut in cuts]
            places = [
                (left + width * p["recall"], top + height * (1 - p["precision"])) for p in points if p["predicted"]
            ]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            dash = ' stroke-dasharray="5 4"' if end else ""
            parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[number]}" stroke-width="1.6"{dash}/>')
        parts.append(
            f'<text x="{left + width + 16}" y="{top + 20 + 20 * number}" fill="{COLOURS[number]}">{name}</text>'
        )
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", "utf-8")
