// A plan's step as it was sent: columns of numbers, most as differences.
class Step {
  constructor(sent) {
    this.count = sent.work.length;
    this.work = sent.work;
    this.stage = sent.stage;
    this.stream = sent.stream;
    this.pattern = sent.pattern;
    this.makespan = sent.makespan_ns;
    this.start = new Float64Array(this.count);
    this.end = new Float64Array(this.count);
    this.lanes = [[], [], [], []];
    this.byStage = new Map();
    // Sample 2i is memory while instruction i runs, 2i + 1 what it leaves: each up to the next one's time.
    this.time = new Float64Array(2 * this.count);
    this.unpackTimes(sent);
    this.unpackMemory(sent);
    this.measured = sent.measured ? new Measured(sent.measured) : null;
  }

  unpackTimes(sent) {
    let start = 0;
    let now = 0;
    for (let i = 0; i < this.count; ++i) {
      start += sent.start[i];
      this.start[i] = start;
      this.end[i] = start + sent.duration[i];
      const onCompute = this.stream[i] === 0;
      this.time[2 * i] = onCompute ? start : now;
      if (onCompute) now = this.end[i];
      this.time[2 * i + 1] = now;
      if (this.end[i] > start) this.lanes[this.stream[i]].push(i);
      if (!this.byStage.has(this.stage[i])) this.byStage.set(this.stage[i], []);
      this.byStage.get(this.stage[i]).push(i);
    }
  }

  unpackMemory(sent) {
    this.memory = [];
    this.total = new Float64Array(2 * this.count);
    for (const changes of sent.memory) {
      const bytes = new Float64Array(2 * this.count);
      let held = 0;
      for (let k = 0; k < changes.length; ++k) {
        held += changes[k];
        bytes[k] = held;
        this.total[k] += held;
      }
      this.memory.push(changes.length > 0 ? bytes : null);
    }
    this.peak = 0;
    for (let k = 0; k < this.total.length; ++k) {
      if (this.total[k] > this.total[this.peak]) this.peak = k;
    }
    this.host = new Float64Array(this.count);
    let host = 0;
    for (let i = 0; i < sent.host.length; ++i) this.host[i] = host += sent.host[i];
  }

  // The last sample that began by then.
  sampleAt(time) {
    return Math.max(0, lastAtMost(this.time, time));
  }

  sampleEnd(k) {
    return k + 1 < this.time.length ? this.time[k + 1] : this.makespan;
  }

  text(i) {
    return DATA.patterns[this.pattern[i]].split('%').join(DATA.stages.label[this.stage[i]]);
  }
}

// The last index whose value is at most `value`, of rising values; -1 if there is none.
function lastAtMost(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// What an executor measured: by instruction, on compute.
class Measured {
  constructor(sent) {
    this.peak = sent.peak_bytes;
    this.makespan = sent.step_time_ns;
    this.start = Float64Array.from(sent.start);
    this.end = new Float64Array(sent.start.length);
    this.most = new Float64Array(sent.start.length);  // while it ran
    this.held = new Float64Array(sent.start.length);  // after it
    let start = 0;
    let most = 0;
    let held = 0;
    for (let i = 0; i < this.start.length; ++i) {
      start += sent.start[i];
      most += sent.peak[i];
      held += sent.held[i];
      this.start[i] = start;
      this.end[i] = start + sent.duration[i];
      this.most[i] = most;
      this.held[i] = held;
    }
    this.lane = [];
    for (let i = 0; i < this.start.length; ++i) if (this.end[i] > this.start[i]) this.lane.push(i);
  }
}
