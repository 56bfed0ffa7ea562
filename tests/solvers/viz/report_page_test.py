#!/usr/bin/env python3
"""Opens reports from files in a headless Chromium: no error, no request, every label legible, pointer and keys do what they say.

    report_page_test.py REPORT_PAGES FOLDER

REPORT_PAGES writes the reports into FOLDER, where the pictures of them go, too. Exits with 77, "skipped", without Chromium.
"""
import pathlib
import subprocess
import sys

from chromium import Browser, need_chromium

SIZES = {"wide": (1440, 1000), "usual": (1100, 800), "narrow": (700, 900), "phone": (390, 800)}
HOSTILE = "</script><b>'\"&"

# Pairs of labels of one picture that lie on each other, and labels that leave it.
BAD_LABELS = """(() => {
  const bad = [];
  for (const picture of document.querySelectorAll('svg.chart')) {
    const frame = picture.getBoundingClientRect();
    const labels = [...picture.querySelectorAll('text')].filter((t) => t.textContent.trim() !== '');
    const boxes = labels.map((t) => t.getBoundingClientRect());
    labels.forEach((a, i) => {
      const p = boxes[i];
      if (p.left < frame.left - 1 || p.right > frame.right + 1 || p.top < frame.top - 1 || p.bottom > frame.bottom + 1) {
        bad.push('out of the picture: ' + a.textContent);
      }
      for (let j = i + 1; j < labels.length; ++j) {
        const q = boxes[j];
        const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (wide > 1 && high > 3) bad.push(a.textContent + ' | ' + labels[j].textContent);
      }
    });
  }
  return bad;
})()"""


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def chart(page):
    """The timeline: its box on the page, what of the axis shows, its ticks."""
    return page.evaluate("""(() => {
      const svg = document.querySelector('#timeline svg');
      svg.scrollIntoView({block: 'center'});
      const box = svg.getBoundingClientRect();
      return {left: box.left, top: box.top, width: box.width, height: box.height, from: +svg.dataset.from, to: +svg.dataset.to,
              ticks: [...svg.querySelectorAll('text.tick:not(.row)')].map((t) => t.textContent)};
    })()""")


def lane(page, name, index=0):
    """The middle of a lane by its label."""
    return page.evaluate(f"""(() => {{
      const svg = document.querySelector('#timeline svg');
      const labels = [...svg.querySelectorAll('text.row')].filter((t) => t.textContent === '{name}');
      const box = labels[{index}].getBoundingClientRect();
      const lanes = svg.querySelector('rect.lane').getBoundingClientRect();
      return {{x: lanes.left + lanes.width / 2, y: box.top + box.height / 2, left: lanes.left, width: lanes.width}};
    }})()""")


def tip(page):
    return page.evaluate("document.getElementById('tooltip').hidden ? '' : document.getElementById('tooltip').innerText")


def check_tooltip_in_sight(page):
    check(page.evaluate("""(() => {
      const box = document.getElementById('tooltip').getBoundingClientRect();
      return box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
    })()"""), "the tooltip leaves the window")


def check_hover(page):
    chart(page)
    at = lane(page, "compute")
    page.mouse("mouseMoved", at["left"] + 0.12 * at["width"], at["y"])
    shown = tip(page)
    check("planned" in shown or "instructions in this pixel" in shown, f"over a lane the tooltip says {shown!r}")
    check_tooltip_in_sight(page)
    page.mouse("mouseMoved", at["x"], at["y"] + 140)
    check("on the device" in tip(page), f"over memory the tooltip says {tip(page)!r}")
    check_tooltip_in_sight(page)
    page.mouse("mouseMoved", 3, 3)
    check(tip(page) == "", "the tooltip stays")


def check_zoom(page):
    before = chart(page)
    at = lane(page, "compute")
    page.mouse("mouseWheel", at["x"], at["y"], deltaX=0, deltaY=-200)
    page.mouse("mouseWheel", at["x"], at["y"], deltaX=0, deltaY=-200)
    page.settle()
    closer = chart(page)
    check(closer["to"] - closer["from"] < 0.6 * (before["to"] - before["from"]), f"the wheel zooms: {before} {closer}")
    check(closer["ticks"] != before["ticks"], "other ticks when closer")
    check(len(closer["ticks"]) >= 2, f"ticks: {closer['ticks']}")
    check(page.evaluate(BAD_LABELS) == [], f"closer in: {page.evaluate(BAD_LABELS)}")
    page.mouse("mousePressed", at["x"], at["y"], button="left", clickCount=1)
    page.mouse("mouseMoved", at["x"] + 80, at["y"], button="left")
    page.mouse("mouseReleased", at["x"] + 80, at["y"], button="left", clickCount=1)
    moved = chart(page)
    check(moved["from"] < closer["from"], "dragging to the right goes back in time")
    check(abs((moved["to"] - moved["from"]) - (closer["to"] - closer["from"])) < 1, "dragging does not zoom")
    page.evaluate("document.getElementById('whole').click()")
    whole = chart(page)
    check((whole["from"], whole["to"]) == (before["from"], before["to"]), "the whole step again")


def check_keys(page):
    whole = chart(page)
    page.evaluate("document.querySelector('#timeline svg').focus()")
    page.key("+", text="+")
    closer = chart(page)
    check(closer["to"] - closer["from"] < 0.6 * whole["to"], "+ zooms")
    page.key("ArrowRight", modifiers=8)
    check(chart(page)["from"] > closer["from"], "Shift and right moves on")
    page.key("0", text="0")
    check(chart(page)["to"] == whole["to"], "0 is the whole step")
    page.key("ArrowRight")
    first = page.evaluate("document.getElementById('spoken').textContent")
    page.key("ArrowRight")
    second = page.evaluate("document.getElementById('spoken').textContent")
    check("instruction 1 of" in first and "instruction 2 of" in second, f"arrows walk: {first!r}, {second!r}")
    check(tip(page) != "", "what is selected has a tooltip")
    page.key("Escape")
    check(tip(page) == "", "Escape hides it")


def check_stages(page):
    page.evaluate("document.querySelector('svg.strip').scrollIntoView({block: 'center'})")
    box = page.evaluate("(({left, top, width, height}) => ({left, top, width, height}))"
                        "(document.querySelector('svg.strip').getBoundingClientRect())")
    x, y = box["left"] + box["width"] / 2, box["top"] + 0.6 * box["height"]
    page.mouse("mouseMoved", x, y)
    check("makes" in tip(page), f"over a stage the tooltip says {tip(page)!r}")
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseReleased", x, y, button="left", clickCount=1)
    check(page.evaluate("document.querySelectorAll('#timeline .of-stage').length") > 0, "a click marks the stage's instructions")
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseReleased", x, y, button="left", clickCount=1)
    page.evaluate("document.getElementById('stage-table').open = true")
    page.settle()
    rows = page.evaluate("document.querySelectorAll('#stage-table tbody tr').length")
    check(rows >= 4, f"{rows} rows of stages")
    page.evaluate("document.getElementById('stage-table').open = false")


def lightness(colour):
    """L* of CIE 1976, of "rgb(r, g, b)"."""
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1:-1].split(",")[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def check_colours(page):
    """What stands beside each other differs in lightness: in grey, and to eyes that see no hue."""
    works = [f"work-{work}" for work in ("forward", "recompute", "backward", "offload", "prefetch")]
    for group in (works, [f"use-{use}" for use in range(6)]):
        found = page.evaluate(f"""{group}.map((name) => {{
          const box = document.body.appendChild(document.createElement('i'));
          box.className = name;
          const colour = getComputedStyle(box).fill;
          box.remove();
          return colour;
        }})""")
        values = sorted(lightness(colour) for colour in found)
        check(all(b - a > 9 for a, b in zip(values, values[1:])), f"{dict(zip(group, found))}: {values}")


def check_points(page):
    if not page.evaluate("document.getElementById('frontier-table') !== null"):
        return
    page.evaluate("document.getElementById('frontier-table').open = true")
    page.settle()
    points = page.evaluate("[...document.querySelectorAll('#frontier-table tbody tr')].map((row) => row.cells[0].textContent)")
    check({"store all"} < set(points), f"points in the table: {points}")
    page.evaluate("document.getElementById('frontier-table').open = false")


def check_hostile_names(page):
    check(page.evaluate("document.querySelector('h1').textContent") == 'sample "net"', "the heading")
    check(page.evaluate("document.querySelectorAll('b').length") == 0, "a name became an element")
    page.evaluate("document.getElementById('stage-table').open = true")
    page.settle()
    cells = page.evaluate("[...document.querySelectorAll('#stage-table td')].map((cell) => cell.textContent)")
    check(HOSTILE in cells and "r\u00e9seau" in cells, f"names in the table: {cells}")
    page.evaluate("document.getElementById('stage-table').open = false")


def check_page(browser, file, folder):
    url = file.as_uri()
    page = browser.open(url, *SIZES["usual"])
    check(page.evaluate("document.querySelectorAll('#timeline path').length") > 3, "there is a picture")
    check_hover(page)
    check_zoom(page)
    check_keys(page)
    check_stages(page)
    check_points(page)
    if file.stem == "small":
        check_hostile_names(page)
    if file.stem == "graph":
        drawn = page.evaluate("document.querySelectorAll('#timeline svg *').length")
        check(drawn < 4000, f"{drawn} elements for a graph")
        check(file.stat().st_size < 2 << 20, f"{file} has {file.stat().st_size} bytes")
    for name, size in SIZES.items():
        page.size(*size)
        page.settle()
        bad = page.evaluate(BAD_LABELS)
        check(bad == [], f"{file.stem}, {name}: {bad}")
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        check(wider <= 0, f"{file.stem}, {name}: the page is {wider} pixels too wide")
        page.screenshot(folder / f"{file.stem}_{name}.png")
    page.size(*SIZES["usual"])
    check_colours(page)
    page.media(dark=True)
    page.settle()
    check_colours(page)
    page.screenshot(folder / f"{file.stem}_dark.png")
    page.media(printed=True)
    page.settle()
    check_colours(page)
    page.screenshot(folder / f"{file.stem}_print.png")
    check(page.complaints() == [], f"{file.stem}: {page.complaints()}")
    check(set(page.requests()) == {url}, f"{file.stem} asks for {page.requests()}")
    page.close()
    print(f"{file.stem}: {file.stat().st_size} bytes, drawn and used at {len(SIZES)} sizes")


def main():
    program = need_chromium("report_page_test")
    folder = pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.argv[1], str(folder)], check=True, timeout=300)
    with Browser(program) as browser:
        for name in ("small", "chain", "compare", "communication", "graph"):
            check_page(browser, folder / f"{name}.html", folder)


if __name__ == "__main__":
    main()
