/* Choose a line and a warp of a kernel, and see the sectors or the banks that its request touches.
   workbookRequests(host, data) adds it to an element; what `data` holds is said in
   utils/diagrams/parts/requests.py. On a page, every .workbook-requests holds its data as JSON. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const [SECTOR, WORD, BANKS, LANES] = [32, 4, 32, 32];
  const [CELL, LEFT] = [24, 4]; // units of the drawing

  const OWN_KEYS = "data-lm-suppress-shortcuts"; // or JupyterLab takes the arrows away

  function make(name, attributes, text = "") {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  }

  function choice(label, names, changed) {
    const outer = document.createElement("label");
    const select = document.createElement("select");
    for (const name of names) select.add(new Option(name));
    select.addEventListener("change", changed);
    select.setAttribute(OWN_KEYS, "true");
    outer.append(`${label} `, select);
    outer.style.marginRight = "1.5em";
    return [outer, select];
  }

  const numbers = (text) => text?.split(" ").map(Number);

  /** Black or white, whichever is read more easily on a colour. */
  function ink(color) {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255);
    return 0.299 * r + 0.587 * g + 0.114 * b < 0.55 ? "#ffffff" : "#222222";
  }

  function cell(drawing, x, y, wide, who, colors) {
    const fill = who.length === 1 ? colors[who[0]] : who.length ? "#222222" : "none";
    const words = who.length ? `lanes ${who.join(", ")}` : "brought for nobody";
    const box = make("rect", { x, y, width: wide, height: CELL, fill, stroke: "#888888" });
    box.append(make("title", {}, words));
    drawing.append(box);
    if (!who.length) return;
    const text = who.length === 1 ? `${who[0]}` : who.length === LANES ? "all" : `×${who.length}`;
    const place = { x: x + wide / 2, y: y + 16, "text-anchor": "middle", fill: ink(fill) };
    drawing.append(make("text", { ...place, "font-size": wide < CELL ? 10 : 12 }, text));
  }

  /** unit -> the lanes that want it, where a lane wants `size` bytes from its place on. */
  function wanted(request, unit, chosen = () => true) {
    const found = new Map();
    request.lanes.forEach((lane, i) => {
      if (!chosen(i)) return;
      const last = Math.floor((request.bytes[i] + request.size - 1) / unit);
      for (let n = Math.floor(request.bytes[i] / unit); n <= last; n++) {
        found.set(n, [...(found.get(n) ?? []), lane]);
      }
    });
    return found;
  }

  /** Rows of four sectors of eight words; returns the height. */
  function sectors(drawing, request, colors) {
    const words = wanted(request, WORD);
    const touched = [...wanted(request, SECTOR).keys()].sort((a, b) => a - b);
    touched.forEach((sector, i) => {
      const x = LEFT + (i % 4) * (8 * CELL + 6);
      const y = Math.floor(i / 4) * (CELL + 20) + 16;
      const label = `byte ${(sector * SECTOR).toLocaleString("en")}`;
      drawing.append(make("text", { x, y: y - 4, fill: "currentColor", "font-size": 12 }, label));
      for (let n = 0; n < 8; n++) {
        cell(drawing, x + n * CELL, y, CELL, words.get(sector * 8 + n) ?? [], colors);
      }
      const frame = { x, y, width: 8 * CELL, height: CELL, fill: "none", stroke: "currentColor" };
      drawing.append(make("rect", { ...frame, "stroke-width": 2 }));
    });
    return Math.ceil(touched.length / 4) * (CELL + 20) + 4;
  }

  /** A column for each bank, its words one upon the other; returns the height. */
  function banks(drawing, request, colors) {
    const piles = Array.from({ length: BANKS }, () => []);
    for (const phase of [...new Set(request.phases)].sort()) {
      const level = Math.max(...piles.map((pile) => pile.length));
      for (const pile of piles) while (pile.length < level) pile.push(null);
      const words = wanted(request, WORD, (i) => request.phases[i] === phase);
      for (const [word, who] of words) piles[word % BANKS].push(who);
    }
    const levels = Math.max(...piles.map((pile) => pile.length));
    piles.forEach((pile, bank) => {
      const x = LEFT + bank * CELL;
      pile.forEach((who, i) => who && cell(drawing, x, (levels - 1 - i) * CELL + 4, CELL, who, colors));
      const place = { x: x + CELL / 2, y: levels * CELL + 20, "text-anchor": "middle" };
      drawing.append(make("text", { ...place, fill: "currentColor", "font-size": 12 }, `${bank}`));
    });
    const place = { x: LEFT, y: levels * CELL + 38, fill: "currentColor", "font-size": 12 };
    drawing.append(make("text", place, "bank; each row is a turn, each number a lane"));
    return levels * CELL + 46;
  }

  window.workbookRequests = (host, data) => {
    const outer = document.createElement("div");
    outer.className = "workbook-choice";
    outer.style.cssText = "margin: 0.5em 0; color: var(--jp-content-font-color1, inherit)";
    const said = document.createElement("p");
    said.setAttribute("role", "status");
    const around = document.createElement("div");
    around.style.overflowX = "auto";
    around.tabIndex = 0;
    around.setAttribute(OWN_KEYS, "true");
    const lines = data.instructions.map((one) => one.what);
    const [first, line] = choice("Line", lines, () => follow());
    const [second, warp] = choice("Warp", [], () => draw());

    function follow() {
      const kept = Math.max(warp.selectedIndex, 0);
      const names = data.instructions[line.selectedIndex].warps.map((one) => one.name);
      warp.replaceChildren(...names.map((name) => new Option(name)));
      warp.selectedIndex = Math.min(kept, names.length - 1);
      draw();
    }

    function draw() {
      const one = data.instructions[line.selectedIndex];
      const request = { ...one.warps[warp.selectedIndex] };
      for (const key of ["lanes", "bytes", "phases"]) request[key] = numbers(request[key]);
      said.textContent = `${one.what}, ${request.name}: ${request.cost}`;
      const drawing = make("svg", { role: "img", "aria-label": said.textContent });
      const paint = data.memory === "banks" ? banks : sectors;
      const height = paint(drawing, request, data.colors.split(" "));
      drawing.setAttribute("viewBox", `0 0 800 ${height}`);
      drawing.style.cssText = "width: 100%; min-width: 640px; max-width: 800px; display: block";
      around.replaceChildren(drawing);
    }

    outer.append(first, second, said, around);
    host.append(outer);
    follow();
  };

  function all() {
    for (const host of document.querySelectorAll(".workbook-requests")) {
      window.workbookRequests(host, JSON.parse(host.querySelector("script").textContent));
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();
