// What the canvases share: size, colours of the theme, pan and zoom.

const theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['ground', 'panel', 'ink', 'soft', 'line', 'grid', 'accent', 'critical', 'match', 'track', 'box'])
    theme[name] = style.getPropertyValue(`--${name}`).trim();
}

/// A canvas that is drawn at most once a frame, in CSS pixels.
class Surface {
  constructor(canvas, paint) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.paint = paint;
    this.pending = false;
    new ResizeObserver(() => this.draw()).observe(canvas);
  }
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.drawNow());
  }
  drawNow() {
    this.pending = false;
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    const width = Math.round(this.width * ratio), height = Math.round(this.height * ratio);
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    this.paint(this.context, this.width, this.height);
  }
}

/// Pointer, wheel and keys of a canvas. `target` has pan(dx, dy), zoom(factor,
/// x, y), fit(), hover(x, y, event), leave() and click(x, y).
function listen(canvas, target) {
  const pointers = new Map();
  let travelled = 0;
  const place = event => {
    const box = canvas.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  };
  canvas.addEventListener('pointerdown', event => {
    pointers.set(event.pointerId, place(event));
    travelled = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    const at = place(event), before = pointers.get(event.pointerId);
    if (!before) {
      target.hover(at.x, at.y, event);
      return;
    }
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    pointers.set(event.pointerId, at);
    travelled += Math.abs(at.x - before.x) + Math.abs(at.y - before.y);
    if (others.length) {
      const other = others[0], distance = point => Math.hypot(point.x - other.x, point.y - other.y);
      target.zoom(Math.max(distance(at), 1) / Math.max(distance(before), 1), (at.x + other.x) / 2, (at.y + other.y) / 2);
    } else if (travelled > 3) {
      target.leave();
      target.pan(at.x - before.x, at.y - before.y);
    }
  });
  const release = event => {
    if (pointers.delete(event.pointerId) && event.type === 'pointerup' && travelled <= 3) {
      const at = place(event);
      target.click(at.x, at.y);
    }
  };
  canvas.addEventListener('pointerup', release);
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', () => target.leave());
  canvas.addEventListener('wheel', event => {
    const at = place(event);
    if (event.ctrlKey || event.metaKey || event.altKey) {
      event.preventDefault();
      target.zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) * 0.006), at.x, at.y);
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      target.pan(-(event.deltaX || event.deltaY), 0);
    }
  }, {passive: false});
  canvas.addEventListener('dblclick', event => {
    const at = place(event);
    target.zoom(event.shiftKey ? 0.5 : 2, at.x, at.y);
  });
  canvas.addEventListener('keydown', event => {
    const step = 60, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2;
    const actions = {
      ArrowLeft: () => target.pan(step, 0), ArrowRight: () => target.pan(-step, 0),
      ArrowUp: () => target.pan(0, step), ArrowDown: () => target.pan(0, -step),
      '+': () => target.zoom(1.4, x, y), '=': () => target.zoom(1.4, x, y),
      '-': () => target.zoom(1 / 1.4, x, y), '0': () => target.fit()};
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  });
}

/// Buttons with the ids NAME-in, NAME-out, NAME-fit.
function zoomButtons(name, canvas, target) {
  const centre = factor => target.zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
  byId(`${name}-in`).onclick = () => centre(1.6);
  byId(`${name}-out`).onclick = () => centre(1 / 1.6);
  byId(`${name}-fit`).onclick = () => target.fit();
}

const tip = {
  show(event, lines) {
    const box = byId('tip');
    box.replaceChildren(...lines);
    box.hidden = false;
    const width = box.offsetWidth, height = box.offsetHeight;
    box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6))}px`;
    const below = event.clientY + 16;
    box.style.top = `${below + height > innerHeight ? Math.max(4, event.clientY - height - 10) : below}px`;
  },
  hide() { byId('tip').hidden = true; },
};
