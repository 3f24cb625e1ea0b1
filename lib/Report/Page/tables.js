// Operators, transfers and reasons in tables that sort by any column.

class Tables {
  constructor(model, page) {
    Object.assign(this, {model, page});
    this.tabs = this.describe();
    this.current = this.tabs[0];
    this.limit = 40;
    for (const tab of this.tabs) {
      tab.button = element('button', {type: 'button', role: 'tab'}, tab.label);
      tab.button.onclick = () => {
        this.current = tab;
        this.limit = 40;
        this.draw();
      };
      byId('tabs').append(tab.button);
    }
    byId('table').onclick = event => this.click(event);
    this.draw();
  }

  describe() {
    const {model} = this, {transfers} = model, measured = model.measured;
    const deviceCell = d => [element('span', {class: 'swatch', style: `background:${deviceColour(d)}`}), model.devices[d].name];
    const mark = critical => critical ? element('span', {class: 'critical'}, '●') : '';
    const length = span => span ? span.end - span.start : -1;
    const orDash = (value, text) => value < 0 ? '–' : text(value);
    const ratio = (now, planned) => now >= 0 && planned > 0 ? now / planned - 1 : -Infinity;
    const ratioText = value => value === -Infinity ? '–' : signedPercentText(value);
    const number = (label, value, text) => ({label, value, text: id => text(value(id)), number: true});
    const name = {label: 'operator', value: i => model.name[i], text: i => model.name[i], css: 'name'};
    const device = {label: 'device', value: i => model.device[i], text: i => deviceCell(model.device[i]), css: 'device'};
    const critical = {label: 'critical', value: i => model.critical[i], text: i => mark(model.critical[i]), number: true};
    const time = number('predicted', i => model.time[i], timeText);
    const operatorTimes = measured ? [
      number('measured', i => length(model.measuredOperator(i)), value => orDash(value, timeText)),
      number('off by', i => ratio(length(model.measuredOperator(i)), model.time[i]), ratioText)] : [];
    const allOperators = Array.from({length: model.count}, (_, i) => i);
    const transferTimes = measured ? [
      number('measured', k => length(model.measuredTransfer(k)), value => orDash(value, timeText))] : [];
    return [
      {label: 'Operators', what: 'operator', ids: allOperators, operator: i => i, sort: 2, columns: [
        name, device, time, ...operatorTimes, number('start', i => model.start[i], timeText),
        number('parameters', i => model.resident[i], bytesText), number('output', i => model.output[i], bytesText), critical]},
      {label: 'Transfers', what: 'transfer', ids: transfers.map(moved => moved.id), operator: k => transfers[k].op, sort: 3, columns: [
        {label: 'tensor', value: k => model.name[transfers[k].op], text: k => `${model.name[transfers[k].op]}:${transfers[k].output}`, css: 'name'},
        {label: 'from', value: k => transfers[k].from, text: k => deviceCell(transfers[k].from), css: 'device'},
        {label: 'to', value: k => transfers[k].to, text: k => deviceCell(transfers[k].to), css: 'device'},
        number('bytes', k => transfers[k].bytes, bytesText),
        number('predicted', k => transfers[k].end - transfers[k].start, timeText), ...transferTimes,
        number('start', k => transfers[k].start, timeText),
        {label: 'critical', value: k => +transfers[k].critical, text: k => mark(transfers[k].critical), number: true}]},
      {label: 'Reasons', what: 'reason', ids: [...model.why.keys()], operator: i => i, sort: 2, columns: [
        name, device, time, critical,
        {label: 'why it is there', value: i => model.why.get(i), text: i => model.why.get(i), css: 'why'}]},
    ];
  }

  rows() {
    const {page, current: tab} = this, column = tab.columns[tab.sort];
    let ids = tab.ids;
    if (page.matching) ids = ids.filter(id => page.isMatch[tab.operator(id)]);
    else ids = ids.slice();
    const down = tab.up ? -1 : 1, keys = new Map(ids.map(id => [id, column.value(id)]));
    const order = column.number ? (a, b) => keys.get(b) - keys.get(a) : (a, b) => keys.get(a) < keys.get(b) ? -1 : keys.get(a) > keys.get(b) ? 1 : 0;
    return ids.sort((a, b) => down * (order(a, b) || 0) || a - b);
  }

  draw() {
    const {current: tab, page} = this, ids = this.rows();
    for (const other of this.tabs) {
      other.button.setAttribute('aria-selected', other === tab);
      other.button.textContent = `${other.label} (${countText(other.ids.length)})`;
    }
    const head = element('tr', {}, ...tab.columns.map((column, k) => {
      const arrow = k === tab.sort ? (column.number !== !!tab.up ? ' ▾' : ' ▴') : '';
      return element('th', {'data-column': k, class: column.number ? 'number' : null}, column.label + arrow);
    }));
    const body = ids.slice(0, this.limit).map(id => element('tr',
      {'data-id': tab.operator(id), class: tab.operator(id) === page.selected ? 'selected' : null},
      ...tab.columns.map(column => {
        const content = column.text(id);
        return element('td', {class: column.number ? 'number' : column.css}, ...(Array.isArray(content) ? content : [content]));
      })));
    byId('table').replaceChildren(element('thead', {}, head), element('tbody', {}, ...body));
    const more = byId('more');
    more.replaceChildren(ids.length ? `${countText(Math.min(this.limit, ids.length))} of ${plural(ids.length, tab.what)}` : `no ${tab.what}`,
      page.matching ? ' that match ' : ' ');
    if (ids.length > this.limit) {
      const button = element('button', {type: 'button'}, 'more');
      button.onclick = () => {
        this.limit = Math.min(this.limit * 4, this.limit + 1000);
        this.draw();
      };
      more.append(button);
    }
  }

  click(event) {
    const head = event.target.closest('th[data-column]'), row = event.target.closest('tr[data-id]');
    if (head) {
      const column = Number(head.dataset.column), tab = this.current;
      tab.up = tab.sort === column ? !tab.up : false;
      tab.sort = column;
      this.draw();
    } else if (row) {
      this.page.select(Number(row.dataset.id), 'table');
    }
  }
}
