/* What a reader may choose below a picture, without a kernel: requests.js and steps.js say what.
   workbook.draw(type, host, data) adds it to an element. On a page, every .workbook-interactive
   holds its data as JSON and names their type. Nothing moves by itself. */
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const OWN_KEYS = "data-lm-suppress-shortcuts"; // or JupyterLab takes the arrows away
  const [NARROW, WIDE] = [320, 800]; // pixels, which are the units of a drawing
  const painters = {};

  function make(name, attributes, text = "") {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  }

  /** A list to choose from, with its label around it: [label, select]. */
  function choice(label, names, changed) {
    const outer = document.createElement("label");
    const select = document.createElement("select");
    for (const name of names) select.add(new Option(name));
    select.addEventListener("change", changed);
    outer.append(`${label} `, select);
    outer.style.marginRight = "1.5em";
    return [outer, select];
  }

  /** Black or white, whichever is read more easily on a colour. */
  function ink(color) {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16) / 255);
    return 0.299 * r + 0.587 * g + 0.114 * b < 0.55 ? "#ffffff" : "#222222";
  }

  /** How wide a drawing may be in an element; one that is not on the page yet has no width. */
  function room(host) {
    return Math.max(NARROW, Math.min(host.clientWidth || WIDE, WIDE));
  }

  /** Put controls, a sentence, room for a drawing and what stands below it into an element. Returns
      what shows the next sentence with its drawing, an SVG element of a height. `redraw` is called
      where the room has become another. */
  function frame(host, controls, redraw, below = []) {
    const outer = document.createElement("div");
    outer.className = "workbook-choice";
    outer.style.cssText = "margin: 0.5em 0; color: var(--jp-content-font-color1, inherit)";
    const said = document.createElement("p");
    said.setAttribute("role", "status");
    const around = document.createElement("div");
    outer.append(...controls, said, around, ...below);
    for (const one of outer.querySelectorAll("select, button, [tabindex]")) {
      one.setAttribute(OWN_KEYS, "true");
    }
    host.append(outer);
    let drawn; // the room that the last drawing had
    new ResizeObserver(() => {
      if (drawn !== undefined && drawn !== room(host)) redraw();
    }).observe(host);
    return (text, drawing, height) => {
      drawn = room(host);
      said.textContent = text;
      const names = { role: "img", "aria-label": text, viewBox: `0 0 ${drawn} ${height}` };
      for (const [key, value] of Object.entries(names)) drawing.setAttribute(key, value);
      // White and black in any theme, as the pictures are: their colours are told apart on white.
      drawing.style.cssText = `width: 100%; max-width: ${drawn}px; display: block;
        background: #ffffff; color: #222222`;
      around.replaceChildren(drawing);
    };
  }

  function draw(type, host, data) {
    painters[type]?.(host, data);
  }

  window.workbook = { make, choice, ink, room, frame, painters, draw };

  const style = document.createElement("style");
  style.textContent = "@media print { .workbook-choice { display: none } }"; // the picture is there
  document.head.append(style);

  document.addEventListener("DOMContentLoaded", () => {
    for (const host of document.querySelectorAll(".workbook-interactive")) {
      draw(host.dataset.type, host, JSON.parse(host.querySelector("script").textContent));
    }
  });
})();
