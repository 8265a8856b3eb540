
'use strict';
// Search, keys, theme and the timeline, which is drawn from the rows that have a time. The page is complete without it.
(() => {
  const all = (what, within = document) => Array.from(within.querySelectorAll(what));
  const id = (name) => document.getElementById(name);
  const root = document.documentElement;
  const search = id('search');
  const rows = all('.r');
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const sections = all('section').map((section) => ({
    section, rows: all('.r', section), link: document.querySelector(`nav a[href="#${section.id}"]`),
  }));

  // What is folded is searched and printed too.
  const unfold = () => all('details').forEach((one) => { one.open = true; });
  addEventListener('beforeprint', unfold);

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, index) => {
      const fits = words.every((word) => texts[index].includes(word));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    if (words.length) unfold();
    document.body.classList.toggle('filtered', words.length > 0);
    id('found').textContent = words.length ? `${shown} of ${rows.length} rows` : '';
    sections.forEach((one) => {
      const none = words.length > 0 && one.rows.every((row) => row.hidden) && one.section.id !== 'timeline';
      one.section.classList.toggle('none', none);
      if (one.link) one.link.classList.toggle('none', none);
    });
    draw();
  };

  const go = (step) => {
    const top = document.querySelector('header').offsetHeight + 24;
    const shown = sections.map((one) => one.section).filter((section) => !section.classList.contains('none'));
    if (!shown.length) return;
    const begun = shown.filter((section) => section.getBoundingClientRect().top <= top).length - 1;
    const focused = shown.indexOf(document.activeElement);
    const at = focused >= 0 ? focused : begun;
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + step))];
    next.scrollIntoView();
    next.focus({ preventScroll: true });
  };

  const theme = () => {
    const dark = root.classList.contains('dark')
      || (!root.classList.contains('light') && matchMedia('(prefers-color-scheme: dark)').matches);
    root.classList.toggle('dark', !dark);
    root.classList.toggle('light', dark);
  };

  // The timeline: a lane per processor, one for what names none, one for the log.
  const SVG = 'http://www.w3.org/2000/svg';
  const box = id('lanes');
  const marks = box ? rows.filter((row) => row.dataset.t !== undefined).map((row) => ({
    row, t: Number(row.dataset.t), kind: row.closest('section').id,
    lane: row.dataset.c !== undefined ? Number(row.dataset.c) : row.closest('section').id === 'log' ? 1e12 : 1e11,
  })).sort((a, b) => a.t - b.t) : [];
  const death = box && box.dataset.death !== undefined ? Number(box.dataset.death) : NaN;
  const first = marks.length ? marks[0].t : 0;
  const last = Math.max(first + 1, marks.length ? marks[marks.length - 1].t : 0, death || 0);
  let [from, to] = [first, last];
  let cursor = -1;
  const lanes = [];
  // What caused what: the marks of moments, and the list's rows by the moment of either end.
  const moments = new Map(marks.filter((mark) => mark.row.dataset.m).map((mark) => [mark.row.dataset.m, mark]));
  const flows = all('#causes tr[data-from]').map((row) => ({
    row, from: row.dataset.from, to: row.dataset.to, cells: Array.from(row.cells, (cell) => cell.textContent),
  }));
  const ends = (side, mark) => (mark ? flows.filter((flow) => flow[side] === mark.row.dataset.m) : []);
  const element = (name, within, attributes = {}) => {
    const one = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => one.setAttribute(key, value));
    within.append(one);
    return one;
  };
  const words = (ns) => {
    const size = Math.abs(ns);
    if (size < 1e3) return `${ns.toFixed(0)} ns`;
    if (size < 1e6) return `${(ns / 1e3).toFixed(1)} µs`;
    return size < 1e9 ? `${(ns / 1e6).toFixed(3)} ms` : `${(ns / 1e9).toFixed(6)} s`;
  };
  const lane = (name, of) => {
    const label = document.createElement('span');
    label.textContent = name;
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('preserveAspectRatio', 'none');
    svg.setAttribute('role', 'img');
    svg.setAttribute('aria-label', `${name}: ${of.length} events`);
    box.append(label, svg);
    lanes.push({ svg, of, kinds: Array.from(new Set(of.map((mark) => mark.kind))) });
    return svg;
  };
  const lasted = (mark) => Number(mark.row.dataset.d || 0);
  const what = (row) => (row.cells ? row.cells[row.cells.length - 1].textContent : row.textContent).trim();
  // Turns of threads, waits and calls as long as they took, a turn with its thread where there is room for it.
  const slices = (svg, of, width) => {
    let path = '';
    for (const mark of of) {
      const took = lasted(mark);
      if (!took || mark.row.hidden || mark.t > to || mark.t + took < from) continue;
      const [begin, end] = [mark.t, mark.t + took].map((t) => Math.max(0, Math.min(width, x(t, width))));
      path += `M${begin} 8H${end}V14H${begin}Z`;
      const thread = mark.kind === 'trace' && what(mark.row).split('→ ')[1];
      if (thread && end - begin > 8 * thread.length + 6) {
        element('text', svg, { x: begin + 3, y: 21 }).textContent = thread;
      }
    }
    element('path', svg, { class: 'slice', d: path });
  };
  // Arrows from the causes of the event under the cursor, and to its effects, across the lanes.
  const arrows = () => {
    const mark = marks[cursor];
    over.replaceChildren();
    const area = box.getBoundingClientRect();
    over.setAttribute('viewBox', `0 0 ${area.width} ${area.height}`);
    const place = (one) => {
      const lane = one && lanes.find((lane) => lane.of && lane.of.includes(one));
      if (!lane || one.t < from || one.t > to) return null;
      const within = lane.svg.getBoundingClientRect();
      return [within.left - area.left + x(one.t, within.width), within.top - area.top + within.height / 2];
    };
    for (const flow of ends('to', mark).concat(ends('from', mark))) {
      const [begin, end] = [flow.from, flow.to].map((moment) => place(moments.get(moment)));
      if (!begin || !end) continue;
      element('path', over, { class: 'flow', d: `M${begin}L${end}` });
      element('circle', over, { class: 'flow', cx: end[0], cy: end[1], r: 3.5 });
    }
  };
  const jump = (side) => {
    const flow = ends(side === 'from' ? 'to' : 'from', marks[cursor]).find((one) => moments.has(one[side]));
    if (flow) show(marks.indexOf(moments.get(flow[side])), true);
  };
  // Causes and effects of the event under the cursor in words; a click goes there.
  const list = (mark) => {
    const lines = ends('to', mark).map((flow) => ['←', flow, 'from']).concat(ends('from', mark).map((flow) => ['→', flow, 'to']));
    id('links').replaceChildren(...lines.map(([arrow, flow, side]) => {
      const partner = moments.get(flow[side]);
      const line = document.createElement('button');
      const [name, , fromCpu, , toCpu, after, effect] = flow.cells;
      const cpu = side === 'from' ? fromCpu : toCpu;
      const told = side === 'to' ? effect : partner ? what(partner.row) : 'an event that has no row';
      line.textContent = `${arrow} ${name}, ${after} ${side === 'to' ? 'later' : 'before'}${cpu ? `, CPU ${cpu}` : ''}: ${told}`;
      line.disabled = !partner;
      line.addEventListener('click', () => show(marks.indexOf(partner), true));
      return line;
    }));
  };
  const x = (t, width) => ((t - from) / (to - from)) * width;
  const over = document.createElementNS(SVG, 'svg');
  const bars = (of, width) => {
    let [path, before] = ['', -1];
    for (const mark of of) {
      if (mark.t < from || mark.t > to || mark.row.hidden) continue;
      const at = Math.round(x(mark.t, width) * 2) / 2;
      if (at !== before) path += `M${at} 3V19`;
      before = at;
    }
    return path;
  };
  function draw() {
    if (!lanes.length) return;
    for (const { svg, of, kinds } of lanes) {
      const width = svg.clientWidth || 1000;
      svg.setAttribute('viewBox', `0 0 ${width} ${of ? 22 : 16}`);
      svg.replaceChildren();
      if (!of) { axis(svg, width); continue; }
      slices(svg, of, width);
      for (const kind of kinds) {
        element('path', svg, { class: kind, d: bars(of.filter((mark) => mark.kind === kind), width) });
      }
      if (death >= from && death <= to) element('path', svg, { class: 'death', d: `M${x(death, width)} 0V22` });
      if (cursor >= 0) element('path', svg, { class: 'cursor', d: `M${x(marks[cursor].t, width)} 0V22` });
    }
    arrows();
    id('range').textContent = `${(from / 1e9).toFixed(6)} s to ${(to / 1e9).toFixed(6)} s, ${words(to - from)} wide`;
  }
  const axis = (svg, width) => {
    const least = ((to - from) * 110) / width;
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= least);
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      element('path', svg, { class: 'axis', d: `M${x(t, width)} 0V4` });
      const label = element('text', svg, { x: x(t, width) + 3, y: 12 });
      label.textContent = `${(t / 1e9).toFixed(Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(step)))))} s`;
    }
  };
  const view = (start, width) => {
    const wide = Math.max(100, Math.min(last - first, width));
    from = Math.max(first, Math.min(last - wide, start));
    to = from + wide;
    draw();
  };
  const zoom = (factor, at = 0.5) => {
    const middle = from + (to - from) * at;
    const wide = Math.max(100, Math.min(last - first, (to - from) * factor));
    view(middle - wide * at, wide);
  };
  const show = (index, follow) => {
    const mark = marks[index];
    if (!mark) return;
    cursor = index;
    const where = mark.row.dataset.c !== undefined ? `CPU ${mark.row.dataset.c}  ` : '';
    const took = lasted(mark) ? `  for ${words(lasted(mark))}` : '';
    const distance = Number.isNaN(death) ? '' : `  ${words(death - mark.t)} before the death`;
    id('readout').textContent = `${(mark.t / 1e9).toFixed(9)} s  ${where}${what(mark.row)}${took}${distance}`;
    list(mark);
    if (follow && (mark.t < from || mark.t > to)) view(mark.t - (to - from) / 2, to - from); else draw();
  };
  const open = () => {
    if (cursor < 0) return;
    all('.seen').forEach((row) => row.classList.remove('seen'));
    marks[cursor].row.classList.add('seen');
    marks[cursor].row.scrollIntoView({ block: 'center' });
  };
  const step = (by) => {
    if (!marks.length) return;
    let at = cursor < 0 ? (by > 0 ? -1 : marks.length) : cursor;
    do at += by; while (marks[at] && marks[at].row.hidden);
    show(Math.max(0, Math.min(marks.length - 1, at)), true);
  };
  const nearest = (event, one) => {
    const area = one.svg.getBoundingClientRect();
    const t = from + ((event.clientX - area.left) / area.width) * (to - from);
    const close = one.of.filter((mark) => !mark.row.hidden)
      .reduce((best, mark) => (!best || Math.abs(mark.t - t) < Math.abs(best.t - t) ? mark : best), null);
    const pixels = close ? (Math.abs(close.t - t) / (to - from)) * area.width : Infinity;
    return pixels < 8 ? marks.indexOf(close) : -1;
  };
  const handle = (one) => {
    let [held, moved] = [null, 0];
    one.svg.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const area = one.svg.getBoundingClientRect();
      zoom((event.deltaY || event.deltaX) < 0 ? 0.7 : 1 / 0.7, (event.clientX - area.left) / area.width);
    }, { passive: false });
    one.svg.addEventListener('pointerdown', (event) => {
      [held, moved] = [event.clientX, 0];
      one.svg.setPointerCapture(event.pointerId);
    });
    one.svg.addEventListener('pointermove', (event) => {
      if (held === null) { const near = nearest(event, one); if (near >= 0 && near !== cursor) show(near, false); return; }
      const by = event.clientX - held;
      moved += Math.abs(by);
      held = event.clientX;
      view(from - (by / one.svg.getBoundingClientRect().width) * (to - from), to - from);
    });
    one.svg.addEventListener('pointerup', (event) => {
      held = null;
      const near = moved < 4 ? nearest(event, one) : -1;
      if (near >= 0) { show(near, false); open(); }
    });
  };
  if (box && marks.length) {
    const numbers = Array.from(new Set(marks.map((mark) => mark.lane))).sort((a, b) => a - b);
    for (const number of numbers) {
      const name = number === 1e12 ? 'log' : number === 1e11 ? 'no CPU' : `CPU ${number}`;
      lane(name, marks.filter((mark) => mark.lane === number));
    }
    lanes.forEach(handle);
    const label = document.createElement('span');
    const svg = document.createElementNS(SVG, 'svg');
    svg.setAttribute('class', 'axis');
    svg.setAttribute('aria-hidden', 'true');
    box.append(label, svg);
    lanes.push({ svg, of: null, kinds: [] });
    over.setAttribute('class', 'over');
    over.setAttribute('aria-hidden', 'true');
    box.append(over);
    all('button[data-zoom]').forEach((button) => button.addEventListener('click', () => {
      if (button.dataset.zoom === 'all') view(first, last - first); else zoom(Number(button.dataset.zoom));
    }));
    // A row of the list selects its effect, with both ends in view.
    flows.forEach((flow) => flow.row.addEventListener('click', () => {
      const [cause, effect] = [flow.from, flow.to].map((moment) => moments.get(moment));
      if (!effect) return;
      if (cause) view(cause.t - (effect.t - cause.t) * 0.2, (effect.t - cause.t) * 1.4);
      show(marks.indexOf(effect), true);
      id('timeline').scrollIntoView();
    }));
    window.addEventListener('resize', draw);
  }

  const help = () => { id('help').hidden = !id('help').hidden; };
  search.addEventListener('input', filter);
  id('theme').addEventListener('click', theme);
  id('keys').addEventListener('click', help);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === 'Escape') {
      id('help').hidden = true;
      search.value = '';
      filter();
      search.blur();
      return;
    }
    if (event.target === search || (event.target.tagName === 'BUTTON' && event.key === 'Enter')) return;
    const pan = (to - from) / 5;
    const act = {
      '/': () => { search.focus(); search.select(); }, j: () => go(1), k: () => go(-1), t: theme, '?': help,
      '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), 0: () => view(first, last - first),
      h: () => view(from - pan, to - from), l: () => view(from + pan, to - from),
      n: () => step(1), p: () => step(-1), Enter: open, c: () => jump('from'), e: () => jump('to'),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  draw();
})();
