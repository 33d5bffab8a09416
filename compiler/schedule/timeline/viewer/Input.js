// The mouse, the keys and the buttons; the legend and the notes; the start.
'use strict';

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
