// What each stage makes and what the plan does with it: a bar per stage, and all of it as a table.
const ROLES = ['keep', 'recompute', 'offload', 'recompute and offload'];
const STRIP = 92;

class Stages {
  constructor(holder, plans, onStage) {
    this.holder = holder;
    this.plans = plans;
    this.onStage = onStage;
    this.first = DATA.first_stage;
    this.count = DATA.stages.label.length - this.first;
    this.highest = Math.max(1, ...DATA.stages.made.slice(this.first));
    this.strips = plans.map((plan, p) => {
      html('p', {class: 'summary'}, holder).append(...this.summary(plan, p));
      const root = svg('svg', {class: 'chart strip', role: 'img'}, holder);
      root.setAttribute('aria-label', 'What each stage makes, by what the plan does with it');
      root.addEventListener('pointermove', (event) => this.move(event, root, plan));
      root.addEventListener('pointerleave', () => tooltip.hide());
      root.addEventListener('click', (event) => this.onStage(this.stageAt(event, root)));
      return root;
    });
    this.draw();
  }

  // "keep 14 (1.20 GiB)", "recompute 12 (3.91 GiB)".
  summary(plan, p) {
    const parts = [];
    if (this.plans.length > 1) parts.push('AB'[p] + '  ' + plan.label + ': ');
    ROLES.forEach((role, r) => {
      let stages = 0;
      let bytes = 0;
      for (let s = this.first; s < DATA.stages.label.length; ++s) {
        if (plan.role[s] !== r) continue;
        ++stages;
        bytes += DATA.stages.made[s];
      }
      if (stages === 0) return;
      const item = html('span', {class: 'item'});
      html('i', {class: 'swatch role-' + r}, item);
      item.append(role + ' ' + stages + ' (' + formatBytes(bytes) + ')');
      parts.push(item);
    });
    return parts;
  }

  draw() {
    const width = Math.max(320, this.holder.clientWidth);
    this.left = width < 600 ? 74 : 104;
    this.right = width - (width < 600 ? 10 : 92);
    this.strips.forEach((root, p) => this.drawStrip(root, this.plans[p], width));
  }

  x(index) {
    return this.left + index / this.count * (this.right - this.left);
  }

  drawStrip(root, plan, width) {
    const bottom = STRIP + 8;
    const y = (bytes) => bottom - bytes / this.highest * STRIP;
    clear(root);
    root.setAttribute('viewBox', '0 0 ' + width + ' ' + (bottom + 20));
    root.setAttribute('height', bottom + 20);
    for (const tick of byteTicks(this.highest, 3)) {
      svg('line', {class: tick.at === 0 ? 'axis' : 'grid', x1: this.left, x2: this.right, y1: y(tick.at), y2: y(tick.at)}, root);
      svg('text', {class: 'row tick', x: this.left - 8, y: y(tick.at) + 4, 'text-anchor': 'end'}, root, tick.text);
    }
    striping(root);
    const each = (this.right - this.left) / this.count;
    const gap = each > 4 ? 1 : 0;
    const paths = ROLES.map(() => '');
    for (let index = 0; index < this.count; ++index) {
      const made = DATA.stages.made[this.first + index];
      if (made === 0) continue;
      const top = Math.min(y(made), bottom - 1);
      paths[plan.role[this.first + index]] += boxPath(this.x(index), this.x(index + 1) - gap, top, bottom - top);
    }
    paths.forEach((d, role) => d && svg('path', {class: 'role-' + role, d}, root));
    this.drawNumbers(root, each, bottom + 14);
  }

  drawNumbers(root, each, y) {
    const named = each >= 58;
    const every = named ? 1 : Math.max(1, ticks(0, this.count, Math.max(2, (this.right - this.left) / 60), 1).step);
    for (let index = 0; index < this.count; ++index) {
      const number = this.first + index;
      if (!named && number % every !== 0) continue;
      const text = named ? fitted(DATA.stages.label[number], each - 4, 6.2) : String(number);
      const x = this.x(index) + each / 2;
      if (x + 3.2 * text.length > root.viewBox.baseVal.width) continue;
      svg('text', {class: 'tick', x, y, 'text-anchor': 'middle'}, root, text);
    }
  }

  stageAt(event, root) {
    const box = root.getBoundingClientRect();
    const x = (event.clientX - box.left) * root.viewBox.baseVal.width / box.width;
    const index = Math.floor((x - this.left) / (this.right - this.left) * this.count);
    return index < 0 || index >= this.count ? null : this.first + index;
  }

  move(event, root, plan) {
    const stage = this.stageAt(event, root);
    if (stage === null) {
      tooltip.hide();
      return;
    }
    const rows = [[ROLES[plan.role[stage]], undefined, 'role-' + plan.role[stage]],
      ['makes', formatBytes(DATA.stages.made[stage])],
      ['forwards', plan.forwards[stage] + ', ' + formatTime(DATA.stages.forward_ns[stage]) + ' each'],
      ['backward', formatTime(DATA.stages.backward_ns[stage])]];
    if (plan.offloaded[stage] > 0) rows.push(['to the host', formatBytes(plan.offloaded[stage])]);
    tooltip.show(stage + '  ' + DATA.stages.label[stage], rows, event.clientX, event.clientY);
  }

  // The same as a table, made when somebody opens it.
  fillTable(holder) {
    if (holder.querySelector('table')) return;
    const table = html('table', {class: 'stages'}, holder);
    const head = html('tr', {}, html('thead', {}, table));
    const names = this.plans.map((plan, p) => (this.plans.length > 1 ? 'AB'[p] + ': ' : '') + 'does');
    for (const name of ['', 'name', 'op', 'makes', 'forward', 'backward', ...names]) html('th', {}, head, name);
    const body = html('tbody', {}, table);
    for (let s = this.first; s < DATA.stages.label.length; ++s) {
      const row = html('tr', {}, body);
      html('td', {class: 'number'}, row, String(s));
      html('td', {}, row, DATA.stages.label[s]);
      html('td', {}, row, DATA.stages.op[s]);
      html('td', {class: 'number'}, row, formatBytes(DATA.stages.made[s]));
      html('td', {class: 'number'}, row, formatTime(DATA.stages.forward_ns[s]));
      html('td', {class: 'number'}, row, formatTime(DATA.stages.backward_ns[s]));
      for (const plan of this.plans) {
        const cell = html('td', {}, row);
        html('i', {class: 'swatch role-' + plan.role[s]}, cell);
        const times = plan.forwards[s] > 2 ? ' ' + (plan.forwards[s] - 1) + ' times' : '';
        cell.append(ROLES[plan.role[s]] + times);
      }
    }
  }
}

// What is both recomputed and offloaded looks like both.
function striping(root) {
  const pattern = svg('pattern', {id: 'both', width: 6, height: 6, patternUnits: 'userSpaceOnUse',
    patternTransform: 'rotate(45)'}, svg('defs', {}, root));
  svg('rect', {class: 'role-1', width: 6, height: 6}, pattern);
  svg('rect', {class: 'role-2', width: 3, height: 6}, pattern);
}
