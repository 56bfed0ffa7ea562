// Pointer and keys on the timeline: what is there, closer in, along.
class TimelineControls {
  constructor(timeline) {
    this.timeline = timeline;
    this.root = timeline.root;
    this.drag = null;
    const on = (name, action, options) => this.root.addEventListener(name, action, options);
    on('pointermove', (event) => this.move(event));
    on('pointerdown', (event) => this.press(event));
    on('pointerup', (event) => this.release(event));
    on('pointerleave', () => this.leave());
    on('wheel', (event) => this.wheel(event), {passive: false});
    on('dblclick', () => timeline.view.show(0, timeline.view.full));
    on('keydown', (event) => this.key(event));
    on('blur', () => tooltip.hide());
  }

  // In the drawing's own units.
  point(event) {
    const box = this.root.getBoundingClientRect();
    const scale = this.root.viewBox.baseVal.width / box.width;
    return {x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale};
  }

  inPlot(point) {
    const {left, right} = this.timeline.view;
    return point.x >= left && point.x <= right && point.y <= this.timeline.bottom;
  }

  press(event) {
    if (event.button !== 0 || !this.inPlot(this.point(event))) return;
    const {from, to} = this.timeline.view;
    this.drag = {x: this.point(event).x, from, to};
    this.root.setPointerCapture(event.pointerId);
  }

  release() {
    this.drag = null;
    this.root.classList.remove('dragged');
  }

  leave() {
    this.timeline.cursor.setAttribute('x1', -9);
    this.timeline.cursor.setAttribute('x2', -9);
    tooltip.hide();
  }

  move(event) {
    const {view, cursor} = this.timeline;
    const point = this.point(event);
    if (this.drag) {
      const {x, from, to} = this.drag;
      const shift = (x - point.x) / (view.right - view.left) * (to - from);
      if (Math.abs(x - point.x) > 2) this.root.classList.add('dragged');
      view.show(from + shift, to + shift);
      return;
    }
    if (!this.inPlot(point)) {
      this.leave();
      return;
    }
    cursor.setAttribute('x1', point.x);
    cursor.setAttribute('x2', point.x);
    const row = this.timeline.rowAt(point.y);
    if (row) this.tell(row, point, event); else tooltip.hide();
  }

  tell(row, point, event) {
    const {view} = this.timeline;
    const step = this.timeline.steps[row.plan];
    const time = view.time(point.x);
    if (row.kind === 'memory') {
      if (time > step.makespan) tooltip.hide();
      else tooltip.show(formatTime(time), memoryRows(step, step.sampleAt(time)), event.clientX, event.clientY);
      return;
    }
    const under = this.eventsAt(row, time);
    if (under.length === 0) {
      tooltip.show(row.label + ': nothing runs', [['at', formatTime(time)]], event.clientX, event.clientY);
    } else if (under.length === 1) {
      const [title, rows] = eventRows(step, under[0], row.measured);
      tooltip.show(title, rows, event.clientX, event.clientY);
    } else {
      const few = under.slice(0, 5).map((i) => [step.text(i), formatTime(row.end[i] - row.start[i]),
        'work-' + WORKS[step.work[i]]]);
      if (under.length > 5) few.push(['and ' + (under.length - 5) + ' more']);
      tooltip.show(under.length + ' instructions in this pixel', few, event.clientX, event.clientY);
    }
  }

  // Those within the pixel, the longest first.
  eventsAt(row, time) {
    const {view} = this.timeline;
    const half = (view.to - view.from) / (view.right - view.left) / 2;
    const found = [];
    for (let k = firstEndingAfter(row.lane, row.end, time - half); k < row.lane.length; ++k) {
      const i = row.lane[k];
      if (row.start[i] > time + half) break;
      if (row.start[i] <= time && row.end[i] >= time && view.x(row.end[i]) - view.x(row.start[i]) >= 2) return [i];
      found.push(i);
    }
    const length = (i) => row.end[i] - row.start[i];
    return found.sort((a, b) => length(b) - length(a));
  }

  wheel(event) {
    const {view} = this.timeline;
    const point = this.point(event);
    if (!this.inPlot(point)) return;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      view.pan((event.deltaX || event.deltaY) / (view.right - view.left));
      return;
    }
    // All the way out, the wheel is the page's again.
    if (event.deltaY > 0 && view.whole) return;
    event.preventDefault();
    view.zoom(Math.exp(clamp(event.deltaY, -200, 200) * 0.002), view.time(point.x));
  }

  key(event) {
    const {view} = this.timeline;
    const shift = event.shiftKey;
    const actions = {
      ArrowLeft: () => (shift ? view.pan(-0.2) : this.walk(-1)),
      ArrowRight: () => (shift ? view.pan(0.2) : this.walk(1)),
      ArrowUp: () => this.change(-1),
      ArrowDown: () => this.change(1),
      '+': () => view.zoom(0.5),
      '=': () => view.zoom(0.5),
      '-': () => view.zoom(2),
      '0': () => view.show(0, view.full),
      Home: () => view.show(0, view.full),
      Escape: () => this.select(null),
    };
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // To the instruction after or before the one that is selected.
  walk(by) {
    const chosen = this.timeline.selected;
    const plan = chosen ? chosen.plan : 0;
    const step = this.timeline.steps[plan];
    if (step.count === 0) return;
    const {view} = this.timeline;
    const first = view.from <= 0 ? 0 : Math.floor(step.sampleAt(view.from) / 2);
    const next = chosen ? clamp(chosen.event + by, 0, step.count - 1) : first;
    this.select({plan, event: next});
  }

  // To the other plan, at the same time.
  change(by) {
    const {steps, selected} = this.timeline;
    if (!selected || steps.length < 2) return;
    const plan = clamp(selected.plan + by, 0, steps.length - 1);
    const time = steps[selected.plan].start[selected.event];
    this.select({plan, event: Math.floor(steps[plan].sampleAt(time) / 2)});
  }

  select(chosen) {
    const timeline = this.timeline;
    timeline.selected = chosen;
    if (!chosen) {
      timeline.draw();
      tooltip.hide();
      return;
    }
    const step = timeline.steps[chosen.plan];
    const i = chosen.event;
    timeline.view.reveal(step.start[i], step.end[i]);
    timeline.draw();
    const row = timeline.rows.find((r) => r.plan === chosen.plan && r.stream === step.stream[i]) ||
      timeline.rows.find((r) => r.plan === chosen.plan && r.kind === 'memory');
    const box = this.root.getBoundingClientRect();
    const scale = box.width / this.root.viewBox.baseVal.width;
    const middle = clamp((timeline.view.x(step.start[i]) + timeline.view.x(step.end[i])) / 2,
      timeline.view.left, timeline.view.right);
    const [title, rows] = eventRows(step, i, false);
    tooltip.show(title, rows, box.left + middle * scale, box.top + (row.top + row.height) * scale);
    tooltip.say('instruction ' + (i + 1) + ' of ' + step.count + ': ' + title + '; ' +
      formatBytes(step.total[2 * i + 1]) + ' held after it');
  }
}

function memoryRows(step, sample) {
  const rows = [];
  step.memory.forEach((bytes, use) => {
    if (bytes && bytes[sample] > 0) rows.unshift([USES[use], formatBytes(bytes[sample]), 'use-' + use]);
  });
  rows.push(['on the device', formatBytes(step.total[sample])]);
  const host = step.host[sample >> 1];
  if (host > 0) rows.push(['on the host', formatBytes(host)]);
  const i = sample >> 1;
  rows.push([(sample % 2 === 0 ? 'during: ' : 'after: ') + step.text(i)]);
  return rows;
}

function eventRows(step, i, measured) {
  const rows = [];
  const span = (label, start, end) => rows.push([label, formatTime(start) + ' + ' + formatTime(end - start)]);
  span('planned', step.start[i], step.end[i]);
  if (step.measured) span('measured', step.measured.start[i], step.measured.end[i]);
  rows.push(['memory while it runs', formatBytes(step.total[2 * i])]);
  rows.push(['held after it', formatBytes(step.total[2 * i + 1])]);
  if (step.measured) {
    rows.push(['while it ran, measured', formatBytes(step.measured.most[i])]);
    rows.push(['held, measured', formatBytes(step.measured.held[i])]);
  }
  rows.push(['instruction', (i + 1) + ' of ' + step.count]);
  return [step.text(i), rows];
}
