// The steps of all plans on one time axis: streams as lanes, memory by use below them.
const LANE = 20;
const LANE_GAP = 3;
const MEMORY = 190;
const HEADROOM = 16;  // above memory, for what is said about its peak

class Timeline {
  constructor(holder, plans) {
    this.holder = holder;
    this.plans = plans;
    this.steps = plans.map((plan) => plan.step);
    const ends = this.steps.map((s) => Math.max(s.makespan, s.measured ? s.measured.makespan : 0));
    this.view = new View(Math.max(1, ...ends));
    this.view.listeners.push(() => this.draw());
    this.selected = null;  // {plan, event}
    this.stage = null;     // whose events are marked
    const most = plans.map((plan) => Math.max(plan.step.total[plan.step.peak],
      plan.step.measured ? plan.step.measured.peak : 0,
      ...(plan.step.measured ? plan.step.measured.most : [0])));
    this.highest = Math.max(1, ...most);
    // A budget far above what is used would flatten the picture.
    this.budgets = plans.map((plan) => plan.budget_bytes <= 1.7 * this.highest);
    plans.forEach((plan, p) => {
      if (this.budgets[p]) this.highest = Math.max(this.highest, plan.budget_bytes);
    });
    this.layOut();
    this.root = svg('svg', {class: 'chart', tabindex: 0, role: 'img', 'aria-describedby': 'keys'}, holder);
    this.root.setAttribute('aria-label', 'The step in time: streams and memory. ' +
      'Left and right step through the instructions.');
    this.draw();
  }

  // From top to bottom: rows {kind, plan, top, height, ...}.
  layOut() {
    this.rows = [];
    let top = 4;
    const named = this.plans.length > 1;
    this.steps.forEach((step, p) => {
      if (named) {
        this.rows.push({kind: 'title', plan: p, top, height: 20});
        top += 22;
      }
      step.lanes.forEach((lane, stream) => {
        if (lane.length === 0) return;
        this.rows.push({kind: 'lane', plan: p, top, height: LANE, stream, lane, start: step.start,
          end: step.end, label: STREAM_NAMES[stream]});
        top += LANE + LANE_GAP;
      });
      if (step.measured) {
        this.rows.push({kind: 'lane', plan: p, top, height: LANE, measured: true,
          lane: step.measured.lane, start: step.measured.start, end: step.measured.end,
          label: 'measured'});
        top += LANE + LANE_GAP;
      }
      this.rows.push({kind: 'memory', plan: p, top: top + HEADROOM, height: MEMORY});
      top += HEADROOM + MEMORY + (p + 1 < this.steps.length ? 26 : 0);
    });
    this.bottom = top;
    this.height = top + 30;
  }

  memoryY(row, bytes) {
    return row.top + row.height * (1 - bytes / (1.02 * this.highest));
  }

  draw() {
    const width = Math.max(320, this.holder.clientWidth);
    const narrow = width < 600;
    this.view.left = narrow ? 74 : 104;
    this.view.right = width - (narrow ? 10 : 92);
    this.narrow = narrow;
    clear(this.root);
    const root = this.root;
    root.setAttribute('viewBox', '0 0 ' + width + ' ' + this.height);
    root.setAttribute('height', this.height);
    root.dataset.from = this.view.from;
    root.dataset.to = this.view.to;
    const clip = svg('clipPath', {id: 'plot'}, svg('defs', {}, root));
    svg('rect', {x: this.view.left, y: 0, width: this.view.right - this.view.left, height: this.height}, clip);
    hatching(root);
    this.drawAxis();
    for (const row of this.rows) {
      if (row.kind === 'title') this.drawTitle(row);
      if (row.kind === 'lane') this.drawLane(row);
      if (row.kind === 'memory') this.drawMemory(row);
    }
    this.drawMarks();
    this.cursor = svg('line', {class: 'cursor', y1: 0, y2: this.bottom, x1: -9, x2: -9}, root);
  }

  drawAxis() {
    const {view, root} = this;
    const count = Math.max(3, Math.round((view.right - view.left) / 110));
    for (const tick of timeTicks(view.from, view.to, count)) {
      const x = view.x(tick.at).toFixed(1);
      svg('line', {class: 'grid', x1: x, x2: x, y1: 0, y2: this.bottom}, root);
      svg('text', {class: 'tick', x, y: this.bottom + 15, 'text-anchor': 'middle'}, root, tick.text);
    }
    if (view.whole) return;
    const overview = this.bottom + 23;
    const width = view.right - view.left;
    svg('rect', {class: 'rail', x: view.left, y: overview, width, height: 4, rx: 2}, root);
    svg('rect', {class: 'thumb', x: view.left + width * view.from / view.full, y: overview,
      width: Math.max(3, width * (view.to - view.from) / view.full), height: 4, rx: 2}, root);
  }

  drawTitle(row) {
    const plan = this.plans[row.plan];
    const text = svg('text', {class: 'title', x: 0, y: row.top + 15}, this.root);
    svg('tspan', {class: 'strong'}, text, 'AB'[row.plan] + '  ' + plan.label);
    svg('tspan', {class: 'soft', dx: 10}, text, formatBytes(plan.step.total[plan.step.peak]) + ' at its peak, ' +
      formatTime(plan.step.makespan));
  }

  gutter(text, y, extra) {
    svg('text', {class: 'row' + (extra || ''), x: this.view.left - 8, y, 'text-anchor': 'end'}, this.root,
      fitted(text, this.view.left - 8, 7.4) || text);
  }

  drawLane(row) {
    const {view, root} = this;
    const step = this.steps[row.plan];
    svg('rect', {class: 'lane', x: view.left, y: row.top, width: view.right - view.left, height: row.height}, root);
    this.gutter(row.label, row.top + 14);
    const first = firstEndingAfter(row.lane, row.end, view.from);
    const {boxes, columns} = laneShapes(row.lane, row.start, row.end, step.work, first, view);
    const paths = WORKS.map(() => '');
    for (const [i, from, to] of boxes) {
      const gap = to - from > 3 ? 0.6 : 0;
      paths[step.work[i]] += boxPath(from, to - gap, row.top, row.height);
    }
    for (const {pixel, width} of columns) {
      const sum = width.reduce((a, b) => a + b, 0);
      let y = row.top + row.height;
      width.forEach((share, work) => {
        if (share === 0) return;
        const height = share / Math.max(1, sum) * row.height;
        paths[work] += boxPath(pixel, pixel + 1, y - height, height);
        y -= height;
      });
    }
    const group = svg('g', {'clip-path': 'url(#plot)'}, root);
    paths.forEach((d, work) => {
      if (d) svg('path', {class: 'work-' + WORKS[work], d}, group);
    });
    for (const [i, from, to] of boxes) {
      if (to - from < 16) continue;
      const text = labelFor(DATA.stages.label[step.stage[i]], step.stage[i], to - from - 6, 5.7);
      if (text) svg('text', {class: 'inside on-' + WORKS[step.work[i]], x: (from + to) / 2, y: row.top + 14,
        'text-anchor': 'middle'}, group, text);
    }
  }

  drawMemory(row) {
    const {view, root} = this;
    const step = this.steps[row.plan];
    const y = (bytes) => this.memoryY(row, bytes);
    const right = Math.min(view.right, view.x(step.makespan));
    for (const tick of byteTicks(this.highest, 4)) {
      const at = y(tick.at);
      svg('line', {class: tick.at === 0 ? 'axis' : 'grid', x1: view.left, x2: view.right, y1: at, y2: at}, root);
      this.gutter(tick.text, at + 4, ' tick');
    }
    const group = svg('g', {'clip-path': 'url(#plot)'}, root);
    const runs = memoryRuns(step, view).filter((run) => run.from < right);
    let low = runs.map(() => y(0));
    let sums = runs.map(() => 0);
    step.memory.forEach((bytes, use) => {
      if (!bytes) return;
      sums = sums.map((sum, r) => sum + bytes[runs[r].sample]);
      const high = sums.map(y);
      svg('path', {class: 'use-' + use, d: areaPath(runs, low, high)}, group);
      low = high;
    });
    this.drawBudget(row);
    if (step.measured) this.drawMeasuredMemory(row, group);
    this.drawPeak(row);
  }

  drawBudget(row) {
    const {view, root} = this;
    const plan = this.plans[row.plan];
    if (!this.budgets[row.plan]) {
      this.aside(row.top + 8, 'budget', formatBytes(plan.budget_bytes) + ' \u2191', 'budget-text');
      return;
    }
    const y = this.memoryY(row, plan.budget_bytes);
    svg('line', {class: 'budget', x1: view.left, x2: view.right, y1: y, y2: y}, root);
    this.aside(y, 'budget', formatBytes(plan.budget_bytes), 'budget-text');
  }

  // At the right of the plot, where there is room.
  aside(y, label, value, name) {
    if (this.narrow) return;
    const text = svg('text', {class: 'aside ' + name, x: this.view.right + 6, y: y + 1}, this.root);
    svg('tspan', {x: this.view.right + 6}, text, label);
    svg('tspan', {x: this.view.right + 6, dy: 12}, text, value);
  }

  drawPeak(row) {
    const {view, root} = this;
    const step = this.steps[row.plan];
    const bytes = step.total[step.peak];
    const x = view.x((step.time[step.peak] + step.sampleEnd(step.peak)) / 2);
    if (x < view.left || x > view.right) return;
    const y = this.memoryY(row, bytes);
    svg('line', {class: 'leader', x1: x, x2: x, y1: row.top - 3, y2: y}, root);
    svg('circle', {class: 'peak', cx: x, cy: y, r: 2.5}, root);
    const anchor = x > view.right - 60 ? 'end' : x < view.left + 60 ? 'start' : 'middle';
    svg('text', {class: 'note', x: anchor === 'middle' ? x : x + (anchor === 'end' ? 4 : -4), y: row.top - 6,
      'text-anchor': anchor}, root, 'peak ' + formatBytes(bytes));
  }

  drawMeasuredMemory(row, group) {
    const {view} = this;
    const measured = this.steps[row.plan].measured;
    const points = [];
    measured.held.forEach((bytes, i) => points.push([measured.start[i], measured.most[i]], [measured.end[i], bytes]));
    const d = stepsPath(points, (t) => view.x(t), (b) => this.memoryY(row, b), measured.makespan);
    svg('path', {class: 'measured-halo', d}, group);
    svg('path', {class: 'measured', d}, group);
    const y = this.memoryY(row, measured.peak);
    const budget = this.budgets[row.plan] ? this.memoryY(row, this.plans[row.plan].budget_bytes) : row.top + 8;
    svg('line', {class: 'measured', x1: view.right, x2: view.right + 5, y1: y, y2: y}, this.root);
    this.aside(Math.max(y, budget + 27), 'measured', formatBytes(measured.peak), '');
  }

  // Around what is selected, and below the events of the stage that is.
  drawMarks() {
    const {view, root} = this;
    const group = svg('g', {'clip-path': 'url(#plot)'}, root);
    for (const row of this.rows) {
      if (row.kind !== 'lane') continue;
      const step = this.steps[row.plan];
      const box = (i, name) => {
        const from = Math.max(view.left - 5, view.x(row.start[i]));
        const to = Math.min(view.right + 5, view.x(row.end[i]));
        if (to < view.left || from > view.right) return;
        svg('rect', {class: name, x: from, y: row.top - 1, width: Math.max(2, to - from), height: row.height + 2}, group);
      };
      if (this.stage !== null) {
        for (const i of step.byStage.get(this.stage) || []) {
          if (row.measured || (step.stream[i] === row.stream && step.end[i] > step.start[i])) box(i, 'of-stage');
        }
      }
      const chosen = this.selected;
      if (chosen && chosen.plan === row.plan && !row.measured && step.stream[chosen.event] === row.stream) {
        box(chosen.event, 'selected');
      }
    }
  }

  rowAt(y) {
    return this.rows.find((row) => row.kind !== 'title' && y >= row.top - 2 && y <= row.top + row.height + 2);
  }
}

// What waiting looks like.
function hatching(root) {
  const pattern = svg('pattern', {id: 'hatch', width: 5, height: 5, patternUnits: 'userSpaceOnUse',
    patternTransform: 'rotate(45)'}, svg('defs', {}, root));
  svg('rect', {class: 'hatch-ground', width: 5, height: 5}, pattern);
  svg('rect', {class: 'hatch-line', width: 1.6, height: 5}, pattern);
}
