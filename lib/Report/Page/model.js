// The page's data in flat arrays, and what is derived from it.

/// Spans by ascending start.
class Series {
  constructor(items) {
    items.sort((a, b) => a.start - b.start || a.end - b.end || a.id - b.id);
    this.id = Int32Array.from(items, item => item.id);
    this.start = Float64Array.from(items, item => item.start);
    this.end = Float64Array.from(items, item => item.end);
    // The latest end until then: ascends where spans overlap, too.
    this.reach = this.end.slice();
    for (let k = 1; k < this.reach.length; ++k) this.reach[k] = Math.max(this.reach[k], this.reach[k - 1]);
  }
  /// The first span of those that end at or after a time.
  first(time) {
    let low = 0, high = this.id.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.reach[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }
}

/// Rows of edges: those of operator i are list[begin[i]] to list[begin[i + 1]].
function edgeRows(count, keys) {
  const begin = new Int32Array(count + 1), list = new Int32Array(keys.length);
  for (const key of keys) ++begin[key + 1];
  for (let i = 0; i < count; ++i) begin[i + 1] += begin[i];
  const next = begin.slice();
  for (let e = 0; e < keys.length; ++e) list[next[keys[e]]++] = e;
  return {begin, list};
}

class Model {
  constructor(data) {
    const ops = data.operators, moved = data.transfers;
    this.data = data;
    this.devices = data.devices;
    this.count = ops.name.length;
    this.name = ops.name;
    this.device = Int32Array.from(ops.device);
    this.start = Float64Array.from(ops.start_ns);
    this.time = Float64Array.from(ops.time_ns);
    this.resident = ops.resident_bytes;
    this.output = ops.output_bytes;
    this.critical = new Uint8Array(this.count);
    for (const i of ops.critical) this.critical[i] = 1;
    this.measured = data.measured;
    this.edgeFrom = Int32Array.from(data.edges.from);
    this.edgeTo = Int32Array.from(data.edges.to);
    this.into = edgeRows(this.count, this.edgeTo);
    this.outOf = edgeRows(this.count, this.edgeFrom);
    this.transfers = moved.op.map((op, k) => ({
      id: k, op, output: moved.output[k], from: moved.from[k], to: moved.to[k],
      start: moved.start_ns[k], end: moved.end_ns[k], bytes: moved.bytes[k], critical: false, targets: []}));
    for (const k of moved.critical) this.transfers[k].critical = true;
    this.makespan = data.summary.makespan_ns;
    this.span = Math.max(this.makespan, 1);
    if (this.measured) {
      const {operators, transfers} = this.measured;
      for (const ends of [operators.end_ns, transfers.end_ns])
        for (const end of ends) this.span = Math.max(this.span, end);
    }
    this.why = new Map(data.reasons.map(reason => [reason.operator, reason.why]));
    this.layer = this.name.map(layerOf);
    const byStart = Array.from(this.start, (start, i) => i).sort((a, b) => this.start[a] - this.start[b] || a - b);
    colourLayers(byStart.map(i => this.layer[i]));
    this.findTargets();
    this.makeRows();
  }

  measuredOperator(i) { return this.pair(this.measured && this.measured.operators, i); }
  measuredTransfer(k) { return this.pair(this.measured && this.measured.transfers, k); }
  pair(spans, i) {
    return spans && spans.start_ns[i] >= 0 ? {start: spans.start_ns[i], end: spans.end_ns[i]} : null;
  }

  /// The operators that a transfer brings its tensor to.
  findTargets() {
    const outputs = this.data.edges.output;
    for (const moved of this.transfers)
      for (let k = this.outOf.begin[moved.op]; k < this.outOf.begin[moved.op + 1]; ++k) {
        const e = this.outOf.list[k];
        if (outputs[e] === moved.output && this.device[this.edgeTo[e]] === moved.to)
          moved.targets.push(this.edgeTo[e]);
      }
  }

  /// One row a device and one a link (where these are many, one for all links of
  /// a sender), with a track each for what was predicted and what was measured.
  makeRows() {
    const kinds = this.measured ? ['predicted', 'measured'] : ['predicted'];
    this.rows = this.devices.map((device, d) => ({device: d, label: device.name, tracks: kinds.map(kind => ({kind, items: []}))}));
    const mostLinks = 24, pair = moved => moved.from * this.devices.length + moved.to;
    const together = new Set(this.transfers.map(pair)).size > mostLinks;
    const keyOf = together ? moved => moved.from : pair;
    const links = new Map();
    for (const moved of this.transfers) {
      const target = together ? 'any' : this.devices[moved.to].name;
      if (!links.has(keyOf(moved)))
        links.set(keyOf(moved), {label: `${this.devices[moved.from].name} → ${target}`, tracks: kinds.map(kind => ({kind, items: []}))});
    }
    const rowOf = new Map();
    for (const key of [...links.keys()].sort((a, b) => a - b)) {
      rowOf.set(key, this.rows.length);
      this.rows.push(links.get(key));
    }
    this.linkRow = moved => rowOf.get(keyOf(moved));
    const add = (row, measured, id, start, end) => this.rows[row].tracks[measured].items.push({id, start, end});
    for (let i = 0; i < this.count; ++i) {
      add(this.device[i], 0, i, this.start[i], this.start[i] + this.time[i]);
      const span = this.measuredOperator(i);
      if (span) add(this.device[i], 1, i, span.start, span.end);
    }
    for (const moved of this.transfers) {
      const row = this.linkRow(moved);
      add(row, 0, moved.id, moved.start, moved.end);
      const span = this.measuredTransfer(moved.id);
      if (span) add(row, 1, moved.id, span.start, span.end);
    }
    for (const row of this.rows)
      for (const track of row.tracks) track.lanes = lanesOf(track.items);
  }
}

/// One series, more where transfers overlap; the last holds what is left.
function lanesOf(items) {
  const lanes = [], ends = [], mostLanes = 4;
  items.sort((a, b) => a.start - b.start || a.end - b.end || a.id - b.id);
  for (const item of items) {
    let lane = ends.findIndex(end => end <= item.start);
    if (lane < 0) lane = Math.min(ends.length, mostLanes - 1);
    (lanes[lane] = lanes[lane] || []).push(item);
    ends[lane] = Math.max(ends[lane] || 0, item.end);
  }
  return lanes.length ? lanes.map(lane => new Series(lane)) : [new Series([])];
}

const passes = new Set(['backward', 'grad', 'gradients', 'AddN']);
/// The first parts of a name, up to the first with a number (encoder/l1), two
/// where none has one; the backward pass of a layer belongs to it.
function layerOf(name) {
  const parts = name.split(/[/.]/);
  let first = 0;
  while (first + 1 < parts.length && passes.has(parts[first])) ++first;
  const groups = parts.slice(first, Math.max(parts.length - 1, first + 1));
  const numbered = groups.findIndex(part => /\d/.test(part));
  return groups.slice(0, numbered >= 0 && numbered < 3 ? numbered + 1 : 2).join('/').replace(/#\d+$/, '');
}
