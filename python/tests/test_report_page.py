# Part of the Baechi project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report page (docs/report-page.md) in a real browser, from file://.

A probe is added to the page: it notes errors, uses search, selection, zoom and
theme as a person would, and leaves what it saw in the document.
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get("BAECHI_TOOLS", ROOT / "build/release/bin"))
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
MACHINE = ROOT / "data/graphs/machine_4x8GiB.json"
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=fail()>"


def missing() -> str:
    if not BROWSER:
        return "no Chromium (Debian: chromium)"
    return "" if (TOOLS / "baechi-place").exists() else f"no baechi-place in {TOOLS}"


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

NOTE_ERRORS = """<script>
var problems = [];
addEventListener('error', event => problems.push(String(event.message || event.type)), true);
console.error = console.warn = (...words) => problems.push(words.join(' '));
</script>"""
PROBE = """<script>
(async () => {
  const pause = time => new Promise(done => setTimeout(done, time));
  const by = id => document.getElementById(id);
  const picture = id => by(id).toDataURL();
  const colours = id => {
    const canvas = by(id), seen = new Set();
    const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    for (let k = 0; k < data.length; k += 4)
      if (data[k + 3]) seen.add(data[k] << 16 | data[k + 1] << 8 | data[k + 2]);
    return seen.size;
  };
  const changes = async (id, action) => {
    const before = picture(id);
    action();
    for (let tries = 0; tries < 30 && picture(id) === before; ++tries) await pause(200);
    return picture(id) !== before;
  };
  await pause(300);
  const seen = {ready: document.documentElement.dataset.ready, title: document.title};
  seen.tiles = by('tiles').innerText;
  seen.head = by('title').textContent;
  seen.footer = by('footer').textContent;
  seen.devices = by('device-table').tBodies[0].rows.length;
  seen.elements = document.querySelectorAll('*').length;
  seen.colours = Object.fromEntries(['timeline', 'memory', 'graph'].map(id => [id, colours(id)]));
  const wheel = id => by(id).dispatchEvent(new WheelEvent('wheel',
    {deltaY: -300, ctrlKey: true, clientX: 500, clientY: by(id).getBoundingClientRect().top + 40,
    cancelable: true}));
  seen.zoomed = {};
  for (const id of ['timeline', 'graph']) seen.zoomed[id] = await changes(id, () => wheel(id));
  seen.memoryFollows = await changes('memory', () => by('timeline-fit').click());
  seen.themed = await changes('graph', () => by('theme').click());
  const tabs = [...by('tabs').children];
  seen.tabs = tabs.map(tab => tab.textContent);
  seen.rows = [];
  for (const tab of tabs) {
    tab.click();
    seen.rows.push(by('table').tBodies[0].rows.length);
  }
  tabs[0].click();
  by('table').querySelector('th[data-column="0"]').click();
  seen.sorted = [...by('table').tBodies[0].rows].map(row => row.cells[0].textContent);
  const search = by('search');
  search.value = '@WORD@';
  seen.searched = await changes('timeline', () => search.dispatchEvent(new Event('input')));
  seen.matches = by('matches').textContent;
  seen.found = [...by('table').tBodies[0].rows].map(row => row.cells[0].textContent);
  seen.selected = await changes('graph', () => by('next').click());
  seen.card = by('card').hidden ? '' : by('card').innerText;
  seen.problems = problems;
  const result = document.createElement('pre');
  result.id = 'probe';
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
})().catch(error => { document.body.dataset.failed = String(error); });
</script>"""


def make_page(tmp_path, graph, *options, machine=MACHINE) -> str:
    page = tmp_path / "page.html"
    subprocess.run(
        [TOOLS / "baechi-place", graph, machine, "--budget=0", f"--html={page}", *options],
        check=True,
        capture_output=True,
    )
    return page.read_text()


def browse(tmp_path, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [
            BROWSER,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=60000",
            "--window-size=1400,1000",
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


def probe(tmp_path, page: str, word: str) -> dict:
    page = page.replace("<style>", NOTE_ERRORS + "<style>", 1)
    page = page.replace("</body>", PROBE.replace("@WORD@", word) + "</body>", 1)
    probed = tmp_path / "probed.html"
    probed.write_text(page)
    dom = browse(tmp_path, "--dump-dom", probed.as_uri()).stdout
    found = re.search(r'<pre id="probe">(.*?)</pre>', dom, re.DOTALL)
    assert found, re.search(r"data-failed=.*?>", dom) or "the page did not load"
    return json.loads(html.unescape(found[1]))


def check(seen: dict, word: str):
    assert seen["problems"] == []
    assert seen["ready"] == "yes"
    assert seen["footer"] == "baechi-page, data version 1"
    assert "step, predicted" in seen["tiles"] and "gap to the bound" in seen["tiles"]
    assert min(seen["colours"].values()) > 8
    assert seen["zoomed"] == {"timeline": True, "graph": True}
    assert seen["memoryFollows"] and seen["themed"] and seen["searched"] and seen["selected"]
    assert seen["sorted"] == sorted(seen["sorted"]) and seen["sorted"]
    assert seen["found"] and all(word in name.lower() for name in seen["found"])
    assert "match" in seen["matches"] and word in seen["card"].lower()
    assert min(seen["rows"]) > 0


def test_large_graph(tmp_path):
    page = make_page(tmp_path, ROOT / "data/graphs/gnmt50.json.xz")
    seen = probe(tmp_path, page, "l2/t30")
    check(seen, "l2/t30")
    assert seen["devices"] == 4
    assert "22,340" in seen["tabs"][0]
    # Drawn, not made of elements.
    assert seen["elements"] < 1500


def small_graph(tmp_path, names):
    ops = [
        {"id": i, "name": name, "time_ns": 5000, "outputs": [4096]} for i, name in enumerate(names)
    ]
    edges = [{"from": i, "output": 0, "to": i + 1} for i in range(len(ops) - 1)]
    path = tmp_path / "graph.json"
    content = {"format": "baechi-graph", "version": 1, "ops": ops, "edges": edges}
    path.write_text(json.dumps(content))
    return path


def test_hostile_names(tmp_path):
    names = [HOSTILE, "Wärme/größe", "__proto__/constructor", "a/b", "a", "", "/", "x" * 3000]
    seen = probe(tmp_path, make_page(tmp_path, small_graph(tmp_path, names)), "wärme")
    assert seen["problems"] == []
    assert seen["ready"] == "yes"
    assert (seen["title"], seen["head"]) == ("graph: placement", "graph")  # not the folder
    assert seen["found"] == ["Wärme/größe"]
    assert sorted(seen["sorted"]) == sorted(names)


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_a_graph(tmp_path, count):
    seen = probe(tmp_path, make_page(tmp_path, small_graph(tmp_path, ["a/b"] * count)), "b")
    assert seen["problems"] == []
    assert seen["ready"] == "yes"


def test_screenshot(tmp_path):
    page = tmp_path / "shown.html"
    page.write_text(make_page(tmp_path, ROOT / "data/graphs/inception_v3.json.xz"))
    picture = tmp_path / "page.png"
    browse(tmp_path, f"--screenshot={picture}", page.as_uri())
    # An empty page of this size is a few kilobytes.
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 60000
