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

const hues = new Map();
/// One colour a layer: the same in every run, whatever else there is.
function layerColour(layer) {
  let colour = hues.get(layer);
  if (!colour) {
    let hash = 2166136261;
    for (let i = 0; i < layer.length; ++i)
      hash = Math.imul(hash ^ layer.charCodeAt(i), 16777619);
    hash = Math.imul(hash ^ (hash >>> 15), 2246822519) >>> 0;
    colour = `hsl(${hash % 360} ${48 + hash % 17}% ${54 + (hash >>> 9) % 12}%)`;
    hues.set(layer, colour);
  }
  return colour;
}

/// The text that fits, from the end of the name: there it tells most.
function fitName(name, characters) {
  if (name.length <= characters) return name;
  if (characters < 4) return '';
  const tail = name.slice(-characters + 1), cut = tail.indexOf('/');
  return '…' + (cut > 0 && cut < characters / 2 ? tail.slice(cut) : tail);
}
