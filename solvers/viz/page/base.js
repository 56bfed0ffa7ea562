// What all parts of the page use: elements, numbers for people, scales.
const DATA = JSON.parse(document.getElementById('data').textContent);
const WORKS = DATA.works;
const USES = DATA.uses;
const STREAM_NAMES = ['compute', 'to host', 'to device', 'communication'];

function svg(name, attributes, parent, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

function html(name, attributes, parent, text) {
  const element = document.createElement(name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

function clear(element) {
  while (element.firstChild) element.removeChild(element.firstChild);
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

function unitOf(value, units, base) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= base) {
    value /= base;
    ++unit;
  }
  return [value, units[unit], unit];
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const TIME_UNITS = ['ns', '\u00b5s', 'ms', 's'];

function formatBytes(bytes) {
  const [value, unit, index] = unitOf(bytes, BYTE_UNITS, 1024);
  return (index === 0 ? Math.round(value) : value.toFixed(2)) + ' ' + unit;
}

function formatTime(ns) {
  const [value, unit, index] = unitOf(ns, TIME_UNITS, 1000);
  return value.toFixed([0, 1, 1, 3][index]) + ' ' + unit;
}

const formatPercent = (share) => (share >= 0 ? '+' : '\u2212') + Math.abs(100 * share).toFixed(1) + '%';

// Round numbers in [low, high], about `count` of them: 1, 2 or 5 times a power of ten times `unit` apart.
function ticks(low, high, count, unit) {
  const rough = Math.max((high - low) / count / unit, 1e-12);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const factor = [1, 2, 5, 10].find((f) => f * power >= rough * (1 - 1e-9));
  const step = factor * power * unit;
  const list = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); ++k) list.push(k * step);
  return {list, step};
}

// The same of bytes, in the unit that suits the greatest.
function byteTicks(high, count) {
  const [, unit, index] = unitOf(high, BYTE_UNITS, 1024);
  const scale = Math.pow(1024, index);
  const {list, step} = ticks(0, high, count, scale);
  const places = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  return list.map((at) => ({at, text: at === 0 ? '0' : (at / scale).toFixed(places) + ' ' + unit}));
}

function timeTicks(low, high, count) {
  const {list, step} = ticks(low, high, count, 1);
  const [, unit, index] = unitOf(Math.max(Math.abs(low), Math.abs(high)), TIME_UNITS, 1000);
  const scale = Math.pow(1000, index);
  const places = Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
  return list.map((at) => ({at, text: at === 0 ? '0' : (at / scale).toFixed(places) + ' ' + unit}));
}

// Whether the text fits; where not, a shorter one that does, where that says something; else nothing.
function labelFor(text, number, width, character) {
  const room = Math.floor(width / character);
  if (text.length <= room) return text;
  if (room >= 9) return text.slice(0, room - 1) + '\u2026';
  return String(number).length <= room ? String(number) : '';
}

// As many characters of about that width as fit, with an ellipsis; nothing where that says nothing.
function fitted(text, width, character) {
  const room = Math.floor(width / character);
  if (text.length <= room) return text;
  return room < 4 ? '' : text.slice(0, room - 1) + '\u2026';
}
