// Where the boxes of the graph are: a tree of name parts, laid out from the
// inside outwards, in rows of what depends on what.

const cellWidth = 64, cellHeight = 16, cellGap = 8;
const mostChildren = 40;

/// Groups by the parts of names. A group of one is its member.
function nameTree(model) {
  const root = {label: '', children: [], parts: new Map(), parent: null};
  for (let i = 0; i < model.count; ++i) {
    const parts = model.name[i].split('/');
    let group = root;
    for (let p = 0; p + 1 < parts.length; ++p) {
      let inner = group.parts.get(parts[p]);
      if (!inner) {
        inner = {label: parts[p], children: [], parts: new Map()};
        group.parts.set(parts[p], inner);
        group.children.push(inner);
      }
      group = inner;
    }
    group.children.push({label: parts[parts.length - 1], operator: i});
  }
  return simplify(root);
}

function simplify(group) {
  group.parts = null;
  if (!group.children) return group;
  group.children = group.children.map(simplify);
  if (group.children.length === 1 && group.label !== '') {
    const only = group.children[0];
    return {...only, label: `${group.label}/${only.label}`};
  }
  return group;
}

/// What is known of a group: operators, time and earliest start, by device.
function measureTree(model, node, leaves) {
  if (node.operator !== undefined) {
    const i = node.operator;
    leaves[i] = node;
    node.operators = 1;
    node.start = model.start[i];
    node.order = i;
    node.time = model.time[i];
    node.shares = new Map([[model.device[i], Math.max(model.time[i], 1)]]);
    node.critical = model.critical[i];
    node.layer = model.layer[i];
    return;
  }
  Object.assign(node, {operators: 0, start: Infinity, order: Infinity, time: 0, shares: new Map(), critical: 0});
  let heaviest = -1;
  for (const child of node.children) {
    measureTree(model, child, leaves);
    child.parent = node;
    node.operators += child.operators;
    node.start = Math.min(node.start, child.start);
    node.order = Math.min(node.order, child.order);
    node.time += child.time;
    node.critical |= child.critical;
    for (const [d, share] of child.shares) node.shares.set(d, (node.shares.get(d) || 0) + share);
    if (child.time > heaviest) {
      heaviest = child.time;
      node.layer = child.layer;
    }
  }
  node.children.sort((a, b) => a.start - b.start || a.order - b.order);
}

/// The first and the last name of a part, where they are parts, too.
function rangeOf(children) {
  const first = children[0].label.split(' … ')[0], last = children[children.length - 1].label.split(' … ').pop();
  return `${first} … ${last}`;
}

/// Members whose names differ in numbers alone (t0, t1, ...) become one.
function joinNumbered(children) {
  const stem = child => child.label.replace(/\d+/g, '0'), stems = new Map();
  for (const child of children) {
    if (!stems.has(stem(child))) stems.set(stem(child), []);
    stems.get(stem(child)).push(child);
  }
  if (stems.size === 1) return children;
  return [...stems.values()].flatMap(alike => alike.length < 4 ? alike
    : [{label: rangeOf(alike), children: alike}]);
}

/// Splits what has too many members to be read: by their names, then by their
/// order.
function split(node) {
  if (!node.children) return;
  if (node.children.length > mostChildren) node.children = joinNumbered(node.children);
  node.children.forEach(split);
  while (node.children.length > mostChildren) {
    const parts = [], size = Math.max(2, Math.ceil(node.children.length / Math.ceil(node.children.length / (mostChildren - 8))));
    for (let k = 0; k < node.children.length; k += size) {
      const children = node.children.slice(k, k + size);
      parts.push(children.length === 1 ? children[0]
        : {label: rangeOf(children), children});
    }
    node.children = parts;
  }
}

/// Edges between siblings: that of two operators belongs to the innermost group
/// that holds both.
function siblingEdges(model, leaves) {
  const depth = node => {
    let count = 0;
    for (let at = node; at.parent; at = at.parent) ++count;
    return count;
  };
  const depths = leaves.map(depth);
  for (let e = 0; e < model.edgeFrom.length; ++e) {
    const from = model.edgeFrom[e], to = model.edgeTo[e];
    let a = leaves[from], b = leaves[to], da = depths[from], db = depths[to];
    for (; da > db; --da) a = a.parent;
    for (; db > da; --db) b = b.parent;
    if (a === b) continue;
    while (a.parent !== b.parent) {
      a = a.parent;
      b = b.parent;
    }
    const edges = a.parent.edges = a.parent.edges || new Map();
    const key = a.position * 65536 + b.position;
    edges.set(key, (edges.get(key) || 0) + 1);
  }
}

function number(node) {
  (node.children || []).forEach((child, position) => {
    child.position = position;
    number(child);
  });
}

/// Ranks by dependency, rows by rank, folded into columns where they would be
/// much higher than wide.
function arrange(node) {
  if (!node.children) {
    node.w = cellWidth;
    node.h = cellHeight;
    return;
  }
  node.children.forEach(arrange);
  const children = node.children, rank = new Int32Array(children.length);
  const before = children.map(() => []);
  const edges = [...(node.edges || new Map()).keys()].map(key => [Math.floor(key / 65536), key % 65536]);
  // What leads back to an earlier sibling closes a circle of groups.
  edges.filter(([a, b]) => a < b).sort((x, y) => x[1] - y[1] || x[0] - y[0]).forEach(([a, b]) => before[b].push(a));
  for (let b = 0; b < children.length; ++b)
    for (const a of before[b]) rank[b] = Math.max(rank[b], rank[a] + 1);
  const rows = [];
  children.forEach((child, k) => (rows[rank[k]] = rows[rank[k]] || []).push(k));
  // In proportion: a box of any size has a title that can be read when it opens.
  const gap = Math.max(cellGap, 0.05 * Math.max(...children.map(child => Math.min(child.w, child.h))));
  const area = children.reduce((sum, child) => sum + (child.w + gap) * (child.h + gap), 0);
  const padding = Math.max(10, 0.025 * Math.sqrt(area)), titleHeight = Math.max(14, 0.07 * Math.sqrt(area));
  node.titleRoom = padding + titleHeight;
  const widest = Math.max(Math.sqrt(area * 2.2), ...children.map(child => child.w));
  const centre = new Float64Array(children.length), lines = [];
  for (const row of rows) {
    const wish = new Map(row.map(k => [k, before[k].length ? before[k].reduce((sum, a) => sum + centre[a], 0) / before[k].length : k]));
    row.sort((a, b) => wish.get(a) - wish.get(b) || a - b);
    let line = null;
    for (const k of row) {
      if (!line || line.w + gap + children[k].w > widest) lines.push(line = {w: -gap, h: 0, members: []});
      centre[k] = line.w + gap + children[k].w / 2;
      line.w += gap + children[k].w;
      line.h = Math.max(line.h, children[k].h);
      line.members.push(k);
    }
  }
  const below = gap * 1.6;
  const high = lines.reduce((sum, line) => sum + line.h + below, 0), wide = Math.max(...lines.map(line => line.w));
  const columns = Math.max(1, Math.round(Math.sqrt(1.7 * high / (wide + 2 * gap))));
  let x = padding, y = padding + titleHeight, bottom = y, columnWidth = 0, filled = 0;
  let column = [];
  const close = () => {
    for (const {line, at} of column) {
      let left = x + (columnWidth - line.w) / 2;
      for (const k of line.members) {
        children[k].x = left;
        children[k].y = at + (line.h - children[k].h) / 2;
        left += children[k].w + gap;
      }
    }
    x += columnWidth + 2 * gap;
    y = padding + titleHeight;
    columnWidth = 0;
    filled = 0;
    column = [];
  };
  for (const line of lines) {
    if (column.length && filled + line.h / 2 > high / columns) close();
    column.push({line, at: y});
    columnWidth = Math.max(columnWidth, line.w);
    y += line.h + below;
    filled += line.h + below;
    bottom = Math.max(bottom, y - below);
  }
  close();
  node.w = x - 2 * gap + padding;
  node.h = bottom + padding;
}

/// Positions relative to the parent become those of the page.
function settle(node, x, y) {
  node.x = x;
  node.y = y;
  for (const child of node.children || []) settle(child, x + child.x, y + child.y);
}

function layoutGraph(model) {
  const leaves = new Array(model.count);
  let root = nameTree(model);
  measureTree(model, root, leaves);
  split(root);
  measureTree(model, root, leaves);
  number(root);
  siblingEdges(model, leaves);
  if (root.children.length) {
    arrange(root);
    settle(root, 0, 0);
  }
  return {root, leaves};
}
