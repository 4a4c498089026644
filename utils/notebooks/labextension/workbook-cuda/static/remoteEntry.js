/* CUDA colours in JupyterLab: %%cuda cells, .cu and .cuh files; reset(), which changes a cell;
   pictures with their words; and a cell that is run before there is a kernel.
   Written by hand: no node, no build.
   JupyterLab calls init() with the modules that it shares, then get() for the plugin. */
(() => {
  const MIME = "text/x-cuda";
  const RESET = "application/vnd.cuda-workbook.reset+json"; // see notebooks/learner.py
  // See diagrams/parts/requests.py and stepping.py.
  const INTERACTIVE = ["requests", "steps"].map((name) => `application/vnd.cuda-workbook.${name}+json`);
  const CLASSES = {
    magic: /^%%cuda.*/,
    qualifier:
      /\b__(?:global|device|host|shared|constant|managed|restrict|launch_bounds|forceinline|noinline|align|grid_constant|cluster_dims)__\b|<<<|>>>/,
    builtin:
      /\b(?:threadIdx|blockIdx|blockDim|gridDim|warpSize|atomic[A-Z]\w*|__(?:sync|shfl|ballot|any|all|match|reduce|activemask|ldg|popc|ffs|clz|threadfence)\w*)\b/,
    type: /\b(?:void|bool|char|short|int|long|float|double|unsigned|signed|size_t|dim3|(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]|half2?|__half2?|__nv_bfloat16(?:2)?)\b/,
  };
  const names = Object.keys(CLASSES);
  const pattern = new RegExp(names.map((name) => `(${CLASSES[name].source})`).join("|"), "g");

  let shared;

  /** The newest version of a module that JupyterLab shares, which is the one it uses itself. */
  async function load(name) {
    const versions = shared[name];
    const newest = Object.keys(versions).sort((a, b) =>
      a.localeCompare(b, undefined, { numeric: true }),
    );
    return (await versions[newest.pop()].get())();
  }

  /** An editor extension that gives CUDA's own words a class, outside comments and strings. */
  function words(view, language) {
    const marks = names.map((name) => view.Decoration.mark({ class: `cm-cuda-${name}` }));
    const matcher = new view.MatchDecorator({
      regexp: pattern,
      decorate(add, from, to, match, editor) {
        const kind = names.findIndex((_, n) => match[n + 1] !== undefined);
        if (names[kind] === "magic" && from > 0) return;
        const node = language.syntaxTree(editor.state).resolveInner(from, 1).name;
        if (!/Comment|String/.test(node)) add(from, to, marks[kind]);
      },
    });
    const plugin = view.ViewPlugin.define(
      (editor) => ({
        decorations: matcher.createDeco(editor),
        tree: language.syntaxTree(editor.state),
        update(change) {
          const tree = language.syntaxTree(change.state);
          // The parser works in the background: what is a comment may become known later.
          this.decorations =
            tree === this.tree
              ? matcher.updateDeco(change, this.decorations)
              : matcher.createDeco(change.view);
          this.tree = tree;
        },
      }),
      { decorations: (plugin) => plugin.decorations },
    );
    const colour = (variable, rest = {}) => ({ color: `var(${variable}) !important`, ...rest });
    const theme = view.EditorView.baseTheme({
      ".cm-cuda-magic, .cm-cuda-magic *": colour("--jp-mirror-editor-meta-color"),
      ".cm-cuda-qualifier, .cm-cuda-qualifier *": colour("--jp-mirror-editor-keyword-color", {
        fontWeight: "bold",
      }),
      ".cm-cuda-builtin, .cm-cuda-builtin *": colour("--jp-mirror-editor-builtin-color"),
      ".cm-cuda-type, .cm-cuda-type *": colour("--jp-mirror-editor-variable-3-color"),
    });
    return [plugin, theme, view.EditorView.editorAttributes.of({ class: "cm-cuda" })];
  }

  // What Tab completes in a CUDA cell, beside the names that stand in it.
  const WORDS =
    `__global__ __device__ __host__ __shared__ __constant__ __restrict__ __launch_bounds__
    __forceinline__ __syncthreads() __syncwarp() __threadfence() __threadfence_block()
    __shfl_sync( __shfl_down_sync( __shfl_up_sync( __shfl_xor_sync( __ballot_sync( __activemask()
    __ldg( __float2half( __half2float( threadIdx.x blockIdx.x blockDim.x gridDim.x threadIdx.y
    blockIdx.y blockDim.y gridDim.y threadIdx.z blockIdx.z blockDim.z gridDim.z warpSize atomicAdd(
    atomicMax( atomicMin( atomicExch( atomicCAS( cudaMemset( cudaMemsetAsync( cudaMemcpy(
    cudaMalloc( cudaFree( cudaStream_t cudaGetLastError( unsigned float float2 float4 double
    const constexpr return template typename static_cast continue size_t dim3 expf( sqrtf( rsqrtf(
    fmaxf( fminf( fmaf( fabsf( logf( tanhf( erff( INFINITY`.split(/\s+/);

  /** The words that could stand where `prefix` begins, in a cell of this text. */
  function candidates(prefix, text) {
    const own = text.match(/[A-Za-z_]\w{2,}/g) ?? [];
    const known = new Set(WORDS.map((word) => word.replace(/[.(].*/, "")));
    const words = [...WORDS, ...own.filter((word) => !known.has(word))];
    return [...new Set(words)].filter((word) => word.startsWith(prefix) && word !== prefix);
  }

  /** Complete the name before the cursor: Tab again takes the next one that fits. Whether there was
      one. */
  let offered; // where and what the last Tab has put in, and what else there is
  function complete({ state, dispatch }) {
    const { from, empty } = state.selection.main;
    if (!empty) return false;
    const again = offered?.end === from && offered.text === state.sliceDoc(offered.start, from);
    if (!again) {
      const line = state.doc.lineAt(from);
      const prefix = /[A-Za-z_][\w.]*$/.exec(state.sliceDoc(line.from, from))?.[0] ?? "";
      if (prefix.length < 2 || /\w/.test(state.sliceDoc(from, from + 1))) return false;
      const words = candidates(prefix, state.doc.toString());
      if (!words.length) return false;
      offered = { start: from - prefix.length, words: [...words, prefix], next: 0 };
    }
    const { start, words, next } = offered;
    const text = words[next];
    const end = start + text.length;
    Object.assign(offered, { text, end, next: (next + 1) % words.length });
    dispatch(state.update({ changes: { from: start, to: from, insert: text }, selection: { anchor: end } }));
    return true;
  }

  /** Give a code cell the CUDA mode for as long as it begins with %%cuda. */
  function follow(cell) {
    if (cell.type !== "code") return;
    let other = cell.mimeType;
    const update = () => {
      const cuda = /^(?:\s*(?:#.*)?\n|%%time.*\n)*%%cuda\b/.test(cell.sharedModel.getSource());
      if (cell.mimeType !== MIME) other = cell.mimeType;
      const wanted = cuda ? MIME : other;
      if (cell.mimeType !== wanted) cell.mimeType = wanted;
    };
    cell.contentChanged.connect(update);
    cell.mimeTypeChanged.connect(update);
    update();
  }

  /** Do what reset() asks for in the output of a cell that has just run. */
  function obey(_actions, { notebook, cell }) {
    for (const output of cell.model.outputs?.toJSON() ?? []) {
      const asked = output.data?.[RESET];
      if (!asked) continue;
      const first = `%%cuda ${asked.id}\n`;
      for (const other of notebook.model.cells) {
        const text = other.sharedModel.getSource();
        if (`${text}\n`.startsWith(first)) other.sharedModel.setSource(asked.source);
      }
    }
  }

  /** Run a cell again once its notebook has a kernel. While that starts, JupyterLab forgets without
      a word what is run: CodeCell.execute() returns where the session has no kernel yet. */
  function keep(actions, { content, sessionContext }, cell) {
    const starts = !sessionContext.session?.kernel && !sessionContext.hasNoKernel;
    if (cell.model.type !== "code" || !starts) return;
    cell.setPrompt("*");
    const run = () => {
      if (!sessionContext.session?.kernel) return;
      sessionContext.kernelChanged.disconnect(run);
      if (!cell.isDisposed) actions.runCells(content, [cell], sessionContext);
    };
    sessionContext.kernelChanged.connect(run);
  }

  /** Let an element with a picture be enlarged by a click or Enter; then it scrolls, by its own arrow
      keys too. */
  function enlarge(node) {
    node.classList.add("workbook-picture");
    node.tabIndex = 0;
    node.setAttribute("data-lm-suppress-shortcuts", "true");
    const turn = () => node.classList.toggle("workbook-large");
    node.addEventListener("click", turn);
    node.addEventListener("keydown", (event) => event.key === "Enter" && turn());
  }

  /** JupyterLab drops a picture's description, and cuts off what is wider than the page. This says
      the one and shrinks the other. */
  function describe(registry, factory) {
    const createRenderer = (options) => {
      const renderer = factory.createRenderer(options);
      const render = renderer.renderModel.bind(renderer);
      renderer.renderModel = async (model) => {
        await render(model);
        const alt = model.metadata[options.mimeType]?.alt;
        const image = renderer.node.querySelector("img");
        if (!alt || !image) return;
        image.alt = alt;
        enlarge(renderer.node);
      };
      return renderer;
    };
    registry.addFactory({ ...factory, createRenderer });
  }

  /** A picture, and below it what its reader may choose, drawn by interactive.js. */
  function choosing(Widget) {
    const createRenderer = ({ mimeType }) => {
      const widget = new Widget();
      widget.renderModel = async (model) => {
        const svg = model.data["image/svg+xml"];
        const image = new Image();
        image.alt = model.metadata["image/svg+xml"]?.alt ?? "";
        image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
        const picture = document.createElement("div");
        enlarge(picture);
        picture.append(image);
        widget.node.replaceChildren(picture);
        await drawn;
        window.workbook?.draw(mimeType, widget.node, model.data[mimeType]);
      };
      return widget;
    };
    return { safe: true, mimeTypes: INTERACTIVE, defaultRank: 40, createRenderer };
  }

  const beside = (name) => new URL(name, document.currentScript.src);
  const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet" });
  sheet.href = beside("workbook.css");
  document.head.append(sheet);

  /** The scripts beside this one, in their order; without them pictures stand alone. */
  const drawn = Promise.all(
    ["interactive.js", "requests.js", "steps.js"].map(
      (name) =>
        new Promise((resolve) => {
          const script = document.createElement("script");
          script.src = beside(name);
          script.async = false;
          script.onload = script.onerror = resolve;
          document.head.append(script);
        }),
    ),
  );

  /** A link to a place in a notebook opens the notebook, and JupyterLab looks for the place before
      the cells are there. Look again when they are. */
  let wanted; // the fragment of the link that was followed last, and when
  document.addEventListener(
    "click",
    (event) => {
      const link = event.target.closest?.("a[href*='#']");
      if (!link?.href.includes(".ipynb")) return;
      wanted = { hash: new URL(link.href).hash, at: Date.now() };
    },
    true,
  );
  async function go(panel) {
    if (!wanted || Date.now() - wanted.at > 20000) return;
    const { hash } = wanted;
    wanted = undefined;
    await panel.revealed;
    for (const wait of [300, 1000, 2000]) {
      await new Promise((resolve) => setTimeout(resolve, wait));
      if (!panel.isDisposed) panel.content.setFragment?.(hash);
    }
  }

  // JupyterLab's own colours of comments and magics are too dark for its dark theme.
  const STYLE = `
    .jp-NotebookPanel { container-type: inline-size }
    @container (max-width: 800px) {
      .jp-Notebook .jp-Cell { padding-left: 2px; padding-right: 2px }
      .jp-Notebook .jp-InputPrompt, .jp-Notebook .jp-OutputPrompt { flex: 0 0 34px; min-width: 34px;
        padding: 4px 2px 0 0; font-size: 10px; letter-spacing: -0.5px }
      .jp-Notebook .jp-RenderedMarkdown pre { margin: 0.5em 0; padding: 0; font-size: 12px }
      .jp-RenderedHTMLCommon :is(td, th) { padding: 4px }
    }
    [data-jp-theme-light="false"] .jp-Notebook { --jp-mirror-editor-comment-color: #7fb5b5;
      --jp-mirror-editor-meta-color: #c9a0ff }
    .jp-Notebook .jp-RenderedMarkdown :is(pre, pre code) { white-space: pre; overflow-x: auto }
    .jp-RenderedText pre { word-break: normal; overflow-wrap: anywhere }
  `;

  async function createPlugin() {
    const [view, language, codemirror, notebook, rendermime, widgets] = await Promise.all(
      [
        "@codemirror/view",
        "@codemirror/language",
        "@jupyterlab/codemirror",
        "@jupyterlab/notebook",
        "@jupyterlab/rendermime",
        "@lumino/widgets",
      ].map(load),
    );
    return {
      id: "workbook-cuda:plugin",
      description: "CUDA colours for %%cuda cells and .cu files.",
      autoStart: true,
      requires: [
        codemirror.IEditorLanguageRegistry,
        notebook.INotebookTracker,
        rendermime.IRenderMimeRegistry,
      ],
      activate: (app, languages, tracker, registry) => {
        document.head.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
        for (const factory of [rendermime.svgRendererFactory, rendermime.imageRendererFactory]) {
          describe(registry, factory);
        }
        registry.addFactory(choosing(widgets.Widget));
        languages.addLanguage({
          name: "CUDA",
          mime: MIME,
          extensions: ["cu", "cuh"],
          load: async () => {
            const cpp = (await languages.getLanguage("C++")).support;
            const extra = [cpp.support, words(view, language)];
            return new language.LanguageSupport(cpp.language, extra);
          },
        });
        // On a phone the list of files would leave a finger's width for the notebook.
        app.restored.then(() => {
          if (window.innerWidth < 700) app.shell.collapseLeft();
        });
        // Tab completes Python. In CUDA it completes a name that has begun, or else indents, to the
        // next fourth column.
        app.commands.addCommand("workbook-cuda:indent", {
          execute: () => {
            const editor = tracker.activeCell.editor.editor;
            const { state, dispatch } = editor;
            if (complete(editor)) return;
            const { from } = state.selection.main;
            const width = 4 - ((from - state.doc.lineAt(from).from) % 4);
            dispatch(state.replaceSelection(" ".repeat(width)));
          },
        });
        app.commands.addKeyBinding({
          command: "workbook-cuda:indent",
          keys: ["Tab"],
          selector: ".jp-Notebook .jp-CodeMirrorEditor:not(.jp-mod-has-primary-selection) .cm-cuda",
        });
        notebook.NotebookActions.executed.connect(obey);
        notebook.NotebookActions.executed.connect((_actions, { notebook: content, cell }) => {
          const panel = tracker.find((one) => one.content === content);
          if (panel) keep(notebook.NotebookActions, panel, cell);
        });
        tracker.widgetAdded.connect(async (_tracker, panel) => {
          await panel.context.ready;
          go(panel);
          const cells = panel.content.model.cells;
          for (const cell of cells) follow(cell);
          cells.changed.connect((_cells, change) => {
            if (change.type === "add") change.newValues.forEach(follow);
          });
        });
      },
    };
  }

  const container = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const plugin = await createPlugin();
      return () => ({ __esModule: true, default: plugin });
    },
  };
  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["workbook-cuda"] = container;
})();
