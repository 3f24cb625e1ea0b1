// The bytes that each device holds, against its limit, over the timeline's axis.

class MemoryChart {
  constructor(model, axis) {
    Object.assign(this, {model, axis});
    this.canvas = byId('memory');
    this.shown = model.devices.map((_, d) => d).filter(d => model.devices[d].peak_bytes || model.devices[d].arena_bytes);
    [this.height, this.gap] = this.shown.length > 32 ? [14, 3] : this.shown.length > 12 ? [34, 8] : [60, 8];
    this.canvas.style.height = `${this.shown.length * (this.height + this.gap) + 4}px`;
    const idle = model.devices.length - this.shown.length;
    byId('memory-hint').textContent += idle ? `; ${plural(idle, 'device')} without any left out` : '';
    const levelsOf = memory => memory.map(([at, bytes]) => ({at: Float64Array.from(at), bytes: Float64Array.from(bytes)}));
    this.levels = levelsOf(model.data.memory);
    this.measured = model.measured ? levelsOf(model.measured.memory) : [];
    if (this.measured.length) byId('memory-hint').textContent += '; filled: predicted, line: measured';
    this.surface = new Surface(this.canvas, context => this.paint(context));
    axis.surfaces.push(this.surface);
    listen(this.canvas, this);
  }
  pan(dx) { this.axis.pan(dx); }
  zoom(factor, x) { this.axis.zoom(factor, x); }
  fit() { this.axis.fit(); }
  leave() { tip.hide(); }
  click() {}

  /// The last level that begins at or before a time.
  indexAt(levels, time) {
    let low = 0, high = levels.at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (levels.at[middle] <= time) low = middle + 1; else high = middle;
    }
    return Math.max(low - 1, 0);
  }
  /// A limit far above what is used would press the curve flat.
  ceiling(device) {
    const most = Math.max(device.peak_bytes, device.arena_bytes || 0, 1);
    return device.memory_bytes <= most * 4 ? Math.max(device.memory_bytes, most) * 1.08 : most * 1.25;
  }

  paint(context) {
    const {axis, model} = this;
    this.shown.forEach((d, row) => {
      const device = model.devices[d], top = row * (this.height + this.gap) + 2, bottom = top + this.height, ceiling = this.ceiling(device);
      const y = bytes => bottom - Math.min(bytes / ceiling, 1) * this.height;
      context.fillStyle = theme.track;
      context.fillRect(axis.left, top, axis.width, this.height);
      axis.paintGrid(context, top, bottom, false);
      context.save();
      context.beginPath();
      context.rect(axis.left, top, axis.width, this.height);
      context.clip();
      if (this.levels[d]) this.fillLevels(context, d, y, bottom);
      if (this.measured[d]) this.strokeMeasured(context, d, y);
      const line = (bytes, colour, dash) => {
        context.strokeStyle = colour;
        context.setLineDash(dash);
        context.beginPath();
        context.moveTo(axis.left, y(bytes));
        context.lineTo(axis.left + axis.width, y(bytes));
        context.stroke();
        context.setLineDash([]);
      };
      context.lineWidth = 1.2;
      if (device.arena_bytes) line(device.arena_bytes, theme.ink, [2, 3]);
      const shown = device.memory_bytes <= ceiling;
      if (shown) line(device.memory_bytes, theme.critical, [5, 4]);
      context.restore();
      context.fillStyle = deviceColour(d);
      context.fillRect(0, top, 4, this.height);
      context.fillStyle = theme.ink;
      context.fillText(device.name, 9, top + Math.min(13, this.height - 2));
      if (this.height < 30) return;
      context.fillStyle = theme.soft;
      const held = device.arena_bytes ? `arena ${bytesText(device.arena_bytes)}` : `peak ${bytesText(device.peak_bytes)}`;
      context.fillText(held, 9, top + 27);
      if (this.height > 40) {
        context.fillText(`limit ${bytesText(device.memory_bytes)}`, 9, top + 41);
        if (!shown) context.fillText('(above)', 9, top + 54);
      }
    });
  }

  /// A path along the levels until a time, one column a pixel: the most in it. The
  /// pixels where it begins and ends; null where none of it is in view.
  tracePath(context, levels, until, y) {
    const {axis} = this, count = levels.at.length;
    const end = Math.min(axis.left + axis.width, axis.x(until));
    const begin = Math.max(axis.left, axis.x(0));
    if (!count || end <= begin) return null;
    let k = this.indexAt(levels, axis.time(begin));
    context.beginPath();
    for (let x = Math.floor(begin); x < end; ++x) {
      const next = axis.time(x + 1);
      let most = levels.bytes[k];
      while (k + 1 < count && levels.at[k + 1] < next) most = Math.max(most, levels.bytes[++k]);
      context.lineTo(Math.max(x, begin), y(most));
      context.lineTo(Math.min(x + 1, end), y(most));
    }
    return [begin, end];
  }

  fillLevels(context, d, y, bottom) {
    const ends = this.tracePath(context, this.levels[d], this.model.makespan, y);
    if (!ends) return;
    context.lineTo(ends[1], bottom);
    context.lineTo(ends[0], bottom);
    context.closePath();
    context.fillStyle = deviceColour(d);
    context.globalAlpha = 0.45;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = deviceColour(d);
    context.lineWidth = 1;
    context.stroke();
  }

  strokeMeasured(context, d, y) {
    if (!this.tracePath(context, this.measured[d], this.model.measured.shown_step_ns, y)) return;
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.2;
    context.stroke();
  }

  hover(x, y, event) {
    const d = this.shown[Math.floor(y / (this.height + this.gap))], device = this.model.devices[d], time = this.axis.time(x);
    const at = (levels, until) => levels && time <= until ? levels.bytes[this.indexAt(levels, time)] : null;
    const planned = device && at(this.levels[d], this.model.makespan);
    const measured = device && this.model.measured ? at(this.measured[d], this.model.measured.shown_step_ns) : null;
    if (!device || x < this.axis.left || time < 0 || (planned === null && measured === null)) {
      tip.hide();
      return;
    }
    const lines = [element('b', {}, device.name), `of ${bytesText(device.memory_bytes)} at ${timeText(time)}: `];
    if (planned !== null) lines.push(`${bytesText(planned)} predicted`);
    if (measured !== null) lines.push(`${planned !== null ? ', ' : ''}${bytesText(measured)} measured`);
    if (device.arena_bytes) lines.push(element('br'), `arena ${bytesText(device.arena_bytes)}, of it held at most ${bytesText(device.peak_bytes)}`);
    tip.show(event, lines);
  }
}
