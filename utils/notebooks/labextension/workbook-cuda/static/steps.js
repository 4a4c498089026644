/* Go through what a block does, one step at a time: what `data` holds is said in
   utils/diagrams/parts/stepping.py. Needs interactive.js. */
(() => {
  const { make, choice, ink, room, frame, painters } = window.workbook;
  const [LEFT, GAP, HEAD, FLY] = [4, 28, 22, 64]; // units: FLY is as far as a link comes down
  const [LARGEST, SQUARE, FLAT] = [22, 232, 4]; // a cell; a panel; rows of one that goes across
  const [APART, INK] = [5, "#222222"]; // cells from which on each has an edge of its own
  const MANY = 64; // more of them are drawn thin

  /** "0*3 2" -> [0, 0, 0, 2] */
  const cells = (text) =>
    text.split(" ").flatMap((run) => {
      const [value, count] = run.split("*").map(Number);
      return Array(count ?? 1).fill(value);
    });

  /** Where each panel stands, the same in every step: matrices from left to right, rows one below
      the other. Where there are links, the second one has its name below, out of their way. */
  function layout(panels, links, width) {
    let [x, y, below] = [LEFT, 0, 0];
    return panels.map(({ rows, columns }, i) => {
      const flat = rows <= FLAT;
      const cell = Math.min(LARGEST, (flat ? width - 2 * LEFT : SQUARE) / columns, SQUARE / rows);
      const wide = flat ? width : Math.max(cell * columns, 90);
      if (x > LEFT && x + wide > width - LEFT) [x, y] = [LEFT, below];
      const under = links && i > 0;
      const place = { x, y: y + (under ? 0 : HEAD), cell, rows, columns };
      const end = place.y + rows * cell;
      place.label = under ? end + 16 : place.y - 7;
      below = Math.max(below, end + (under ? HEAD : links ? FLY : 10));
      x += wide + GAP;
      return place;
    });
  }

  /** The edges between cells of different states, and of the whole. */
  function edges({ x, y, cell, rows, columns }, states) {
    const at = (row, column) =>
      row >= 0 && row < rows && column >= 0 && column < columns ? states[row * columns + column] : undefined;
    let path = "";
    for (let row = 0; row <= rows; row++) {
      for (let column = 0; column <= columns; column++) {
        const [px, py, state] = [x + column * cell, y + row * cell, at(row, column)];
        if (state !== at(row - 1, column)) path += `M${px} ${py}h${cell}`;
        if (state !== at(row, column - 1)) path += `M${px} ${py}v${cell}`;
      }
    }
    return make("path", { d: path, fill: "none", stroke: INK, "stroke-width": 1.2 });
  }

  function panel(drawing, { name, detail }, place, states, data) {
    const { x, y, cell, rows, columns } = place;
    const label = make("text", { x, y: place.label, fill: INK, "font-size": 13 });
    label.append(make("tspan", { "font-weight": "bold" }, name));
    label.append(make("tspan", { "font-size": 12, dx: 6 }, detail));
    drawing.append(label);
    const single = cell >= APART;
    const edge = single ? { stroke: "#ffffff", "stroke-width": 0.6 } : { "shape-rendering": "crispEdges" };
    for (let row = 0; row < rows; row++) {
      for (let from = 0, to; from < columns; from = to) {
        const state = states[row * columns + from];
        to = from + 1;
        if (state === undefined) continue; // beyond the last element
        while (!single && to < columns && states[row * columns + to] === state) to++;
        const [left, top, fill] = [x + from * cell, y + row * cell, data.colors[state]];
        const size = { width: (to - from) * cell, height: cell };
        const box = make("rect", { x: left, y: top, ...size, fill, ...edge });
        box.append(make("title", {}, data.meanings[state]));
        drawing.append(box);
        if (data.letters[state].trim() && cell >= 14) {
          const middle = { x: left + cell / 2, y: top + cell / 2 + 4, "text-anchor": "middle" };
          const look = { "font-size": 12, fill: ink(fill) };
          drawing.append(make("text", { ...middle, ...look }, data.letters[state]));
        }
      }
    }
    drawing.append(edges(place, states));
  }

  /** Lines from a cell of the first panel down to one of the second. */
  function link(drawing, text, [above, below], colors) {
    const links = text.split(" ").filter(Boolean).map((one) => one.split(":").map(Number));
    for (const [from, to, state] of links) {
      const x = (place, n) => place.x + (n + 0.5) * place.cell;
      const [y1, y2] = [above.y + above.cell * above.rows, below.y];
      const line = { x1: x(above, from), y1, x2: x(below, to), y2, stroke: colors[state] };
      drawing.append(make("line", { ...line, "stroke-width": links.length > MANY ? 0.6 : 1.6 }));
    }
  }

  function legend(drawing, data, y, width) {
    let x = LEFT;
    for (const state of data.legend) {
      const words = data.meanings[state];
      const wide = 26 + 6.6 * words.length + 14;
      if (x > LEFT && x + wide > width) [x, y] = [LEFT, y + 20];
      const box = { x, y: y - 11, width: 13, height: 13, fill: data.colors[state] };
      drawing.append(make("rect", { ...box, stroke: INK, "stroke-width": 0.6 }));
      const place = { x: x + 20, y, fill: INK, "font-size": 12 };
      drawing.append(make("text", place, words));
      x += wide;
    }
    return y + 10;
  }

  function button(text, label, pressed) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-label", label);
    made.style.cssText = "min-width: 2.5em; min-height: 2em; margin-right: 0.75em; font: inherit";
    made.addEventListener("click", pressed);
    return made;
  }

  painters["application/vnd.cuda-workbook.steps+json"] = (host, given) => {
    const legendOf = given.legend.split(" ").map(Number);
    const data = { ...given, colors: given.colors.split(" "), legend: legendOf };
    const { steps, panels } = data;
    const what = data.what.toLowerCase();
    const [label, select] = choice(data.what, steps.map((step) => step.name), () => draw());
    const go = (by) => {
      const next = select.selectedIndex + by;
      if (next < 0 || next >= steps.length) return;
      select.selectedIndex = next;
      draw();
    };
    const previous = button("◀", `previous ${what}`, () => go(-1));
    const next = button("▶", `next ${what}`, () => go(1));
    const code = document.createElement("pre");
    code.style.cssText = "white-space: pre; overflow-x: auto; margin: 0.25em 0; font-size: 0.9em";
    code.tabIndex = 0;
    const show = frame(host, [previous, next, label], () => draw(), [code]);

    function draw() {
      const [step, n] = [steps[select.selectedIndex], select.selectedIndex];
      // A button that is pressed keeps the focus, so it is not disabled at the end.
      previous.setAttribute("aria-disabled", n === 0);
      next.setAttribute("aria-disabled", n === steps.length - 1);
      for (const one of [previous, next]) {
        one.style.opacity = one.getAttribute("aria-disabled") === "true" ? 0.4 : 1;
      }
      const drawing = make("svg", {});
      const width = room(host);
      const places = layout(panels, steps.some((one) => one.links), width);
      panels.forEach((one, i) => panel(drawing, one, places[i], cells(step.cells[i]), data));
      link(drawing, step.links, places, data.colors);
      const bottom = Math.max(...places.map((one) => Math.max(one.label, one.y + one.cell * one.rows)));
      const height = legend(drawing, data, bottom + 26, width);
      show(`${step.name}, ${n + 1} of ${steps.length}: ${step.said}`, drawing, height);
      code.textContent = step.code;
      code.hidden = !steps.some((one) => one.code);
    }

    draw();
  };
})();
