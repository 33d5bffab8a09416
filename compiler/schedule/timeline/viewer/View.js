// The shown range of time and of rows.
'use strict';

const place = document.getElementById('rows');
const [rowsCanvas, marksCanvas] = place.querySelectorAll('canvas');

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
               'update', 'wait', 'allReduce', 'other'])
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
