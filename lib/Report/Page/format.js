// Numbers for people, and short forms for the document.
const byId = id => document.getElementById(id);

/// An element; children that are strings become text, never markup.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== null)
      made.setAttribute(name, value);
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

function timeText(ns) {
  const size = Math.abs(ns);
  if (size < 1e3) return `${Math.round(ns)} ns`;
  if (size < 1e6) return `${(ns / 1e3).toFixed(size < 1e4 ? 2 : 1)} µs`;
  if (size < 1e9) return `${(ns / 1e6).toFixed(size < 1e7 ? 3 : size < 1e8 ? 2 : 1)} ms`;
  return `${(ns / 1e9).toFixed(3)} s`;
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0, value = bytes;
  while (Math.abs(value) >= 1023.95 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

const percentText = share => `${(100 * share).toFixed(1)} %`;
const signedPercentText = share => `${share < 0 ? '−' : '+'}${(100 * Math.abs(share)).toFixed(1)} %`;
const countText = count => count.toLocaleString('en');
const plural = (count, word) => `${countText(count)} ${word}${count === 1 ? '' : 's'}`;

const palette = ['#4c78d8', '#e8a317', '#e4604e', '#48b6a3', '#48a84f', '#e87fb0', '#9a62e0', '#6fb1e8', '#a3745a', '#8b93a1'];
const deviceColour = d => d < palette.length ? palette[d] : `hsl(${(d * 137.508) % 360} 55% 58%)`;

const layerColours = new Map();
/// Neighbours in `layers` get hues far from each other.
function colourLayers(layers) {
  for (const layer of layers)
    if (!layerColours.has(layer)) {
      const k = layerColours.size;
      layerColours.set(layer, `hsl(${(205 + k * 137.508) % 360} ${52 + k % 3 * 7}% ${63 + k % 2 * 8}%)`);
    }
}
const layerColour = layer => layerColours.get(layer);

/// As much of the end of a name as fits: there it tells most.
function fitName(name, characters) {
  if (name.length <= characters) return name;
  const parts = name.split('/');
  let shown = parts.pop();
  if (shown.length > characters) return characters < 5 ? '' : cutName(shown, characters);
  while (shown.length + parts[parts.length - 1].length + 2 <= characters) shown = `${parts.pop()}/${shown}`;
  return shown;
}

/// So many characters, with … in the middle: names begin alike, and their ends tell
/// them apart.
function cutName(name, characters) {
  const end = Math.ceil(2 * (characters - 1) / 3);
  return `${name.slice(0, characters - 1 - end)}…${name.slice(name.length - end)}`;
}

/// A name as wide as there is room for it.
function clippedName(context, name, width) {
  let shown = name;
  for (let keep = name.length - 1; keep > 2 && context.measureText(shown).width > width;) {
    shown = cutName(name, keep);
    keep = Math.min(keep - 1, Math.floor(keep * 0.9));
  }
  return shown;
}

/// The name of a file, without its folder and kind.
const stemOf = path => path.split('/').pop().replace(/\.(json|mlir)(\.xz)?$/, '') || path;
