// Devices and links over time, predicted and measured.

/// The part of the step that is shown: the timeline's and the memory's.
class TimeAxis {
  constructor(span) {
    this.span = span;
    this.left = 0;
    this.width = 1;
    this.surfaces = [];
    this.from = 0;
    this.to = span * 1.01;
  }
  layout(left, width) {
    this.left = left;
    this.width = Math.max(width - left - 8, 1);
  }
  x(time) { return this.left + (time - this.from) / (this.to - this.from) * this.width; }
  time(x) { return this.from + (x - this.left) / this.width * (this.to - this.from); }
  show(from, to) {
    const whole = this.span * 1.01, length = Math.min(Math.max(to - from, 20), whole);
    this.from = Math.max(-0.01 * length, Math.min(from, whole - length));
    this.to = this.from + length;
    for (const surface of this.surfaces) surface.draw();
  }
  fit() { this.show(0, this.span * 1.01); }
  pan(dx) {
    const shift = -dx / this.width * (this.to - this.from);
    this.show(this.from + shift, this.to + shift);
  }
  zoom(factor, x) {
    const at = this.time(x);
    this.show(at - (at - this.from) / factor, at + (this.to - at) / factor);
  }
  ticks() {
    const rough = (this.to - this.from) / Math.max(2, this.width / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(candidate => candidate >= rough);
    const ticks = [];
    for (let at = Math.max(0, Math.ceil(this.from / step) * step); at <= this.to; at += step) ticks.push(at);
    return {ticks, step};
  }
  paintGrid(context, top, bottom, labels) {
    const {ticks, step} = this.ticks();
    const unit = step >= 1e8 ? [1e9, 's'] : step >= 1e5 ? [1e6, 'ms'] : step >= 1e2 ? [1e3, 'µs'] : [1, 'ns'];
    const digits = Math.max(0, -Math.floor(Math.log10(step / unit[0]) + 1e-9));
    context.textAlign = 'center';
    for (const at of ticks) {
      const x = Math.round(this.x(at)) + 0.5;
      context.fillStyle = theme.grid;
      context.fillRect(x - 0.5, top, 1, bottom - top);
      if (labels) {
        context.fillStyle = theme.soft;
        context.fillText(`${(at / unit[0]).toFixed(digits)} ${unit[1]}`, x, top - 5);
      }
    }
    context.textAlign = 'left';
  }
}

class Timeline {
  constructor(model, axis, page) {
    Object.assign(this, {model, axis, page});
    this.canvas = byId('timeline');
    this.surface = new Surface(this.canvas, (context, width) => this.paint(context, width));
    axis.surfaces.push(this.surface);
    this.place();
    listen(this.canvas, this);
    zoomButtons('timeline', this.canvas, this);
    byId('timeline-colour').onchange = () => this.surface.draw();
    byId('flows').onchange = () => this.surface.draw();
  }

  /// Where every row and track is.
  place() {
    const count = this.model.rows.length;
    const [deviceHeight, linkHeight] = count > 80 ? [9, 5] : count > 24 ? [13, 8] : [22, 11];
    const gap = count > 80 ? 1 : 3;
    let y = 24;
    for (const row of this.model.rows) {
      row.top = y;
      // What does nothing is one narrow track, not one for each kind.
      const idle = row.tracks.every(track => !track.items.length);
      for (const track of row.tracks) {
        track.top = y;
        if (idle && track !== row.tracks[0]) {
          track.height = track.laneHeight = 0;
          continue;
        }
        track.laneHeight = row.device !== undefined && !idle ? deviceHeight
          : Math.max(4, Math.round(linkHeight / Math.sqrt(track.lanes.length)));
        track.height = track.laneHeight * track.lanes.length;
        y += track.height + 1;
      }
      row.bottom = y;
      y += row.tracks.length > 1 ? 2 * gap : gap;
    }
    this.canvas.style.height = `${y + 4}px`;
  }

  pan(dx) { this.axis.pan(dx); }
  zoom(factor, x) { this.axis.zoom(factor, x); }
  fit() { this.axis.fit(); }
  leave() { this.point(null); tip.hide(); }

  point(item) {
    const same = (a, b) => a === b || (a && b && a.id === b.id && a.row === b.row && a.kind === b.kind);
    if (same(item, this.pointed)) return;
    this.pointed = item;
    this.surface.draw();
  }

  colourOf(row, id) {
    const mode = byId('timeline-colour').value, {model} = this;
    if (row.device === undefined) {
      const moved = model.transfers[id];
      if (mode === 'critical') return moved.critical ? theme.critical : theme.soft;
      return mode === 'layer' ? layerColour(model.layer[moved.op]) : deviceColour(moved.from);
    }
    if (mode === 'critical') return model.critical[id] ? theme.critical : theme.soft;
    return mode === 'layer' ? layerColour(model.layer[id]) : deviceColour(row.device);
  }
  operatorOf(row, id) { return row.device === undefined ? this.model.transfers[id].op : id; }

  paint(context, width) {
    const {axis, model} = this;
    axis.layout(this.labelWidth(context, width), width);
    const last = model.rows[model.rows.length - 1];
    const bottom = last ? last.bottom : 24;
    for (const row of model.rows)
      for (const track of row.tracks) {
        context.fillStyle = theme.track;
        context.fillRect(axis.left, track.top, axis.width, track.height);
      }
    axis.paintGrid(context, 20, bottom, true);
    context.save();
    context.beginPath();
    context.rect(axis.left, 0, axis.width, bottom);
    context.clip();
    for (const row of model.rows)
      for (const track of row.tracks)
        track.lanes.forEach((series, lane) =>
          this.paintSeries(context, row, series, track.top + lane * track.laneHeight, track.laneHeight));
    if (byId('flows').checked) this.paintFlows(context);
    this.paintSelected(context);
    this.paintEnds(context, bottom);
    context.restore();
    this.paintLabels(context);
  }

  labelWidth(context, width) {
    if (!this.widest)
      this.widest = Math.max(100, ...this.model.rows.map(row => context.measureText(row.label).width + 20)) +
        (this.model.measured ? 58 : 0);
    return Math.min(this.widest, width * 0.3);
  }

  paintLabels(context) {
    const {axis, model} = this;
    let written = -Infinity;
    for (const row of model.rows) {
      const middle = (row.top + row.bottom - 1) / 2;
      if (row.device !== undefined) {
        context.fillStyle = deviceColour(row.device);
        context.fillRect(0, row.top, 4, row.bottom - row.top - 1);
      }
      // Not over the name before.
      if (middle - written < 9) continue;
      written = middle;
      context.fillStyle = row.device !== undefined ? theme.ink : theme.soft;
      const kinds = model.measured && axis.left > 110 ? 56 : 0;
      context.fillText(clippedName(context, row.label, axis.left - 14 - kinds), 9, middle + 4);
      if (!kinds) continue;
      context.fillStyle = theme.soft;
      for (const track of row.tracks)
        if (track.items.length && track.height >= 9) context.fillText(track.kind, axis.left - 56, track.top + track.height / 2 + 4);
    }
  }

  /// Spans of a pixel and more one by one; of what is below, a column a pixel
  /// in the colour of the longest, paler where the device was idle.
  paintSeries(context, row, series, top, height) {
    const {axis, page} = this, scale = axis.width / (axis.to - axis.from);
    const dim = page.matching;
    let column = -1, covered = 0, longest = -1, longestId = -1, matched = false;
    const fill = (x, width, id, hit, cover) => {
      context.fillStyle = hit ? theme.match : this.colourOf(row, id);
      context.globalAlpha = (dim && !hit ? 0.22 : 1) * cover;
      context.fillRect(x, top, width, height);
    };
    const flush = () => {
      if (column >= 0) fill(column, 1, longestId, matched, 0.35 + 0.65 * Math.min(covered, 1));
      column = -1;
    };
    for (let k = series.first(axis.from); k < series.id.length && series.start[k] <= axis.to; ++k) {
      const id = series.id[k], x = axis.x(series.start[k]), width = (series.end[k] - series.start[k]) * scale;
      const hit = dim && page.isMatch[this.operatorOf(row, id)] === 1;
      if (width >= 1) {
        flush();
        const left = Math.max(x, axis.left - 2), right = Math.min(x + width, axis.left + axis.width + 2);
        fill(left, Math.max(right - left - (width > 4 ? 1 : 0), 1), id, hit, 1);
        if (right - left > 40 && height >= 11) {
          const text = fitName(this.nameOf(row, id), Math.floor((right - left - 8) / 6.1));
          context.globalAlpha = dim && !hit ? 0.4 : 1;
          context.fillStyle = '#10141c';
          context.fillText(text, left + 4, top + height / 2 + 4);
        }
        continue;
      }
      const at = Math.floor(x);
      if (at !== column) {
        flush();
        column = at;
        covered = 0;
        longest = -1;
        matched = false;
      }
      covered += width;
      if (hit ? !matched || width > longest : !matched && width > longest) {
        longest = width;
        longestId = id;
      }
      matched = matched || hit;
    }
    flush();
    context.globalAlpha = 1;
  }

  nameOf(row, id) {
    if (row.device !== undefined) return this.model.name[id];
    const moved = this.model.transfers[id];
    return `${this.model.name[moved.op]}:${moved.output}`;
  }

  /// An arrow from the sender's row over the link's to the receiver's.
  paintFlows(context) {
    const {model, axis, page} = this, most = 250;
    const spans = kind => kind === 0 ? moved => moved : moved => model.measuredTransfer(moved.id);
    for (let kind = 0; kind < (model.measured ? 2 : 1); ++kind) {
      const spanOf = spans(kind);
      const visible = model.transfers.filter(moved => {
        const span = spanOf(moved);
        return span && span.end >= axis.from && span.start <= axis.to;
      });
      const wanted = moved => page.selected === moved.op || moved.targets.includes(page.selected) ||
        (this.pointed && this.operatorOf(this.pointed.row, this.pointed.id) === moved.op);
      for (const moved of visible) {
        const strong = wanted(moved);
        if (!strong && visible.length > most) continue;
        const span = spanOf(moved), middle = (row, lane) => {
          const track = model.rows[row].tracks[kind];
          return track.top + (lane ? track.height / 2 : track.height - 3);
        };
        const link = model.linkRow(moved);
        const faded = page.matching && !page.isMatch[moved.op];
        context.globalAlpha = strong ? 1 : faded ? 0.1 : Math.max(0.15, 0.7 - visible.length / 400);
        context.strokeStyle = moved.critical ? theme.critical : theme.ink;
        context.lineWidth = strong ? 1.6 : 0.8;
        this.curve(context, axis.x(span.start), middle(moved.from, false), axis.x(span.start), middle(link, true));
        this.curve(context, axis.x(span.end), middle(link, true), axis.x(span.end), middle(moved.to, false));
        context.fillStyle = context.strokeStyle;
        context.beginPath();
        context.arc(axis.x(span.end), middle(moved.to, false), strong ? 3 : 2, 0, 7);
        context.fill();
      }
    }
    context.globalAlpha = 1;
  }
  curve(context, x1, y1, x2, y2) {
    const bend = Math.min(10, Math.abs(y2 - y1) / 4);
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    context.stroke();
  }

  paintSelected(context) {
    const {axis, model, page} = this;
    const frame = (row, kind, span) => {
      const track = model.rows[row].tracks[kind], x = axis.x(span.start);
      const width = Math.max((span.end - span.start) / (axis.to - axis.from) * axis.width, 2);
      context.strokeRect(x - 0.5, track.top - 1, width + 1, track.height + 2);
    };
    context.strokeStyle = theme.ink;
    context.lineWidth = 2;
    const both = (row, predicted, measured) => {
      frame(row, 0, predicted);
      if (measured) frame(row, 1, measured);
    };
    const i = page.selected;
    if (i >= 0)
      both(model.device[i], {start: model.start[i], end: model.start[i] + model.time[i]}, model.measuredOperator(i));
    if (this.pointed)
      frame(model.rows.indexOf(this.pointed.row), this.pointed.kind, this.pointed);
  }

  paintEnds(context, bottom) {
    const {axis, model} = this, ends = [[model.makespan, theme.accent]];
    if (model.measured) ends.push([model.measured.shown_step_ns, theme.ink]);
    context.lineWidth = 1;
    for (const [time, colour] of ends) {
      context.strokeStyle = colour;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(axis.x(time), 20);
      context.lineTo(axis.x(time), bottom);
      context.stroke();
    }
    context.setLineDash([]);
  }

  /// What is drawn at a point, or within a few pixels of it.
  find(x, y) {
    const {axis, model} = this, near = 3;
    if (x < axis.left) return null;
    for (const row of model.rows)
      for (let kind = 0; kind < row.tracks.length; ++kind) {
        const track = row.tracks[kind];
        if (!track.height || y < track.top || y >= track.top + track.height + 1) continue;
        const lane = Math.min(Math.floor((y - track.top) / track.laneHeight), track.lanes.length - 1);
        const series = track.lanes[lane];
        let best = null, least = near + 1;
        for (let k = series.first(axis.time(x - near)); k < series.id.length && axis.x(series.start[k]) <= x + near; ++k) {
          const from = axis.x(series.start[k]), to = axis.x(series.end[k]);
          const distance = x < from ? from - x : x > to ? x - to : 0;
          // Of several in one pixel the longest.
          const longer = best && distance === least && series.end[k] - series.start[k] > best.end - best.start;
          if (distance < least || longer) {
            least = distance;
            best = {row, kind, id: series.id[k], start: series.start[k], end: series.end[k]};
          }
        }
        return best;
      }
    return null;
  }
  hover(x, y, event) {
    const item = this.find(x, y);
    this.point(item);
    if (!item) {
      tip.hide();
      return;
    }
    tip.show(event, item.row.device !== undefined ? this.page.operatorLines(item.id) : this.page.transferLines(item.id));
  }
  click(x, y) {
    const item = this.find(x, y);
    this.page.select(item ? this.operatorOf(item.row, item.id) : -1, 'timeline');
  }
  /// Brings an operator into view.
  reveal(i) {
    const {axis, model} = this, start = model.start[i], length = Math.max(model.time[i], 1);
    const visible = start >= axis.from && start + length <= axis.to;
    if (visible && length / (axis.to - axis.from) * axis.width >= 3) return;
    const window = Math.min(axis.to - axis.from, length * 30);
    axis.show(start + length / 2 - window / 2, start + length / 2 + window / 2);
  }
}
