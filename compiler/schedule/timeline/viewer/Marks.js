// Marks the action under the pointer, the actions that it needs (solid lines)
// and those that need it (dashed lines), and says what it is.
'use strict';

const tip = document.getElementById('tip');

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
  const own = timeline.firsts[timeline.rows.indexOf(row)] + index;
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
    `${nameOf(action)} on ${row.where}`,
    `${time(begin)} to ${time(end)}: ${time(end - begin)}`
  ];
  const wait = begin - row.endBefore(index);
  if (wait > 1e-9 * axisEnd) {
    // Only a message keeps an action of a free worker waiting.
    const last =
        needs.filter((need) => need.row !== row)
            .sort((a, b) => b.row.ends[b.index] - a.row.ends[a.index])[0];
    const reason = last ? ` for ${nameOf(last)} on ${last.row.where}` : '';
    lines.push(`${row.where} waits ${time(wait)} before it${reason}`);
  }
  if (row.worker.sends?.[index])
    lines.push(`sends ${bytes(row.worker.sends[index])}`);
  const list = (all) =>
      all.map((each) => `${nameOf(each)} (${each.row.where})`).join(', ');
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
      row.timeline.isInBytes ? `${row.where} has ${bytes(value)}` :
                               `${row.where} has ${value} activations`
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
        row.where ? `${span.name} on ${row.where}` : span.name,
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
