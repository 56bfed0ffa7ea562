// From events to shapes, as fine as pixels are: what is narrower than a pixel is gathered.

// Where in a lane the events begin that end after `time`.
function firstEndingAfter(lane, end, time) {
  let low = 0;
  let high = lane.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[lane[middle]] > time) high = middle; else low = middle + 1;
  }
  return low;
}

// Boxes [event, from, to] in pixels, and columns of a pixel with the share that each kind of work has
// of it. `work` is by event.
function laneShapes(lane, start, end, work, first, view) {
  const boxes = [];
  const columns = [];
  const fill = (pixel, kind, width) => {
    if (width <= 0) return;
    let column = columns[columns.length - 1];
    if (!column || column.pixel !== pixel) {
      column = {pixel, width: new Float64Array(WORKS.length)};
      columns.push(column);
    }
    column.width[kind] += width;
  };
  for (let k = first; k < lane.length && start[lane[k]] <= view.to; ++k) {
    const i = lane[k];
    const from = Math.max(view.left, view.x(start[i]));
    const to = Math.min(view.right, view.x(end[i]));
    if (to - from >= 2) {
      boxes.push([i, from, to]);
      continue;
    }
    for (let at = from; at < to;) {
      const pixel = Math.floor(at + 1e-9);
      const next = Math.min(to, pixel + 1);
      fill(pixel, work[i], next - at);
      at = next;
    }
  }
  return {boxes, columns};
}

// Runs {from, to, sample} in pixels, left to right without gaps; of a pixel's samples the greatest.
function memoryRuns(step, view) {
  const runs = [];
  let gathered = null;
  const add = (from, to, sample) => {
    const begin = runs.length > 0 ? runs[runs.length - 1].to : view.left;
    if (to > begin) runs.push({from: Math.max(from, begin), to, sample});
  };
  const flush = () => {
    if (gathered) add(gathered.pixel, Math.min(gathered.pixel + 1, view.right), gathered.sample);
    gathered = null;
  };
  for (let k = step.sampleAt(view.from); k < step.time.length && step.time[k] <= view.to; ++k) {
    const from = Math.max(view.left, view.x(step.time[k]));
    const to = Math.min(view.right, view.x(step.sampleEnd(k)));
    if (to - from >= 1) {
      flush();
      add(from, to, k);
      continue;
    }
    const pixel = Math.floor(from);
    if (!gathered || gathered.pixel !== pixel) {
      flush();
      gathered = {pixel, sample: k};
    } else if (step.total[k] > step.total[gathered.sample]) {
      gathered.sample = k;
    }
  }
  flush();
  return runs;
}

// A path around what lies between two heights, given by run.
function areaPath(runs, low, high) {
  let path = '';
  for (let begin = 0; begin < runs.length;) {
    let end = begin;
    while (end + 1 < runs.length && runs[end + 1].from - runs[end].to < 0.01) ++end;
    path += 'M' + runs[begin].from.toFixed(1) + ' ' + high[begin].toFixed(1);
    for (let r = begin; r <= end; ++r) path += 'V' + high[r].toFixed(1) + 'H' + runs[r].to.toFixed(1);
    for (let r = end; r >= begin; --r) path += 'V' + low[r].toFixed(1) + 'H' + runs[r].from.toFixed(1);
    path += 'Z';
    begin = end + 1;
  }
  return path;
}

// A path along steps: [time, value] that holds up to the next.
function stepsPath(points, x, y, end) {
  let path = '';
  points.forEach(([time, value], k) => {
    path += (k === 0 ? 'M' + x(time).toFixed(1) + ' ' : 'H' + x(time).toFixed(1) + 'V') + y(value).toFixed(1);
  });
  return points.length > 0 ? path + 'H' + x(end).toFixed(1) : '';
}

const boxPath = (from, to, top, height) =>
  'M' + from.toFixed(1) + ' ' + top.toFixed(1) + 'H' + to.toFixed(1) + 'v' + height.toFixed(1) + 'H' +
  from.toFixed(1) + 'Z';
