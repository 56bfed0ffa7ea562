// The part of the time axis that shows, for all charts on it.
class View {
  constructor(full) {
    this.full = full;
    this.from = 0;
    this.to = full;
    this.left = 0;
    this.right = 1;
    this.listeners = [];
  }

  x(time) {
    return this.left + (time - this.from) / (this.to - this.from) * (this.right - this.left);
  }

  time(x) {
    return this.from + (x - this.left) / (this.right - this.left) * (this.to - this.from);
  }

  get whole() {
    return this.from <= 0 && this.to >= this.full;
  }

  show(from, to) {
    const span = clamp(to - from, Math.min(this.full, Math.max(20, this.full / 1e6)), this.full);
    this.from = clamp(from, 0, this.full - span);
    this.to = this.from + span;
    this.listeners.forEach((listener) => listener());
  }

  // By a factor below 1 closer in; `at` stays where it is.
  zoom(factor, at) {
    const middle = at === undefined ? (this.from + this.to) / 2 : at;
    this.show(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  // By a share of what shows.
  pan(share) {
    const shift = share * (this.to - this.from);
    this.show(this.from + shift, this.to + shift);
  }

  // Moves as little as it takes to have the time in sight.
  reveal(from, to) {
    if (to > this.to) this.show(to - (this.to - this.from), to);
    if (from < this.from) this.show(from, from + (this.to - this.from));
  }
}
