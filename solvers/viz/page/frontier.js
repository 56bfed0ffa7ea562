// Step time against memory: what the solver has at every budget, where the plan is, what others have.
const FRONTIER = 256;

class FrontierChart {
  constructor(holder, plans) {
    this.holder = holder;
    this.plans = plans;
    this.root = svg('svg', {class: 'chart', role: 'img'}, holder);
    this.root.setAttribute('aria-label', 'Step time against memory: the solver\u2019s frontier, the plan, other strategies');
    this.root.addEventListener('pointermove', (event) => this.move(event));
    this.root.addEventListener('pointerleave', () => tooltip.hide());
    this.gather();
    this.draw();
  }

  gather() {
    const {curves, others, bound, plain} = DATA.frontier;
    this.points = [];
    const add = (label, name, bytes, time) => this.points.push({label, name, bytes, time});
    if (plain.bytes > 0) add('store all', 'other', plain.bytes, plain.time);
    others.forEach((o) => add(o.label, 'other', o.bytes, o.time));
    this.plans.forEach((plan, p) => {
      add(this.plans.length > 1 ? 'AB'[p] : 'this plan', 'chosen', plan.step.total[plan.step.peak], plan.step.makespan);
    });
    const all = this.points.map((p) => [p.bytes, p.time]);
    curves.forEach((curve) => all.push(...curve.points));
    this.most = Math.max(...all.map(([bytes]) => bytes));
    this.least = Math.min(...all.map(([bytes]) => bytes));
    this.plain = plain.time;
    const bounds = bound.map(([, time]) => time);
    this.fastest = Math.min(...all.map(([, time]) => time), ...bounds);
    // What takes far longer than the plans would flatten the rest: it is told at the top.
    const chosen = Math.max(...this.points.filter((p) => p.name === 'chosen').map((p) => p.time));
    const slowest = Math.max(...all.map(([, time]) => time));
    this.slowest = Math.min(slowest, chosen + 0.8 * Math.max(chosen - this.fastest, 0.1 * this.fastest));
    const span = Math.max(this.most - this.least, 0.05 * this.most);
    this.low = Math.max(0, this.least - 0.1 * span);
    this.high = this.most + 0.04 * span;
  }

  x(bytes) {
    return this.left + (bytes - this.low) / (this.high - this.low) * (this.right - this.left);
  }

  bytesAt(x) {
    return this.low + (x - this.left) / (this.right - this.left) * (this.high - this.low);
  }

  y(time) {
    const span = Math.max(1, this.slowest - this.fastest);
    const share = (time - this.fastest) / span;
    return this.bottom - (0.04 + 0.8 * share) * (this.bottom - this.top);
  }

  draw() {
    const width = Math.max(300, this.holder.clientWidth);
    this.left = 52;
    this.right = width - 12;
    this.top = 8;
    this.bottom = FRONTIER - 22;
    clear(this.root);
    this.root.setAttribute('viewBox', '0 0 ' + width + ' ' + FRONTIER);
    this.root.setAttribute('height', FRONTIER);
    this.drawAxes();
    this.drawBound();
    DATA.frontier.curves.forEach((curve, c) => this.drawCurve(curve, c));
    this.plans.forEach((plan) => {
      const x = this.x(plan.budget_bytes);
      if (x >= this.left && x <= this.right) svg('line', {class: 'budget', x1: x, x2: x, y1: this.top, y2: this.bottom}, this.root);
    });
    this.drawPoints();
  }

  drawAxes() {
    const {root} = this;
    for (const tick of byteTicks(this.high, Math.round(5 * this.high / (this.high - this.low)))) {
      const x = this.x(tick.at);
      if (x < this.left - 0.5) continue;
      svg('line', {class: 'grid', x1: x, x2: x, y1: this.top, y2: this.bottom}, root);
      svg('text', {class: 'tick', x, y: this.bottom + 14, 'text-anchor': 'middle'}, root, tick.text);
    }
    const relative = (time) => time / this.plain - 1;
    const low = relative(this.fastest);
    const high = relative(this.slowest);
    const {list, step} = ticks(low, high, 5, 0.01);
    const places = Math.max(0, -Math.floor(Math.log10(step * 100) + 1e-9));
    for (const at of list) {
      const y = this.y((1 + at) * this.plain);
      const text = Math.abs(at) < 1e-9 ? '0' : (at > 0 ? '+' : '\u2212') + Math.abs(100 * at).toFixed(places) + '%';
      svg('line', {class: 'grid', x1: this.left, x2: this.right, y1: y, y2: y}, root);
      svg('text', {class: 'row tick', x: this.left - 7, y: y + 4, 'text-anchor': 'end'}, root, text);
    }
    svg('line', {class: 'axis', x1: this.left, x2: this.right, y1: this.bottom, y2: this.bottom}, root);
  }

  // No schedule is below it.
  drawBound() {
    const bound = DATA.frontier.bound;
    if (bound.length === 0) return;
    let d = 'M' + this.x(bound[0][0]).toFixed(1) + ' ' + this.bottom;
    for (const [bytes, time] of bound) d += 'L' + this.x(bytes).toFixed(1) + ' ' + Math.max(this.top, this.y(time)).toFixed(1);
    d += 'L' + this.right + ' ' + this.y(bound[bound.length - 1][1]).toFixed(1) + 'V' + this.bottom + 'Z';
    svg('path', {class: 'impossible', d}, this.root);
  }

  drawCurve(curve, index) {
    const points = curve.points.filter(([, time]) => time <= this.slowest);
    if (points.length === 0) return;
    const d = stepsPath(points, (bytes) => this.x(bytes), (time) => this.y(time), this.high);
    svg('path', {class: 'curve curve-' + index, d}, this.root);
  }

  // Labels where nothing else is: beside the point, else above or below it, else over a curve.
  drawPoints() {
    const points = this.points.map((p) => {
      const y = p.time > this.slowest ? this.top + 6 : this.y(p.time);
      return {left: this.x(p.bytes) - 4, right: this.x(p.bytes) + 4, top: y - 4, bottom: y + 4};
    });
    const taken = {labels: points, curves: this.curveBoxes()};
    const order = [...this.points].sort((a, b) => (a.name === 'chosen' ? 0 : 1) - (b.name === 'chosen' ? 0 : 1));
    for (const point of order) {
      const beyond = point.time > this.slowest;
      const x = this.x(point.bytes);
      const y = beyond ? this.top + 6 : this.y(point.time);
      if (point.name === 'chosen') {
        svg('circle', {class: 'chosen', cx: x, cy: y, r: 4.5}, this.root);
      } else {
        svg('path', {class: 'other', d: beyond ? 'M' + (x - 4) + ' ' + (y + 3) + 'l4 -7l4 7z' :
          'M' + (x - 3) + ' ' + (y - 3) + 'l6 6m0 -6l-6 6'}, this.root);
      }
      this.label(point, beyond, x, y, taken);
    }
  }

  // What the curves take of the plot.
  curveBoxes() {
    const boxes = [];
    for (const curve of DATA.frontier.curves) {
      curve.points.forEach(([bytes, time], k) => {
        const next = k + 1 < curve.points.length ? curve.points[k + 1] : [this.high, time];
        if (time > this.slowest) return;
        boxes.push({left: this.x(bytes), right: this.x(next[0]), top: this.y(time) - 1, bottom: this.y(time) + 1});
        boxes.push({left: this.x(next[0]) - 1, right: this.x(next[0]) + 1, top: this.y(time), bottom: this.y(next[1])});
      });
    }
    return boxes;
  }

  label(point, beyond, x, y, taken) {
    const text = svg('text', {class: 'note ' + point.name}, this.root,
      point.label + (beyond ? ' ' + formatPercent(point.time / this.plain - 1) : ''));
    const width = text.getComputedTextLength() + 2;
    const places = [[7, 4, 'start'], [-7, 4, 'end'], [7, 19, 'start'], [-7, 19, 'end'], [7, 33, 'start'], [6, -8, 'start'], [6, 15, 'start'], [-6, -8, 'end'], [-6, 15, 'end'],
      [8, 27, 'start'], [-8, 27, 'end'], [8, -20, 'start'], [-8, -20, 'end'], [8, -32, 'start'], [-8, -32, 'end']];
    for (const avoided of [[...taken.labels, ...taken.curves], taken.labels]) {
      for (const [dx, dy, anchor] of places) {
        const left = anchor === 'start' ? x + dx : x + dx - width;
        const box = {left, right: left + width, top: y + dy - 11, bottom: y + dy + 3};
        const outside = box.left < this.left || box.right > this.right + 8 || box.top < 0 || box.bottom > this.bottom;
        if (outside || avoided.some((t) => t.left < box.right && box.left < t.right && t.top < box.bottom && box.top < t.bottom)) {
          continue;
        }
        taken.labels.push(box);
        text.setAttribute('x', x + dx);
        text.setAttribute('y', y + dy);
        text.setAttribute('text-anchor', anchor);
        return;
      }
    }
    text.remove();
  }

  // The points as a table, made when somebody opens it.
  fillTable(holder) {
    if (holder.querySelector('table')) return;
    const table = html('table', {class: 'stages'}, holder);
    const head = html('tr', {}, html('thead', {}, table));
    for (const name of ['', 'memory', 'step', 'over storing everything']) html('th', {scope: 'col'}, head, name);
    const body = html('tbody', {}, table);
    for (const point of [...this.points].sort((a, b) => a.time - b.time)) {
      const row = html('tr', {}, body);
      html('td', {}, row, point.label);
      html('td', {class: 'number'}, row, formatBytes(point.bytes));
      html('td', {class: 'number'}, row, formatTime(point.time));
      html('td', {class: 'number'}, row, formatPercent(point.time / this.plain - 1));
    }
  }

  move(event) {
    const box = this.root.getBoundingClientRect();
    const scale = this.root.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    const bytes = this.bytesAt(x);
    if (x < this.left || x > this.right || y > this.bottom) {
      tooltip.hide();
      return;
    }
    const near = this.points.find((p) => Math.hypot(this.x(p.bytes) - x, this.y(Math.min(p.time, this.slowest)) - y) < 9);
    const say = (time) => formatTime(time) + ', ' + formatPercent(time / this.plain - 1);
    if (near) {
      tooltip.show(near.label, [['memory', formatBytes(near.bytes)], ['step', say(near.time)]], event.clientX, event.clientY);
      return;
    }
    const rows = [];
    DATA.frontier.curves.forEach((curve) => {
      const k = lastAtMost(curve.points.map(([b]) => b), bytes);
      rows.push([curve.label, k < 0 ? 'nothing' : say(curve.points[k][1])]);
    });
    const b = lastAtMost(DATA.frontier.bound.map(([at]) => at), bytes);
    if (b >= 0) rows.push(['no schedule below', say(DATA.frontier.bound[b][1])]);
    tooltip.show('within ' + formatBytes(bytes), rows, event.clientX, event.clientY);
  }
}
