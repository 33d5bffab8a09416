// The viewer of a page that renderHtml (Html.h) makes. Html.h describes the
// data.
//
// Two canvases lie on each other: the lower one has the rows, the upper one
// what the pointer marks. Only visible boxes are drawn, and boxes narrower than
// a pixel are merged, so a frame takes as long for 100,000 actions as for a few
// thousand.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const place = document.getElementById('rows');
const [rowsCanvas, marksCanvas] = place.querySelectorAll('canvas');
const tip = document.getElementById('tip');

// Lengths in pixels.
const kLabels = data.isSideBySide ? 118 : 58;  // left of the rows
const kAxis = 26, kTitle = 26, kRow = 22, kMemory = 20, kGap = 6;

// ---- Rows ----

// A row shows a worker of a timeline. Times are in the unit of the axis.
class Row {
  constructor(timeline, number, top, label) {
    const worker = timeline.workers[number];
    Object.assign(this, {timeline, number, top, label});
    this.colours = worker.colour;
    this.begins = Float64Array.from(worker.start, (t) => t / timeline.ticks);
    this.ends = Float64Array.from(
        worker.length,
        (length, i) => (worker.start[i] + length) / timeline.ticks);
    this.spans = worker.spans.map(([begin, end, style, name]) => ({
                                    begin: begin / timeline.ticks,
                                    end: end / timeline.ticks,
                                    style,
                                    name
                                  }));
    this.worker = worker;
  }

  // The first action that ends after `time`.
  indexAfter(time) {
    let low = 0, high = this.ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > time)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  spanAt(time) {
    return this.spans.find((span) => span.begin <= time && time < span.end);
  }

  // The end of what the worker did before action `index`.
  endBefore(index) {
    const begin = this.begins[index];
    let end = index > 0 ? Math.min(this.ends[index - 1], begin) : 0;
    for (const span of this.spans)
      if (span.end <= begin && span.end > end) end = span.end;
    return end;
  }
}

const rows = [];
const titles = [];  // {top, text}
let height = kAxis;
let axisEnd = 0;

function addRow(timeline, number, label) {
  rows.push(new Row(timeline, number, height, label));
  timeline.rows.push(rows.at(-1));
  height += kRow + (timeline.workers[number].memory ? kMemory : 0) + kGap;
}

for (const timeline of data.timelines) {
  timeline.rows = [];
  timeline.firsts = [];  // number of each worker's first action
  let count = 0;
  for (const worker of timeline.workers) {
    timeline.firsts.push(count);
    count += worker.start.length;
  }
  timeline.count = count;
  axisEnd = Math.max(axisEnd, timeline.end / timeline.ticks);
}
axisEnd = axisEnd || 1;

if (data.isSideBySide) {
  titles.push({
    top: height,
    text: data.timelines.map((each) => each.title).join(' · ')
  });
  height += kTitle;
  data.timelines[0].workers.forEach((_, number) => {
    addRow(data.timelines[0], number, `P${number} predicted`);
    height -= kGap;
    addRow(data.timelines[1], number, 'measured');
  });
} else {
  for (const timeline of data.timelines) {
    titles.push({top: height, text: timeline.title});
    height += kTitle;
    timeline.workers.forEach(
        (_, number) => addRow(timeline, number, `P${number}`));
    height += kGap;
  }
}

// The row and the index of action `number` of a timeline.
function find(timeline, number) {
  let low = 0, high = timeline.firsts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (timeline.firsts[middle] <= number)
      low = middle;
    else
      high = middle - 1;
  }
  return {row: timeline.rows[low], index: number - timeline.firsts[low]};
}

// For each timeline, the actions that need each action, made when they are
// first asked for.
function usersOf(timeline, number) {
  if (!timeline.users) {
    timeline.users = new Map();
    timeline.workers.forEach((worker, w) => {
      for (const needs of [worker.same, worker.other])
        needs.forEach((need, i) => {
          if (need < 0) return;
          if (!timeline.users.has(need)) timeline.users.set(need, []);
          timeline.users.get(need).push(timeline.firsts[w] + i);
        });
    });
  }
  return timeline.users.get(number) ?? [];
}

// ---- View ----

const view = {
  from: 0,
  to: axisEnd,
  top: 0,
  width: 0,
  height: 0
};
const colour = {};  // of the page, by name

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name
           of ['paper', 'ink', 'faint', 'bubble', 'memory', 'mark', 'message',
               'update', 'wait', 'other'])
    colour[name] = style.getPropertyValue(`--${name}`).trim();
}

const drawn = () => view.width - kLabels - 8;  // pixels of the time axis
const xOf = (time) =>
    kLabels + (time - view.from) / (view.to - view.from) * drawn();
const timeAt = (x) =>
    view.from + (x - kLabels) / drawn() * (view.to - view.from);

function show(from, to) {
  const least = axisEnd * 1e-7;
  const length = Math.min(Math.max(to - from, least), axisEnd);
  view.from = Math.min(Math.max(from, 0), axisEnd - length);
  view.to = view.from + length;
  redraw();
}

function zoom(factor, x = kLabels + drawn() / 2) {
  const at = timeAt(x);
  show(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function scroll(pixels) {
  const top = Math.min(
      Math.max(view.top + pixels, 0), Math.max(height - view.height, 0));
  const hasMoved = top !== view.top;
  view.top = top;
  if (hasMoved) redraw();
  return hasMoved;
}

let isPending = false;
function redraw() {
  if (isPending) return;
  isPending = true;
  requestAnimationFrame(() => {
    isPending = false;
    drawRows();
    drawMarks();
  });
}

function resize() {
  const box = place.getBoundingClientRect();
  const ratio = devicePixelRatio || 1;
  view.width = Math.max(box.width, kLabels + 100);
  view.height = box.height;
  for (const canvas of [rowsCanvas, marksCanvas]) {
    canvas.width = Math.round(view.width * ratio);
    canvas.height = Math.round(view.height * ratio);
    canvas.style.width = `${view.width}px`;
    canvas.style.height = `${view.height}px`;
    canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  scroll(0);
  redraw();
}

// ---- Drawing ----

const number = (value) => String(Number(value.toPrecision(7)));
const time = (value) => `${number(value)}${data.unit ? ` ${data.unit}` : ''}`;

function bytes(value) {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  for (; value >= 1024 && at < names.length - 1; ++at) value /= 1024;
  return `${Number(value.toPrecision(4))} ${names[at]}`;
}

function drawAxis(pen) {
  pen.fillStyle = colour.paper;
  pen.fillRect(0, 0, view.width, kAxis);
  const rough = (view.to - view.from) / Math.max(drawn() / 110, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  pen.textAlign = 'center';
  for (let k = Math.ceil(view.from / step); k * step <= view.to; ++k) {
    const x = xOf(k * step);
    pen.fillStyle = colour.faint;
    pen.fillRect(x, kAxis - 5, 1, 5);
    pen.fillStyle = colour.ink;
    pen.fillText(number(k * step), x, kAxis - 12);
  }
  pen.textAlign = 'left';
  pen.fillText(data.axis, 4, kAxis - 12);
}

function drawSpans(pen, row, top) {
  for (const {begin, end, style} of row.spans) {
    if (end < view.from || begin > view.to) continue;
    const x = xOf(begin);
    pen.fillStyle = colour[style] || colour.other;
    pen.fillRect(x, top + kRow / 4, Math.max(xOf(end) - x, 1), kRow / 2);
  }
}

function drawActions(pen, row, top) {
  const labels = row.worker.label;
  let covered = -1;  // boxes narrower than a pixel are drawn up to here
  for (let i = row.indexAfter(view.from); i < row.ends.length; ++i) {
    if (row.begins[i] > view.to) break;
    const begin = Math.max(xOf(row.begins[i]), kLabels - 2);
    const end = Math.min(xOf(row.ends[i]), view.width + 2);
    if (end <= covered) continue;
    const [fill, edge, ink] = row.timeline.colours[row.colours[i]];
    pen.fillStyle = fill;
    if (end - begin < 1) {
      covered = Math.floor(begin) + 1;
      pen.fillRect(covered - 1, top, 1, kRow);
      continue;
    }
    const gap = end - begin > 4 ? 1 : 0;
    pen.fillRect(begin, top, end - begin - gap, kRow);
    if (end - begin < 9) continue;
    if (edge) {
      pen.strokeStyle = edge;
      pen.strokeRect(begin + 0.5, top + 0.5, end - begin - 2, kRow - 1);
    }
    if (end - begin > 6 + 6.5 * labels[i].length) {
      pen.fillStyle = ink;
      pen.fillText(labels[i], (begin + end - gap) / 2, top + kRow / 2);
    }
  }
}

// A stepped curve, with the largest value within each pixel.
function drawMemory(pen, row, top) {
  const memory = row.worker.memory;
  const bottom = top + kMemory - 2;
  const scale = (kMemory - 4) / (row.timeline.most || 1);
  pen.fillStyle = colour.memory;
  let pixel = kLabels, most = 0;
  const flush = (end) => {
    if (end > pixel)
      pen.fillRect(pixel, bottom - most * scale, end - pixel, most * scale);
  };
  const right = view.width - 8;
  for (let i = 0; i < memory.length; i += 2) {
    const x = Math.floor(xOf(memory[i] / row.timeline.ticks));
    if (x > right) break;
    if (x <= pixel) {
      // The value before the first visible pixel matters only if it lasts.
      most = x < pixel || x === kLabels ? memory[i + 1] :
                                          Math.max(most, memory[i + 1]);
      if (x === pixel) most = Math.max(most, memory[i + 1]);
      continue;
    }
    flush(x);
    pixel = x;
    most = memory[i + 1];
  }
  const end = Math.floor(xOf(row.timeline.end / row.timeline.ticks));
  flush(Math.min(end, right));
}

function drawRows() {
  const pen = rowsCanvas.getContext('2d');
  pen.fillStyle = colour.paper;
  pen.fillRect(0, 0, view.width, view.height);
  pen.textBaseline = 'middle';
  pen.font = '11px Helvetica, Arial, \'Liberation Sans\', sans-serif';
  pen.lineWidth = 1;
  for (const row of rows) {
    const top = row.top - view.top;
    if (top > view.height || top + kRow + kMemory < 0) continue;
    const left = Math.max(xOf(0), kLabels);
    const end =
        Math.min(xOf(row.timeline.end / row.timeline.ticks), view.width - 8);
    pen.fillStyle = colour.bubble;
    pen.fillRect(left, top, Math.max(end - left, 0), kRow);
    pen.textAlign = 'center';
    drawSpans(pen, row, top);
    drawActions(pen, row, top);
    if (row.worker.memory) drawMemory(pen, row, top + kRow);
    pen.fillStyle = colour.paper;
    pen.fillRect(0, top, kLabels, kRow + kMemory);
    pen.fillStyle = colour.ink;
    pen.textAlign = 'right';
    pen.fillText(row.label, kLabels - 6, top + kRow / 2);
  }
  pen.textAlign = 'left';
  for (const {top, text} of titles) {
    pen.fillStyle = colour.ink;
    pen.font = 'bold 12px Helvetica, Arial, \'Liberation Sans\', sans-serif';
    pen.fillText(text, 6, top - view.top + kTitle / 2);
    pen.font = '11px Helvetica, Arial, \'Liberation Sans\', sans-serif';
  }
  drawAxis(pen);
}

// ---- What the pointer marks ----

let marked = null;  // {row, index} or null
let isPinned = false;

function boxOf({row, index}) {
  return {
    left: xOf(row.begins[index]),
    right: xOf(row.ends[index]),
    top: row.top - view.top
  };
}

function neighborsOf({row, index}) {
  const {timeline, worker} = row;
  const own = timeline.firsts[row.number] + index;
  const all = (numbers) =>
      numbers.filter((n) => n >= 0).map((n) => find(timeline, n));
  return {
    needs: all([worker.same[index], worker.other[index]]),
    users: all(usersOf(timeline, own)),
  };
}

function drawMarks() {
  const pen = marksCanvas.getContext('2d');
  pen.clearRect(0, 0, view.width, view.height);
  if (!marked) return;
  pen.save();
  pen.beginPath();
  pen.rect(kLabels - 2, kAxis, view.width, view.height);
  pen.clip();
  const outline = (box, width) => {
    pen.lineWidth = width;
    pen.strokeRect(box.left, box.top, Math.max(box.right - box.left, 2), kRow);
  };
  const line = (from, to) => {
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(from.right, from.top + kRow / 2);
    pen.lineTo(to.left, to.top + kRow / 2);
    pen.stroke();
  };
  const own = boxOf(marked);
  const {needs, users} = neighborsOf(marked);
  pen.strokeStyle = colour.mark;
  for (const need of needs.map(boxOf)) {
    outline(need, 2);
    line(need, own);
  }
  pen.setLineDash([4, 3]);
  for (const user of users.map(boxOf)) {
    outline(user, 2);
    line(own, user);
  }
  pen.setLineDash([]);
  outline(own, 3);
  pen.restore();
}

// "backward 1 of stage 3, up".
function nameOf({row, index}) {
  const [kind, ...rest] =
      row.timeline.colours[row.colours[index]][3].split(', ');
  const {label, stage} = row.worker;
  return [`${kind} ${label[index]} of stage ${stage[index]}`, ...rest].join(
      ', ');
}

// The lines of the tooltip of an action.
function describe(action) {
  const {row, index} = action;
  const {needs, users} = neighborsOf(action);
  const begin = row.begins[index], end = row.ends[index];
  const lines = [
    `${nameOf(action)} on P${row.number}`,
    `${time(begin)} to ${time(end)}: ${time(end - begin)}`
  ];
  const wait = begin - row.endBefore(index);
  if (wait > 1e-9 * axisEnd) {
    // Only a message keeps an action of a free worker waiting.
    const last =
        needs.filter((need) => need.row !== row)
            .sort((a, b) => b.row.ends[b.index] - a.row.ends[a.index])[0];
    const reason = last ? ` for ${nameOf(last)} on P${last.row.number}` : '';
    lines.push(`P${row.number} waits ${time(wait)} before it${reason}`);
  }
  if (row.worker.sends?.[index])
    lines.push(`sends ${bytes(row.worker.sends[index])}`);
  const list = (all) =>
      all.map((each) => `${nameOf(each)} (P${each.row.number})`).join(', ');
  if (needs.length) lines.push(`needs ${list(needs)}`);
  if (users.length) lines.push(`is needed by ${list(users)}`);
  return lines;
}

// The value of a row's memory at a time.
function memoryAt(row, at) {
  const memory = row.worker.memory;
  let low = 0, high = memory.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (memory[2 * middle] / row.timeline.ticks <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 ? memory[2 * low - 1] : 0;
}

function linesAt(x, y) {
  marked = null;
  const row = rows.find((each) => {
    const size = kRow + (each.worker.memory ? kMemory : 0);
    return each.top - view.top <= y && y < each.top - view.top + size;
  });
  if (!row || x < kLabels || y < kAxis) return [];
  const at = timeAt(x);
  if (y - (row.top - view.top) >= kRow) {
    if (at < 0 || at > row.timeline.end / row.timeline.ticks) return [];
    const value = memoryAt(row, at);
    return [
      row.timeline.isInBytes ? `P${row.number} has ${bytes(value)}` :
                               `P${row.number} has ${value} activations`
    ];
  }
  const index = row.indexAfter(at);
  if (index < row.ends.length && row.begins[index] <= at) {
    marked = {row, index};
    return describe(marked);
  }
  const span = row.spanAt(at);
  return span ?
      [
        `${span.name} on P${row.number}`,
        `${time(span.begin)} to ${time(span.end)}: ${
            time(span.end - span.begin)}`
      ] :
      [];
}

function point(x, y) {
  const lines = linesAt(x, y);
  tip.hidden = lines.length === 0;
  tip.replaceChildren(...lines.map((text, i) => {
    const line = document.createElement(i === 0 ? 'b' : 'div');
    line.textContent = text;
    return line;
  }));
  const right = x + 16 + tip.offsetWidth > view.width;
  tip.style.left =
      `${Math.max(right ? x - 12 - tip.offsetWidth : x + 16, 0)}px`;
  tip.style.top =
      `${Math.min(y + 14, Math.max(view.height - tip.offsetHeight - 4, 0))}px`;
  drawMarks();
}

// ---- Input ----

let drag = null;  // {x, y, hasMoved} while a button is down

place.addEventListener('wheel', (event) => {
  if (event.ctrlKey || event.metaKey) {
    zoom(
        Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300),
        event.offsetX);
  } else if (
      event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    const by = (event.deltaX || event.deltaY) / drawn() * (view.to - view.from);
    show(view.from + by, view.to + by);
  } else if (!scroll(event.deltaY)) {
    return;  // the page scrolls
  }
  event.preventDefault();
}, {passive: false});

place.addEventListener('pointerdown', (event) => {
  drag = {x: event.clientX, y: event.clientY, hasMoved: false};
  place.setPointerCapture(event.pointerId);
});

place.addEventListener('pointermove', (event) => {
  if (!drag) {
    const box = place.getBoundingClientRect();
    if (!isPinned) point(event.clientX - box.left, event.clientY - box.top);
    return;
  }
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.hasMoved && Math.hypot(dx, dy) < 4) return;
  drag = {x: event.clientX, y: event.clientY, hasMoved: true};
  const by = -dx / drawn() * (view.to - view.from);
  show(view.from + by, view.to + by);
  scroll(-dy);
});

place.addEventListener('pointerup', (event) => {
  if (drag && !drag.hasMoved) {
    const box = place.getBoundingClientRect();
    point(event.clientX - box.left, event.clientY - box.top);
    isPinned = !isPinned && !tip.hidden;
  }
  drag = null;
});

place.addEventListener('pointerleave', () => {
  if (!isPinned) point(-1, -1);
});

const actions = {
  '+': () => zoom(1 / 1.5),
  '=': () => zoom(1 / 1.5),
  '-': () => zoom(1.5),
  0: () => show(0, axisEnd),
  ArrowLeft: () => show(
      view.from - (view.to - view.from) / 8,
      view.to - (view.to - view.from) / 8),
  ArrowRight: () => show(
      view.from + (view.to - view.from) / 8,
      view.to + (view.to - view.from) / 8),
  ArrowUp: () => scroll(-60),
  ArrowDown: () => scroll(60),
  Escape: () => {
    isPinned = false;
    point(-1, -1);
  },
};
place.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || !actions[event.key]) return;
  actions[event.key]();
  event.preventDefault();
});
for (const button of document.querySelectorAll('button'))
  button.addEventListener('click', actions[button.value]);

// ---- Legend and start ----

const legend = document.getElementById('legend');
for (const [name, fill] of new Map(data.timelines.flatMap(
         ({colours}) => colours.map(([fill, , , name]) => [name, fill])))) {
  const entry = document.createElement('span');
  const box = document.createElement('i');
  box.style.background = fill;
  entry.append(box, name);
  legend.append(entry);
}
for (const note of data.notes) {
  const line = document.createElement('p');
  line.textContent = note;
  document.getElementById('notes').append(line);
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  readColours();
  redraw();
});
readColours();
place.style.height = `min(${height + 4}px, calc(100vh - 96px))`;
new ResizeObserver(resize).observe(place);
resize();
requestAnimationFrame(() => performance.mark('drawn'));
