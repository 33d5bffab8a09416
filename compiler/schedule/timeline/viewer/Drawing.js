// Draws the axis and the visible rows.
'use strict';

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
    const width = xOf(end) - x;
    const gap = width > 4 ? 1 : 0;
    pen.fillRect(x, top + kRow / 4, Math.max(width - gap, 1), kRow / 2);
  }
}

function drawActions(pen, row, top) {
  const labels = row.worker.label;
  let covered = -1;  // boxes narrower than a pixel are drawn up to here
  let used = '';     // the pen's colour: to set it again takes time
  for (let i = row.indexAfter(view.from); i < row.ends.length; ++i) {
    if (row.begins[i] > view.to) break;
    const begin = Math.max(xOf(row.begins[i]), kLabels - 2);
    const end = Math.min(xOf(row.ends[i]), view.width + 2);
    if (end <= covered) continue;
    const [fill, edge, ink] = row.timeline.colours[row.colours[i]];
    if (used !== fill) pen.fillStyle = used = fill;
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
      pen.fillStyle = used = ink;
      pen.fillText(labels[i], (begin + end - gap) / 2, top + kRow / 2);
    }
  }
}

// A stepped curve. A pixel in which the value changes has its largest value.
function drawMemory(pen, row, top) {
  const memory = row.worker.memory;
  const bottom = top + kMemory - 2;
  const scale = (kMemory - 4) / (row.timeline.most || 1);
  const right = Math.min(
      Math.floor(xOf(row.timeline.end / row.timeline.ticks)), view.width - 8);
  pen.fillStyle = colour.memory;
  // The bar that is not drawn yet. Bars of one height become one.
  let left = kLabels, height = 0;
  const draw = (from, value) => {
    if (value === height) return;
    if (from > left && height > 0)
      pen.fillRect(left, bottom - height * scale, from - left, height * scale);
    left = from;
    height = value;
  };
  let pixel = kLabels, most = 0, last = 0;
  for (let i = 0; i < memory.length; i += 2) {
    const x = Math.floor(xOf(memory[i] / row.timeline.ticks));
    if (x > right) break;
    if (x > pixel) {
      draw(pixel, most);
      draw(pixel + 1, last);
      pixel = x;
      most = memory[i + 1];
    } else {
      most = x < pixel ? memory[i + 1] : Math.max(most, memory[i + 1]);
    }
    last = memory[i + 1];
  }
  draw(pixel, most);
  draw(pixel + 1, last);
  draw(right, -1);
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
