// Puts the page together.
function legendItem(holder, name, text) {
  const item = html('span', {class: 'item'}, holder);
  html('i', {class: 'swatch ' + name}, item);
  item.append(text);
}

function drawLegend(plans) {
  const works = document.getElementById('works');
  const uses = document.getElementById('uses');
  const has = (test) => plans.some((plan) => test(plan.step));
  WORKS.forEach((work, w) => {
    if (work !== 'release' && has((step) => step.work.some((k, i) => k === w && step.end[i] > step.start[i]))) {
      legendItem(works, 'work-' + work, work);
    }
  });
  for (let u = USES.length - 1; u >= 0; --u) {
    if (has((step) => step.memory[u])) legendItem(uses, 'use-' + u, USES[u]);
  }
  if (has((step) => step.measured)) legendItem(uses, 'line-measured', 'memory, measured');
}

function whenOpened(id, fill) {
  const details = document.getElementById(id);
  details.addEventListener('toggle', () => fill(details));
}

function start() {
  const plans = DATA.plans.map((plan) => ({...plan, step: new Step(plan)}));
  drawLegend(plans);
  const timeline = new Timeline(document.getElementById('timeline'), plans);
  const controls = new TimelineControls(timeline);
  const stages = new Stages(document.getElementById('stages'), plans, (stage) => {
    timeline.stage = timeline.stage === stage ? null : stage;
    timeline.draw();
  });
  const charts = [timeline, stages];
  if (document.getElementById('frontier')) {
    const frontier = new FrontierChart(document.getElementById('frontier'), plans);
    charts.push(frontier);
    whenOpened('frontier-table', (table) => frontier.fillTable(table));
  }
  const on = (id, action) => document.getElementById(id).addEventListener('click', action);
  on('closer', () => timeline.view.zoom(0.5));
  on('wider', () => timeline.view.zoom(2));
  on('whole', () => timeline.view.show(0, timeline.view.full));
  whenOpened('stage-table', (table) => stages.fillTable(table));
  let due = false;
  window.addEventListener('resize', () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      charts.forEach((chart) => chart.draw());
    });
  });
  return controls;
}

start();
