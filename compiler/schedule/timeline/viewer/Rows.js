// The viewer of a page that renderHtml (Html.h) makes. Html.h describes the
// data. The page has these files in this order:
//
//   Rows.js     the data: a row for each worker of each timeline
//   View.js     the shown range of time and rows
//   Drawing.js  draws the rows
//   Marks.js    what the pointer marks, and its text
//   Input.js    the mouse, the keys and the start
//
// Two canvases lie on each other: the lower one has the rows, the upper one
// what the pointer marks. Only visible boxes are drawn, and boxes narrower than
// a pixel are merged, so a frame takes as long for 100,000 actions as for a few
// thousand.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

// Lengths in pixels.
const hasAllReduces = data.timelines.some((each) => each.allReduces.length);
const kLabels =  // left of the rows
    data.isSideBySide ? 118 :
    hasAllReduces     ? 82 :
                        58;
const kAxis = 26, kTitle = 26, kRow = 22, kMemory = 20, kGap = 6;

// A row shows a worker of a timeline, or all-reduces. Times are in the unit of
// the axis.
class Row {
  constructor(timeline, worker, where, top, label) {
    Object.assign(this, {timeline, where, top, label});
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
  const worker = timeline.workers[number];
  rows.push(new Row(timeline, worker, `P${number}`, height, label));
  timeline.rows.push(rows.at(-1));
  height += kRow + (worker.memory ? kMemory : 0) + kGap;
}

function addAllReduces(timeline, spans) {
  const nothing = {colour: [], label: [], stage: [], start: [], length: []};
  rows.push(new Row(timeline, {...nothing, spans}, '', height, 'all-reduces'));
  height += kRow + kGap;
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
    timeline.allReduces.forEach((spans) => addAllReduces(timeline, spans));
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
