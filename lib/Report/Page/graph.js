// The placed graph: boxes that open as one zooms, and what crosses devices.

class GraphView {
  constructor(model, page) {
    Object.assign(this, {model, page});
    Object.assign(this, layoutGraph(model));
    this.canvas = byId('graph');
    this.scale = 1;
    this.left = 0;
    this.top = 0;
    this.fitted = false;
    this.surface = new Surface(this.canvas, (context, width, height) => this.paint(context, width, height));
    this.countMatches();
    listen(this.canvas, this);
    zoomButtons('graph', this.canvas, this);
    for (const id of ['graph-colour', 'edges', 'crossing']) byId(id).onchange = () => this.surface.draw();
  }

  fit() {
    this.fitted = false;
    this.surface.draw();
  }
  fitTo(width, height) {
    const {root} = this;
    this.least = Math.min(width / (root.w + 20), height / (root.h + 20));
    this.scale = Math.min(this.least, 2.5);
    this.left = (width - root.w * this.scale) / 2;
    this.top = (height - root.h * this.scale) / 2;
    this.fitted = true;
  }
  pan(dx, dy) {
    this.left += dx;
    this.top += dy;
    this.surface.draw();
  }
  zoom(factor, x, y) {
    const scale = Math.max(this.least * 0.5, Math.min(this.scale * factor, 6));
    this.left = x - (x - this.left) * scale / this.scale;
    this.top = y - (y - this.top) * scale / this.scale;
    this.scale = scale;
    this.surface.draw();
  }
  leave() {
    this.point(null);
    tip.hide();
  }
  point(node) {
    if (node === this.pointed) return;
    this.pointed = node;
    this.surface.draw();
  }

  /// Open as soon as its members can be told from each other.
  isOpen(node) {
    if (!node.children) return false;
    const each = node.w * node.h * this.scale * this.scale / node.children.length;
    return node === this.root || (node.w * this.scale > 80 && each > 1100);
  }
  screen(node) {
    return {x: this.left + node.x * this.scale, y: this.top + node.y * this.scale, w: node.w * this.scale, h: node.h * this.scale};
  }
  /// The box that stands for an operator now.
  shown(i) {
    let box = this.leaves[i];
    for (let at = box; at.parent; at = at.parent)
      if (!this.isOpen(at.parent)) box = at.parent;
    return box;
  }

  /// Matches of the search within each group.
  countMatches() {
    const {page} = this;
    const visit = node => {
      node.matches = node.operator !== undefined ? page.isMatch[node.operator]
        : node.children.reduce((sum, child) => sum + visit(child), 0);
      return node.matches;
    };
    visit(this.root);
    this.surface.draw();
  }

  paint(context, width, height) {
    if (!this.root.children.length) return;
    if (!this.fitted) this.fitTo(width, height);
    this.width = width;
    this.height = height;
    const edges = [];
    this.paintBox(context, this.root, edges);
    if (byId('edges').checked) this.paintEdges(context, edges);
    if (byId('crossing').checked) this.paintCrossing(context);
    this.paintChosen(context);
  }

  isVisible(box) { return box.x < this.width && box.y < this.height && box.x + box.w > 0 && box.y + box.h > 0; }

  paintBox(context, node, edges) {
    const box = this.screen(node);
    if (!this.isVisible(box)) return;
    const {page} = this, faded = page.matching && !node.matches;
    if (!this.isOpen(node)) {
      this.paintClosed(context, node, box, faded);
      return;
    }
    if (node !== this.root) {
      context.fillStyle = theme.panel;
      context.globalAlpha = 0.75;
      context.fillRect(box.x, box.y, box.w, box.h);
      context.globalAlpha = 1;
      context.strokeStyle = theme.line;
      context.lineWidth = 1;
      context.strokeRect(box.x + 0.5, box.y + 0.5, box.w, box.h);
      this.paintShares(context, node, box.x, box.y, box.w, Math.min(4, 3 * this.scale + 1));
      const room = node.titleRoom * this.scale, size = Math.max(9, Math.min(14, room * 0.62));
      context.font = `600 ${size}px system-ui, "DejaVu Sans", sans-serif`;
      context.fillStyle = theme.ink;
      context.globalAlpha = faded ? 0.4 : 1;
      const text = clippedName(context, node.label, box.w - 10);
      if (room > size) context.fillText(text, box.x + 6, box.y + Math.min(room - 2, size + 6));
      context.globalAlpha = 1;
    }
    if (node.edges) edges.push(node);
    for (const child of node.children) this.paintBox(context, child, edges);
  }

  colour(node) {
    const mode = byId('graph-colour').value;
    if (mode === 'layer') return layerColour(node.layer);
    if (mode === 'critical') return node.critical ? theme.critical : theme.soft;
    return null;
  }
  /// The devices' parts of a group's time.
  paintShares(context, node, x, y, width, height) {
    const plain = this.colour(node);
    if (plain) {
      context.fillStyle = plain;
      context.fillRect(x, y, width, height);
      return;
    }
    const shares = [...node.shares].sort((a, b) => a[0] - b[0]);
    const whole = shares.reduce((sum, [, share]) => sum + share, 0);
    let at = x;
    for (const [d, share] of shares) {
      const part = share / whole * width;
      context.fillStyle = deviceColour(d);
      context.fillRect(at, y, part + 0.4, height);
      at += part;
    }
  }

  paintClosed(context, node, box, faded) {
    context.globalAlpha = faded ? 0.15 : node.operator !== undefined && node.time === 0 ? 0.55 : 1;
    this.paintShares(context, node, box.x, box.y, box.w, box.h);
    context.globalAlpha = 1;
    if (node.matches && this.page.matching) {
      context.strokeStyle = theme.match;
      context.lineWidth = 2;
      context.strokeRect(box.x, box.y, box.w, box.h);
    } else if (node.critical && node.operator !== undefined && box.w > 6) {
      context.strokeStyle = theme.critical;
      context.lineWidth = box.w > 30 ? 2 : 1;
      context.strokeRect(box.x, box.y, box.w, box.h);
    }
    if (box.w < 26 || box.h < 9) return;
    const size = Math.max(8, Math.min(12, box.h * 0.7));
    context.font = `${size}px system-ui, "DejaVu Sans", sans-serif`;
    context.fillStyle = faded ? theme.soft : '#10141c';
    context.globalAlpha = faded ? 0.5 : 1;
    const both = node.children && box.h > 2.6 * size, middle = box.y + box.h / 2 + size * 0.36;
    context.fillText(clippedName(context, node.label, box.w - 6), box.x + 4, both ? middle - size * 0.6 : middle);
    const count = both ? `${countText(node.operators)} ops` : '';
    if (both && context.measureText(count).width <= box.w - 6) {
      context.globalAlpha *= 0.7;
      context.fillText(count, box.x + 4, middle + size * 0.6);
    }
    context.globalAlpha = 1;
  }

  /// From the bottom of a box to the top of the next, or from side to side.
  trace(context, a, b) {
    const from = this.screen(a), to = this.screen(b);
    let x1 = from.x + from.w / 2, y1 = from.y + from.h, x2 = to.x + to.w / 2, y2 = to.y;
    context.moveTo(x1, y1);
    if (y2 >= y1) {
      const bend = Math.min(40, (y2 - y1) / 2);
      context.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
      return;
    }
    const right = to.x >= from.x;
    x1 = right ? from.x + from.w : from.x;
    x2 = right ? to.x : to.x + to.w;
    y1 = from.y + from.h / 2;
    y2 = to.y + to.h / 2;
    const bend = (right ? 1 : -1) * Math.max(12, Math.abs(x2 - x1) / 3);
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  }
  mayBeSeen(a, b) {
    const from = this.screen(a), to = this.screen(b);
    return Math.min(from.x, to.x) < this.width && Math.max(from.x + from.w, to.x + to.w) > 0 &&
      Math.min(from.y, to.y) < this.height && Math.max(from.y + from.h, to.y + to.h) > 0;
  }

  paintEdges(context, groups) {
    context.strokeStyle = theme.soft;
    context.lineWidth = 0.7;
    context.globalAlpha = this.page.matching ? 0.12 : 0.32;
    for (const group of groups) {
      context.beginPath();
      for (const key of group.edges.keys()) {
        const a = group.children[Math.floor(key / 65536)], b = group.children[key % 65536];
        if (this.mayBeSeen(a, b)) this.trace(context, a, b);
      }
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /// Tensors that are sent, between the boxes that are seen: wider for more
  /// bytes, red on the critical path.
  paintCrossing(context) {
    const arcs = new Map(), ids = new Map();
    const idOf = node => {
      if (!ids.has(node)) ids.set(node, ids.size);
      return ids.get(node);
    };
    for (const moved of this.model.transfers) {
      const a = this.shown(moved.op), seen = new Set();
      for (const target of moved.targets) {
        const b = this.shown(target);
        if (a === b || seen.has(b)) continue;
        seen.add(b);
        const key = `${idOf(a)} ${idOf(b)}`, arc = arcs.get(key) || {a, b, bytes: 0, critical: false, from: moved.from};
        arc.bytes += moved.bytes;
        arc.critical = arc.critical || moved.critical;
        arcs.set(key, arc);
      }
    }
    const visible = [...arcs.values()].filter(arc => this.mayBeSeen(arc.a, arc.b));
    const most = Math.max(1, ...visible.map(arc => arc.bytes));
    visible.sort((x, y) => x.critical - y.critical || x.bytes - y.bytes);
    for (const arc of visible) {
      context.strokeStyle = arc.critical ? theme.critical : deviceColour(arc.from);
      const passing = !this.isVisible(this.screen(arc.a)) && !this.isVisible(this.screen(arc.b));
      context.globalAlpha = passing ? 0.12 : this.page.matching ? 0.2 : arc.critical ? 0.9 : Math.max(0.25, 0.8 - visible.length / 600);
      context.lineWidth = 0.8 + 2.6 * Math.sqrt(arc.bytes / most);
      context.beginPath();
      this.trace(context, arc.a, arc.b);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /// The selected operator with all that it reads and that reads it.
  paintChosen(context) {
    const {model, page} = this, i = page.selected;
    if (this.pointed) this.frame(context, this.pointed, theme.accent);
    if (i < 0) return;
    const own = this.shown(i), lines = (rows, ends, towards) => {
      const seen = new Set();
      for (let k = rows.begin[i]; k < rows.begin[i + 1]; ++k) {
        const other = this.shown(ends[rows.list[k]]);
        if (other === own || seen.has(other)) continue;
        seen.add(other);
        context.beginPath();
        if (towards) this.trace(context, other, own); else this.trace(context, own, other);
        context.stroke();
      }
    };
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.8;
    lines(model.into, model.edgeFrom, true);
    lines(model.outOf, model.edgeTo, false);
    this.frame(context, own, theme.ink);
  }
  frame(context, node, colour) {
    const box = this.screen(node);
    context.strokeStyle = colour;
    context.lineWidth = 2.5;
    context.strokeRect(box.x - 1.5, box.y - 1.5, box.w + 3, box.h + 3);
  }

  find(x, y) {
    let node = this.root, found = null;
    const holds = child => {
      const box = this.screen(child);
      return x >= box.x && x <= box.x + box.w && y >= box.y && y <= box.y + box.h;
    };
    while (node && this.isOpen(node)) {
      node = node.children.find(holds);
      found = node || found;
    }
    return found;
  }
  hover(x, y, event) {
    const node = this.find(x, y);
    this.point(node);
    if (!node) tip.hide();
    else if (node.operator !== undefined) tip.show(event, this.page.operatorLines(node.operator));
    else tip.show(event, this.groupLines(node));
  }
  groupLines(node) {
    const path = [];
    for (let at = node; at && at.label; at = at.parent) path.unshift(at.label);
    const whole = [...node.shares.values()].reduce((sum, share) => sum + share, 0);
    const lines = [element('b', {}, path.join('/')), `${plural(node.operators, 'operator')}, ${timeText(node.time)} of work`];
    for (const [d, share] of [...node.shares].sort((a, b) => a[0] - b[0]).slice(0, 8))
      lines.push(element('br'), element('span', {class: 'swatch', style: `background:${deviceColour(d)}`}),
        `${this.model.devices[d].name} ${percentText(share / whole)}`);
    return lines;
  }
  click(x, y) {
    const node = this.find(x, y);
    if (node && node.operator === undefined) return;
    this.page.select(node ? node.operator : -1, 'graph');
  }
  /// Brings an operator into view, large enough to be read.
  reveal(i) {
    const leaf = this.leaves[i];
    if (!this.fitted) this.fitTo(this.canvas.clientWidth, this.canvas.clientHeight);
    this.scale = Math.max(this.scale, 1.1);
    // Beside the card where there is room.
    const width = this.canvas.clientWidth, centre = width > 900 ? width * 0.36 : width / 2;
    this.left = centre - (leaf.x + leaf.w / 2) * this.scale;
    this.top = this.canvas.clientHeight / 2 - (leaf.y + leaf.h / 2) * this.scale;
    this.surface.draw();
  }
}
