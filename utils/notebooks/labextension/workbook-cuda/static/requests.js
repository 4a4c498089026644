/* Choose a line and a warp of a kernel, and see the sectors or the banks that its request touches:
   what `data` holds is said in utils/diagrams/parts/requests.py. Needs interactive.js. */
(() => {
  const { make, choice, ink, room, frame, painters } = window.workbook;
  const [SECTOR, WORD, BANKS, LANES] = [32, 4, 32, 32];
  const [CELL, LEFT, GAP] = [24, 4, 6]; // units of the drawing
  const FULL = 4 * (8 * CELL + GAP); // across: four sectors, which are more than the banks

  const numbers = (text) => text?.split(" ").map(Number);

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

  /** Rows of four sectors of eight words, of two where there is no room; returns the height. */
  function sectors(drawing, request, colors, width) {
    const across = width >= FULL ? 4 : 2;
    const wide = Math.min(CELL, Math.floor((width - 2 * LEFT) / across - GAP) / 8);
    const words = wanted(request, WORD);
    const touched = [...wanted(request, SECTOR).keys()].sort((a, b) => a - b);
    touched.forEach((sector, i) => {
      const x = LEFT + (i % across) * (8 * wide + GAP);
      const y = Math.floor(i / across) * (CELL + 20) + 16;
      const label = `byte ${(sector * SECTOR).toLocaleString("en")}`;
      drawing.append(make("text", { x, y: y - 4, fill: "currentColor", "font-size": 12 }, label));
      for (let n = 0; n < 8; n++) {
        cell(drawing, x + n * wide, y, wide, words.get(sector * 8 + n) ?? [], colors);
      }
      const frame = { x, y, width: 8 * wide, height: CELL, fill: "none", stroke: "currentColor" };
      drawing.append(make("rect", { ...frame, "stroke-width": 2 }));
    });
    return Math.ceil(touched.length / across) * (CELL + 20) + 4;
  }

  /** A column for each bank, its words one upon the other, in two rows of columns where there is no
      room for one; returns the height. */
  function banks(drawing, request, colors, width) {
    const across = width >= FULL ? BANKS : BANKS / 2;
    const wide = Math.min(CELL, (width - 2 * LEFT) / across);
    const piles = Array.from({ length: BANKS }, () => []);
    for (const phase of [...new Set(request.phases)].sort()) {
      const level = Math.max(...piles.map((pile) => pile.length));
      for (const pile of piles) while (pile.length < level) pile.push(null);
      const words = wanted(request, WORD, (i) => request.phases[i] === phase);
      for (const [word, who] of words) piles[word % BANKS].push(who);
    }
    const levels = Math.max(...piles.map((pile) => pile.length));
    const tall = levels * CELL + 32; // a row of columns with its numbers
    piles.forEach((pile, bank) => {
      const [x, y] = [LEFT + (bank % across) * wide, Math.floor(bank / across) * tall];
      pile.forEach((who, i) => who && cell(drawing, x, y + (levels - 1 - i) * CELL + 4, wide, who, colors));
      const place = { x: x + wide / 2, y: y + levels * CELL + 20, "text-anchor": "middle" };
      drawing.append(make("text", { ...place, fill: "currentColor", "font-size": 12 }, `${bank}`));
    });
    const y = (BANKS / across) * tall + 6;
    const place = { x: LEFT, y, fill: "currentColor", "font-size": 12 };
    drawing.append(make("text", place, "bank; each row is a wavefront, each number a lane"));
    return y + 8;
  }

  painters["application/vnd.cuda-workbook.requests+json"] = (host, data) => {
    const lines = data.instructions.map((one) => one.what);
    const [first, line] = choice("Line", lines, () => follow());
    const [second, warp] = choice("Warp", [], () => draw());
    const show = frame(host, [first, second], () => draw());

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
      const drawing = make("svg", {});
      const paint = data.memory === "banks" ? banks : sectors;
      const height = paint(drawing, request, data.colors.split(" "), room(host));
      show(`${one.what}, ${request.name}: ${request.cost}`, drawing, height);
    }

    follow();
  };
})();
