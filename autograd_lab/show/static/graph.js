// @ts-check
// The graph pane: drawings of the whole and of what is folded, their boxes to click, find and walk through.

/**
 * @typedef {Part & {show: (at: number) => void, find: (text: string) => void, enter: () => void, leave: () => boolean,
 *   arrange: () => void}} Graph
 */

/** @param {View} view @returns {Graph} */
function buildGraph(view) {
  const { pack } = view;
  const svg = createSvg("svg", {
    class: "al-svg",
    role: "graphics-document",
    "aria-label": "Graph of forward and backward",
  });
  const sheet = create("div", { class: "al-sheet" }, svg);
  const heads = create("div", { class: "al-heads", "aria-hidden": "true" });
  const scroller = create(
    "div",
    {
      class: "al-scroll",
      tabindex: 0,
      role: "group",
      "aria-label": "Graph. Up and Down walk through its boxes, Enter jumps to a box's next step.",
    },
    sheet,
  );
  const crumbs = create("nav", { class: "al-crumbs", "aria-label": "Folds that are open" });
  const element = create("section", { class: "al-graph", "aria-label": "Graph" }, crumbs, heads, scroller);
  let shown = 0;
  let picked = -1;
  let followed = -1;
  let painted = -1; // the step that is shown
  /** @type {Scene} */
  let scene;
  const drawing = () => pack.views[shown];
  const camera = createCamera(view, scroller, sheet, svg, refresh);
  const zooms = create("div", { class: "al-zooms", role: "group", "aria-label": "Zoom" });
  for (const [words, does, factor] of /** @type {[string, string, number][]} */ ([
    ["−", "Zoom out", 0.8],
    ["+", "Zoom in", 1.25],
  ])) {
    const button = createButton(view, { words, does: `${does} (also Ctrl and wheel)`, class: "al-zoom" }, () =>
      camera.scale(factor),
    );
    button.setAttribute("aria-label", does);
    zooms.append(button);
  }
  element.append(create("div", { class: "al-below" }, buildLegend(pack), zooms));

  /** What is drawn follows what is in sight. */
  function refresh() {
    const current = boxAt(view, drawing(), view.step);
    const twins = new Set(current < 0 ? [] : drawing().boxes[current].twins);
    cullScene(view, drawing(), scene, camera.areas(), new Set([picked, current].filter((at) => at >= 0)));
    for (const [at, drawn] of scene.boxes) {
      const marks = [at === current && "al-current", twins.has(at) && "al-twin", at === picked && "al-picked"];
      paintBox(view, drawing(), drawn, at, marks.filter(Boolean).join(" "));
    }
    for (const [at, line] of scene.edges) paintEdge(view, drawing(), line, at);
    placeHeads();
    const outButton = zooms.firstElementChild;
    if (outButton instanceof HTMLButtonElement) outButton.disabled = camera.zoom <= LEAST_ZOOM;
  }

  /** A lane's title stands over the middle of what is in sight of the lane. */
  function placeHeads() {
    [...heads.children].forEach((head, at) => {
      const [from, to] = camera.span(drawing().lanes[at]);
      if (!(head instanceof HTMLElement)) return;
      head.style.left = `${(from + to) / 2}px`;
      head.style.visibility = to - from < 60 ? "hidden" : "visible";
    });
  }

  /** @param {number} at */
  function show(at) {
    shown = at;
    pick(-1);
    followed = -1;
    scene = openScene(view, drawing(), svg);
    heads.replaceChildren(
      ...drawing().lanes.map((lane) => create("span", { class: lane.pass ? "al-b" : "al-f" }, lane.title)),
    );
    camera.load(drawing());
    paint();
  }

  function paint() {
    if (painted !== view.step) picked = -1; // what was found is no longer looked at
    painted = view.step;
    const at = boxAt(view, drawing(), view.step);
    if (at >= 0 && at !== followed) {
      const box = drawing().boxes[at];
      camera.follow([box, ...box.twins.map((twin) => drawing().boxes[twin])]);
    } else if (view.step === 0 && followed !== 0) {
      const { boxes } = drawing();
      const first = boxes.find((box) => box.lane === 0 && box.ops.length) ?? boxes[0];
      camera.follow([first, ...first.twins.map((twin) => boxes[twin])]);
    }
    followed = at;
    refresh();
    paintTurns(view, drawing(), scene);
    paintCrumbs(at);
  }

  /** The way back from a fold, and the way to the current step where it is not drawn here. @param {number} current */
  function paintCrumbs(current) {
    const path = [];
    for (let at = shown; at >= 0; at = pack.views[at].parent) path.unshift(at);
    const outside = current < 0 && /^[onmgb]/.test(pack.steps.subject[view.step] ?? "") ? viewOfStep() : -1;
    const face = `${path}|${outside}`;
    crumbs.hidden = path.length < 2 && outside < 0;
    if (crumbs.dataset.face === face) return;
    crumbs.dataset.face = face;
    crumbs.replaceChildren(
      ...path.map((at) => {
        const words = at === 0 ? "Whole graph" : pack.views[at].title;
        if (at === shown) return create("strong", { "aria-current": "true" }, words);
        return createButton(view, { words: `${words} ›`, does: `Back to ${words}`, key: "Esc", class: "al-link" }, () =>
          show(at),
        );
      }),
    );
    if (outside < 0) return;
    const words = `Step ${view.step} is elsewhere: show it`;
    crumbs.append(
      createButton(view, { words, does: "Show the current step", key: "o", class: "al-link al-there" }, () =>
        show(outside),
      ),
    );
  }

  /** The drawing that has the current step: the widest. */
  function viewOfStep() {
    return pack.views.findIndex((one) => boxAt(view, one, view.step) >= 0);
  }

  /** @param {number} at */
  function press(at) {
    const box = drawing().boxes[at];
    if (box.opens !== undefined) return show(box.opens);
    const next = nextIn(stepsOfBox(view, drawing(), box), view.step);
    if (next !== undefined) return view.go(next);
    view.say(`"${box.label}" has no step of its own${box.note ? `: ${box.note}` : ""}.`);
  }

  /** @param {number} at */
  function pick(at) {
    picked = at;
    setAll(scroller, { "aria-activedescendant": at < 0 ? undefined : boxId(view, at) });
    if (at < 0) return;
    camera.follow([drawing().boxes[at]]);
    refresh();
  }

  view.listen(svg, "click", (event) => {
    const at = event.target.closest("[data-box]")?.dataset.box;
    if (at !== undefined) press(Number(at));
  });
  view.listen(scroller, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[/** @type {string} */ (event.key)];
    const { length } = drawing().boxes;
    if (move && length)
      pick(((picked < 0 ? Math.max(0, boxAt(view, drawing(), view.step)) : picked + move) + length) % length);
    else if (event.key === "Enter" && picked >= 0) press(picked);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    element,
    paint,
    show,
    find(text) {
      if (!text) return view.say("Type a part of a name to find its box.");
      const here = findBox(drawing(), text, picked + 1);
      const where = here >= 0 ? shown : pack.views.findIndex((one) => findBox(one, text, 0) >= 0);
      if (where < 0) {
        pick(-1);
        refresh();
        const labels = new Set(pack.views.flatMap((one) => one.boxes.map((box) => box.label)));
        return view.say(`No box is called "${text}".${nearest(text, [...labels])}`);
      }
      if (where !== shown) show(where);
      pick(here >= 0 ? here : findBox(drawing(), text, 0));
      view.say(`Found "${drawing().boxes[picked].label}". Find again goes to the next one.`);
    },
    enter() {
      const at = picked >= 0 ? picked : boxAt(view, drawing(), view.step);
      const opens = drawing().boxes[at]?.opens;
      if (opens !== undefined) return show(opens);
      const there = viewOfStep();
      if (at < 0 && there >= 0) return show(there);
      view.say("There is nothing folded here. Folds have a second outline.");
    },
    leave() {
      const { parent } = drawing();
      if (picked >= 0) (pick(-1), refresh());
      else if (parent >= 0) show(parent);
      else return false;
      return true;
    },
    arrange() {
      camera.fit();
      followed = -1;
      paint();
    },
  };
}

/** What colours, outlines and marks mean; what a recording lacks is left out. @param {Pack} pack */
function buildLegend(pack) {
  const boxes = pack.views.flatMap((one) => one.boxes);
  /** @type {[string, string, boolean][]} */
  const entries = [
    ["al-op al-done", "forward call ↓", true],
    ["al-node al-done", "backward node ↑", true],
    ["al-leaf al-done", "leaf and its .grad", true],
    ["al-node al-now", "runs now", true],
    ["al-node al-waiting", "waits for more", pack.runs.some((run) => run.expect > 1)],
    ["al-node al-ready", "ready to run", true],
    ["al-node al-later", "not yet run", true],
    ["al-op al-done al-fold", "folded: click opens", boxes.some((box) => box.opens !== undefined)],
    ["al-op al-done al-bad", "NaN or Inf", boxes.some((box) => box.bad !== undefined)],
    ["al-node al-failed", "raised", pack.runs.some((run) => run.error)],
  ];
  return create(
    "ul",
    { class: "al-legend", "aria-label": "Legend" },
    ...entries
      .filter(([, , has]) => has)
      .map(([kind, words]) => create("li", {}, create("i", { class: `al-swatch ${kind}` }), words)),
    ...buildMarkLegend(pack),
  );
}
