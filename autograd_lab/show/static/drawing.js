// @ts-check
// Draws boxes and lines as SVG: what is in view is in the page, and nothing else.

const MARGIN = 14; // around a drawing, in its units (CSS px at zoom 1)
const TOP = 20; // of a drawing, where its lanes have their titles: these stand above the window on it
const FOOT = 48; // room below for the way from the loss to the first node
const BADGES = {
  birth: "M0 -8L2 -3L7.6 -2.5L3.3 1.2L4.7 6.6L0 3.7L-4.7 6.6L-3.3 1.2L-7.6 -2.5L-2 -3z",
  failed: "M-7 -4L-4 -7L0 -3L4 -7L7 -4L3 0L7 4L4 7L0 3L-4 7L-7 4L-3 0z",
};

/** @typedef {{left: number, top: number, right: number, bottom: number}} Area */
/** @typedef {{group: SVGGElement, second: SVGTextElement, first: SVGTextElement, tip: SVGTitleElement, face: string}} DrawnBox */
/** @typedef {{group: SVGGElement, path: SVGPathElement, times: SVGTextElement | null, kind: string}} DrawnEdge */
/** @typedef {{boxes: Map<number, DrawnBox>, edges: Map<number, DrawnEdge>, boxAreas: Float64Array, edgeAreas: Float64Array,
 *   turns: {turn: Turn, path: SVGPathElement | null, text: SVGTextElement}[], edgeLayer: SVGGElement, boxLayer: SVGGElement}} Scene */

/** The fixed parts of a drawing, and empty layers for its boxes and lines. @param {View} view @param {Drawing} drawing @param {SVGSVGElement} svg @returns {Scene} */
function openScene(view, drawing, svg) {
  const lanes = drawing.lanes.map((lane) =>
    createSvg("rect", {
      class: "al-lane",
      x: lane.x - 8,
      y: TOP,
      width: lane.width + 16,
      height: drawing.height + FOOT - TOP - 6,
      rx: 12,
    }),
  );
  const edgeLayer = createSvg("g", { "aria-hidden": "true" });
  const boxLayer = createSvg("g");
  const turns = drawing.turns.map((turn) => drawTurn(drawing, turn));
  const turnLayer = createSvg("g");
  for (const { path, text } of turns) turnLayer.append(...(path ? [path, text] : [text]));
  svg.replaceChildren(drawHeads(view), ...lanes, edgeLayer, turnLayer, boxLayer);
  return {
    boxes: new Map(),
    edges: new Map(),
    boxAreas: areasOf(drawing.boxes, (box) => [box.x, box.y, box.x + box.w, box.y + box.h]),
    edgeAreas: areasOf(drawing.edges, (edge) => boundsOf(edge.points)),
    turns,
    edgeLayer,
    boxLayer,
  };
}

/** @template T @param {T[]} items @param {(item: T) => number[]} bounds */
function areasOf(items, bounds) {
  const areas = new Float64Array(4 * items.length);
  items.forEach((item, at) => areas.set(bounds(item), 4 * at));
  return areas;
}

/** @param {number[]} points */
function boundsOf(points) {
  const xs = points.filter((_, at) => at % 2 === 0);
  const ys = points.filter((_, at) => at % 2 === 1);
  return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
}

/** The arrowheads; each view has its own ids. @param {View} view */
function drawHeads(view) {
  const heads = ["f", "b", "later"].map((kind) =>
    createSvg(
      "marker",
      {
        id: `al-head-${kind}-${view.id}`,
        viewBox: "0 0 8 8",
        refX: 7.2,
        refY: 4,
        markerWidth: 7.5,
        markerHeight: 7.5,
        markerUnits: "userSpaceOnUse",
        orient: "auto",
      },
      createSvg("path", { class: `al-head al-${kind}`, d: "M0 .4L8 4L0 7.6z" }),
    ),
  );
  return createSvg("defs", {}, ...heads);
}

/**
 * Keeps in the page the boxes and lines that touch one of some areas.
 * @param {View} view
 * @param {Drawing} drawing
 * @param {Scene} scene
 * @param {Area[]} areas
 * @param {Set<number>} kept boxes to keep in any case
 */
function cullScene(view, drawing, scene, areas, kept) {
  cull(
    scene.edgeAreas,
    scene.edges,
    areas,
    new Set(),
    (at) => {
      const line = drawEdge(drawing.edges[at]);
      if (line.times) scene.edgeLayer.append(line.group); // its words stand on the other lines
      else scene.edgeLayer.prepend(line.group);
      return line;
    },
    (line) => line.group.remove(),
  );
  cull(
    scene.boxAreas,
    scene.boxes,
    areas,
    kept,
    (at) => {
      const drawn = drawBox(view, drawing.boxes[at], at);
      scene.boxLayer.append(drawn.group);
      return drawn;
    },
    (drawn) => drawn.group.remove(),
  );
}

/**
 * @template T
 * @param {Float64Array} places
 * @param {Map<number, T>} drawn
 * @param {Area[]} areas
 * @param {Set<number>} kept
 * @param {(at: number) => T} add
 * @param {(item: T) => void} remove
 */
function cull(places, drawn, areas, kept, add, remove) {
  for (let at = 0; at < places.length / 4; at++) {
    const [left, top, right, bottom] = places.subarray(4 * at, 4 * at + 4);
    const isSeen =
      kept.has(at) ||
      areas.some((area) => right >= area.left && left <= area.right && bottom >= area.top && top <= area.bottom);
    const item = drawn.get(at);
    if (isSeen && item === undefined) drawn.set(at, add(at));
    else if (!isSeen && item !== undefined) {
      remove(item);
      drawn.delete(at);
    }
  }
}

/** A line, and beside its first leg how often it is gone. @param {Edge} edge @returns {DrawnEdge} */
function drawEdge({ kind, points, times }) {
  const path = createSvg("path", { d: curve(points) });
  const group = createSvg("g", {}, path);
  if (!times) return { group, path, times: null, kind: "" };
  const [x0, y0, x1, y1] = points;
  const side = kind === "f" ? 1 : -1; // the inner one: lines past boxes run on the outer one
  const text = createSvg("text", { x: (x0 + x1) / 2 + 6 * side, y: (y0 + y1) / 2 + 4 }, `×${times}`);
  text.style.textAnchor = side > 0 ? "start" : "end";
  group.append(text);
  return { group, path, times: text, kind: "" };
}

/** Lines leave and reach boxes straight: vertical tangents at every point. @param {number[]} points */
function curve(points) {
  let [x, y] = points;
  let path = `M${x} ${y}`;
  for (let at = 2; at < points.length; at += 2) {
    const [x1, y1] = [points[at], points[at + 1]];
    const middle = (y + y1) / 2;
    path += Math.abs(x1 - x) < 0.5 ? `L${x1} ${y1}` : `C${x} ${middle} ${x1} ${middle} ${x1} ${y1}`;
    [x, y] = [x1, y1];
  }
  return path;
}

/** @param {View} view @param {Box} box @param {number} at @returns {DrawnBox} */
function drawBox(view, box, at) {
  const tip = createSvg("title");
  const first = createSvg("text", { class: "al-first", x: box.w / 2 });
  const second = createSvg("text", { class: "al-second", x: box.w / 2, y: box.h / 2 + 11.5 });
  const group = createSvg("g", {
    id: boxId(view, at),
    role: "graphics-symbol",
    transform: `translate(${box.x} ${box.y})`,
    "data-box": at,
  });
  if (box.kind === "fold")
    group.append(createSvg("rect", { class: "al-rect", x: 4, y: -4, width: box.w, height: box.h, rx: 7 }));
  group.append(tip, createSvg("rect", { class: "al-rect", width: box.w, height: box.h, rx: 7 }), first, second);
  return { group, first, second, tip, face: "" };
}

/** @param {View} view @param {number} at */
function boxId(view, at) {
  return `al-box-${at}-${view.id}`;
}

/** Shows a box at a step; touches the page only where something differs. @param {View} view @param {Drawing} drawing @param {DrawnBox} drawn @param {number} at @param {string} mark */
function paintBox(view, drawing, drawn, at, mark) {
  const box = drawing.boxes[at];
  const shown = showBox(view, drawing, box, view.step);
  const isFailed = shown.status === "failed";
  const isBirth = shown.birth && !isFailed;
  const kind = box.kind === "fold" ? (box.lane ? "node" : "op") : box.kind;
  const classes = ["al-box", `al-${kind}`, `al-${shown.status}`];
  if (box.kind === "fold") classes.push("al-fold");
  if (shown.bad) classes.push("al-bad");
  if (mark) classes.push(mark);
  const face = `${classes.join(" ")}|${shown.line}|${isBirth}|${view.hidden}`;
  if (face === drawn.face) return;
  drawn.face = face;
  const label = view.hidden ? masked(box.label) : box.label;
  drawn.group.setAttribute("class", classes.join(" "));
  setText(drawn.first, fitted(view, label, box.w - 4, "first"));
  setText(drawn.second, fitted(view, shown.line, box.w - 4, "second"));
  drawn.first.setAttribute("y", String(shown.line ? box.h / 2 - 2.5 : box.h / 2 + 4));
  const words = [
    label,
    shown.line,
    box.note ?? "",
    STATUS_WORDS[shown.status],
    shown.birth ? "NaN or Inf begins here" : shown.bad ? "holds NaN or Inf" : "",
  ];
  if (box.opens !== undefined) words.push("folded: click opens it");
  const said = [...new Set(words)].filter(Boolean).join(", ");
  drawn.group.setAttribute("aria-label", said);
  setText(drawn.tip, `${box.tip}\n${said}`.trim());
  drawn.group.querySelector(".al-badge")?.remove();
  if (isFailed || isBirth) {
    const d = isFailed ? BADGES.failed : BADGES.birth;
    drawn.group.append(createSvg("path", { class: "al-badge", transform: `translate(${box.w + 3} -2)`, d }));
  }
}

/** @param {View} view @param {Drawing} drawing @param {DrawnEdge} line @param {number} at */
function paintEdge(view, drawing, line, at) {
  const edge = drawing.edges[at];
  const kind = isGone(view, drawing, edge, view.step) ? edge.kind : "later";
  if (line.kind === kind) return;
  line.kind = kind;
  setAll(line.path, { class: `al-edge al-${kind}`, "marker-end": `url(#al-head-${kind}-${view.id})` });
  line.times?.setAttribute("class", `al-times al-${kind}`);
}

/** The way from the loss to the first node of a pass, with both numbers. @param {Drawing} drawing @param {Turn} turn */
function drawTurn(drawing, turn) {
  const to = drawing.boxes[turn.to];
  const from = drawing.boxes[turn.from];
  const x1 = to.x + to.w / 2;
  const bottom = Math.max(to.y + to.h, from ? from.y + from.h : 0);
  if (!from || bottom < drawing.height - 60) {
    return { turn, path: null, text: createSvg("text", { x: x1, y: to.y + to.h + 16 }) };
  }
  const x0 = from.x + from.w / 2;
  const low = bottom + 20;
  const d = `M${x0} ${from.y + from.h}V${low - 10}Q${x0} ${low} ${x0 + 10} ${low}H${x1 - 10}Q${x1} ${low} ${x1} ${low - 10}V${to.y + to.h + 2}`;
  return { turn, path: createSvg("path", { d }), text: createSvg("text", { x: turn.again ? x1 : (x0 + x1) / 2, y: low + 17 }) };
}

/** What a pass starts from is told once it is known. @param {View} view @param {Drawing} drawing @param {Scene} scene */
function paintTurns(view, drawing, scene) {
  for (const { turn, path, text } of scene.turns) {
    const isOpen = (view.index.starts.get(turn.pass) ?? Infinity) <= view.step;
    const kind = isOpen ? "b" : "later";
    path?.setAttribute("class", `al-edge al-${kind}`);
    path?.setAttribute("marker-end", `url(#al-head-${kind}-${view.id})`);
    const from = turn.from < 0 ? null : drawing.boxes[turn.from];
    const isKnown = from !== null && /^(now|done)$/.test(tellCalls(view, from, view.step).status);
    const words = [isKnown && turn.loss, isOpen && turn.gradient].filter(Boolean).join(" · ");
    text.setAttribute("class", `al-turn al-${kind}`);
    setText(text, view.hidden ? valueLine(view, masked(words)) : words);
  }
}
