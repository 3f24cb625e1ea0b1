// The page: head, devices, search, and the one operator that is selected.

class Page {
  constructor(model) {
    this.model = model;
    this.selected = -1;
    this.matching = false;
    this.matches = [];
    this.isMatch = new Uint8Array(model.count);
    readTheme();
    this.writeHead();
    this.writeDevices();
    this.axis = new TimeAxis(model.span);
    this.timeline = new Timeline(model, this.axis, this);
    this.memory = new MemoryChart(model, this.axis);
    this.graph = new GraphView(model, this);
    this.tables = new Tables(model, this);
    this.listenToSearch();
    this.listenToTheme();
  }

  writeHead() {
    const {data, devices} = this.model, {summary} = data, {measured} = data;
    const title = summary.model ? stemOf(summary.model) : 'Placement';
    document.title = `${title}: placement`;
    byId('title').textContent = title;
    byId('title').title = summary.model || '';
    byId('subtitle').textContent = [
      summary.machine ? `on ${stemOf(summary.machine)}` : `on ${plural(devices.length, 'device')}`,
      summary.placer === summary.winner ? `placed by ${summary.winner}` : `placed by ${summary.winner} (asked: ${summary.placer})`,
      plural(this.model.count, 'operator'), plural(this.model.edgeFrom.length, 'edge'),
      plural(this.model.transfers.length, 'transfer')].join(' · ');
    const tile = (value, label, hint) => byId('tiles').append(
      element('div', {class: 'tile', title: hint}, element('b', {}, value), element('span', {}, label)));
    const step = measured ? measured.step_ns : summary.makespan_ns;
    tile(timeText(summary.makespan_ns), 'step, predicted', 'The makespan of the plan');
    if (measured) {
      const ratio = measured.step_ns / Math.max(summary.makespan_ns, 1);
      tile(timeText(measured.step_ns), `step, measured (median of ${measured.steps})`, 'The timeline shows the fastest step');
      tile(ratio < 10 ? signedPercentText(ratio - 1) : `${ratio.toFixed(1)} ×`, 'measured against predicted');
    }
    if (summary.objective === 'max-load') tile(timeText(summary.max_load_ns), 'largest load', 'Of a device or link');
    if (summary.objective === 'period') tile(timeText(summary.period_ns), 'period', 'From one step that overlaps to the next');
    if (summary.lower_bound_ns > 0) {
      tile(timeText(summary.lower_bound_ns), `lower bound${summary.lower_bound ? ` (${summary.lower_bound})` : ''}`, 'No placement can be faster');
      tile(percentText(summary.gap), 'gap to the bound', '0 %: proven optimal');
    }
    const single = measured && measured.single_device_ns ? measured.single_device_ns : summary.single_device_ns;
    if (single) {
      tile(timeText(single), 'one device');
      tile(`${(single / Math.max(step, 1)).toFixed(2)} ×`, 'speed-up over one device');
    }
    byId('notes').replaceChildren(...summary.notes.map(note => element('li', {}, note)));
    byId('legend').replaceChildren(...devices.slice(0, 16).map((device, d) => element('span', {},
      element('span', {class: 'swatch', style: `background:${deviceColour(d)}`}), device.name)),
      element('span', {class: 'critical'}, '● critical path'));
    byId('footer').textContent = `${data.format}, data version ${data.version}`;
  }

  writeDevices() {
    const {model} = this, {measured} = model, whole = Math.max(model.makespan, 1);
    const meter = (share, colour, text) => [element('span', {class: 'meter'},
      element('i', {style: `width:${Math.min(100, 100 * share).toFixed(1)}%;background:${colour}`})), text];
    const heads = ['device', 'kind', 'operators', 'busy, predicted', ...(measured ? ['busy, measured'] : []),
      'peak memory of the limit', 'parameters', 'sent a step'];
    const numbers = new Set(['operators', 'parameters', 'sent a step']);
    const rows = model.devices.map((device, d) => {
      const colour = deviceColour(d), peak = device.arena_bytes || device.peak_bytes;
      const cells = [
        [element('span', {class: 'swatch', style: `background:${colour}`}), device.name], device.kind, countText(device.operators),
        meter(device.busy_ns / whole, colour, percentText(device.busy_ns / whole)),
        ...(measured ? [meter(measured.busy_ns[d] / measured.shown_step_ns, colour, percentText(measured.busy_ns[d] / Math.max(measured.shown_step_ns, 1)))] : []),
        meter(peak / Math.max(device.memory_bytes, 1), peak > device.memory_bytes ? theme.critical : colour,
          `${bytesText(peak)} of ${bytesText(device.memory_bytes)}`),
        bytesText(device.resident_bytes), bytesText(device.sent_bytes)];
      return element('tr', {}, ...cells.map((cell, k) =>
        element('td', {class: numbers.has(heads[k]) ? 'number' : 'device'}, ...(Array.isArray(cell) ? cell : [cell]))));
    });
    byId('device-table').replaceChildren(
      element('thead', {}, element('tr', {}, ...heads.map(head => element('th', {class: numbers.has(head) ? 'number' : null}, head)))),
      element('tbody', {}, ...rows));
  }

  /// What is known of an operator, for a tooltip.
  operatorLines(i) {
    const {model} = this, span = model.measuredOperator(i), device = model.devices[model.device[i]];
    const lines = [element('b', {}, model.name[i]),
      element('span', {class: 'swatch', style: `background:${deviceColour(model.device[i])}`}),
      `${device.name}, predicted ${timeText(model.time[i])} from ${timeText(model.start[i])}`];
    if (span) lines.push(element('br'), `measured ${timeText(span.end - span.start)} from ${timeText(span.start)}`);
    const sizes = [];
    if (model.resident[i]) sizes.push(`parameters ${bytesText(model.resident[i])}`);
    if (model.output[i]) sizes.push(`output ${bytesText(model.output[i])}`);
    if (sizes.length) lines.push(element('br'), sizes.join(', '));
    if (model.critical[i]) lines.push(element('br'), element('span', {class: 'critical'}, '● on the critical path'));
    return lines;
  }
  transferLines(k) {
    const {model} = this, moved = model.transfers[k], span = model.measuredTransfer(k);
    const lines = [element('b', {}, `${model.name[moved.op]}:${moved.output}`),
      `${model.devices[moved.from].name} → ${model.devices[moved.to].name}, ${bytesText(moved.bytes)}`, element('br'),
      `predicted ${timeText(moved.end - moved.start)} from ${timeText(moved.start)}`];
    if (span) lines.push(element('br'), `measured ${timeText(span.end - span.start)} from ${timeText(span.start)}`);
    if (moved.critical) lines.push(element('br'), element('span', {class: 'critical'}, '● on the critical path'));
    return lines;
  }

  /// Selects an operator (-1: none) and brings it into view elsewhere than
  /// where it was chosen.
  select(i, origin) {
    this.selected = i;
    if (i >= 0) {
      if (origin !== 'timeline') this.timeline.reveal(i);
      if (origin !== 'graph') this.graph.reveal(i);
    }
    this.timeline.surface.draw();
    this.graph.surface.draw();
    this.tables.draw();
    this.writeCard();
  }

  writeCard() {
    const {model, selected: i} = this, card = byId('card');
    card.hidden = i < 0;
    if (i < 0) return;
    const close = element('button', {type: 'button', class: 'close', title: 'Close (Esc)'}, '×');
    close.onclick = () => this.select(-1);
    const facts = [];
    const fact = (label, value) => facts.push(element('dt', {}, label), element('dd', {}, value));
    const span = model.measuredOperator(i);
    fact('device', model.devices[model.device[i]].name);
    fact('predicted', `${timeText(model.time[i])} from ${timeText(model.start[i])}`);
    if (span) fact('measured', `${timeText(span.end - span.start)} from ${timeText(span.start)}`);
    if (model.resident[i]) fact('parameters', bytesText(model.resident[i]));
    if (model.output[i]) fact('output', bytesText(model.output[i]));
    if (model.critical[i]) fact('critical', 'yes');
    const most = 6;
    const neighbours = (label, rows, ends) => {
      const others = [...new Set(Array.from({length: rows.begin[i + 1] - rows.begin[i]}, (_, k) => ends[rows.list[rows.begin[i] + k]]))];
      if (!others.length) return [];
      const items = others.slice(0, most).map(other => {
        const link = element('a', {}, element('span', {class: 'swatch', style: `background:${deviceColour(model.device[other])}`}), model.name[other]);
        link.onclick = () => this.select(other);
        return element('li', {}, link);
      });
      if (others.length > most) items.push(element('li', {class: 'soft'}, `and ${others.length - most} more`));
      return [element('span', {class: 'soft'}, label), element('ul', {}, ...items)];
    };
    const why = model.why.get(i);
    card.replaceChildren(close, element('b', {}, model.name[i]), element('dl', {}, ...facts),
      ...(why ? [element('p', {}, why)] : []),
      ...neighbours('reads', model.into, model.edgeFrom), ...neighbours('read by', model.outOf, model.edgeTo));
  }

  listenToSearch() {
    const box = byId('search');
    let timer = 0;
    box.oninput = () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.search(box.value), 120);
    };
    box.onkeydown = event => {
      if (event.key !== 'Enter') return;
      clearTimeout(timer);
      if (this.wanted !== box.value) this.search(box.value);
      this.step(event.shiftKey ? -1 : 1);
    };
    byId('previous').onclick = () => this.step(-1);
    byId('next').onclick = () => this.step(1);
    document.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.select(-1);
      if (event.key === '/' && document.activeElement !== box) {
        event.preventDefault();
        box.focus();
      }
    });
  }
  /// Every word must be in the name.
  search(text) {
    const {model} = this, words = text.toLowerCase().split(/\s+/).filter(word => word);
    this.wanted = text;
    this.matching = words.length > 0;
    this.isMatch.fill(0);
    this.matches = [];
    if (this.matching)
      for (let i = 0; i < model.count; ++i) {
        const name = model.name[i].toLowerCase();
        if (words.every(word => name.includes(word))) {
          this.isMatch[i] = 1;
          this.matches.push(i);
        }
      }
    this.matches.sort((a, b) => model.start[a] - model.start[b] || a - b);
    this.at = -1;
    byId('matches').textContent = this.matching ? plural(this.matches.length, 'match').replace('matchs', 'matches') : '';
    byId('previous').disabled = byId('next').disabled = !this.matches.length;
    this.tables.limit = 40;
    this.timeline.surface.draw();
    this.graph.countMatches();
    this.tables.draw();
  }
  step(by) {
    const count = this.matches.length;
    if (!count) return;
    this.at = this.at < 0 ? (by > 0 ? 0 : count - 1) : (this.at + by + count) % count;
    byId('matches').textContent = `${this.at + 1} of ${countText(count)}`;
    this.select(this.matches[this.at], 'search');
  }

  listenToTheme() {
    const root = document.documentElement, dark = matchMedia('(prefers-color-scheme: dark)');
    let chosen = '';
    const apply = () => {
      root.dataset.theme = chosen || (dark.matches ? 'dark' : 'light');
      readTheme();
      for (const surface of [this.timeline.surface, this.memory.surface, this.graph.surface]) surface.draw();
    };
    byId('theme').onclick = () => {
      chosen = root.dataset.theme === 'dark' ? 'light' : 'dark';
      apply();
    };
    dark.addEventListener('change', apply);
    addEventListener('beforeprint', () => {
      for (const surface of [this.timeline.surface, this.memory.surface, this.graph.surface]) surface.drawNow();
    });
    apply();
  }
}

const data = JSON.parse(byId('data').textContent);
if (data.format !== 'baechi-page' || data.version !== 1)
  throw new Error(`data of ${data.format}, version ${data.version}: this page reads baechi-page, version 1`);
new Page(new Model(data));
document.documentElement.dataset.ready = 'yes';
