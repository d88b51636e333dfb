// @ts-check
// The timeline: phases and passes as a strip, marks above it, and the range input that scrubs.

const THUMB = 16; // px, as wide as the thumb in stepper.css

/** @type {Record<Mark["kind"], {shape: string, words: string}>} */
const MARKS = {
  accumulate: { shape: "M-4 3L0 -4L4 3z", words: ".grad gains" },
  optimizer: { shape: "M0 -5L5 0L0 5L-5 0z", words: "optimizer step" },
  nonfinite: {
    shape: "M0 -6L1.7 -2.1L5.7 -1.8L2.6 .9L3.6 5L0 2.8L-3.6 5L-2.6 .9L-5.7 -1.8L-1.7 -2.1z",
    words: "NaN or Inf begins",
  },
  problem: {
    shape: "M-4.5 -3L-3 -4.5L0 -1.5L3 -4.5L4.5 -3L1.5 0L4.5 3L3 4.5L0 1.5L-3 4.5L-4.5 3L-1.5 0z",
    words: "problem",
  },
};

/** @param {View} view @returns {Part & {arrange: () => void}} */
function buildTimeline(view) {
  const { pack, last } = view;
  const input = create("input", {
    type: "range",
    class: "al-range",
    min: 0,
    max: last,
    step: 1,
    "aria-label": "Timeline",
  });
  const strip = create("div", { class: "al-strip", "aria-hidden": "true" });
  const reached = create("div", { class: "al-reached", "aria-hidden": "true" });
  const marks = createSvg("svg", { class: "al-marks", "aria-hidden": "true" });
  const place = create("output", { class: "al-place" });
  const phases = pack.phases.map((phase) => {
    const segment = create(
      "div",
      { class: `al-phase al-${phase.kind}`, title: `${phase.name}: steps ${phase.first} to ${phase.last}` },
      create("span", {}, phase.name),
    );
    segment.style.left = `${(100 * (phase.first - 1)) / last}%`;
    segment.style.width = `${(100 * (phase.last - phase.first + 1)) / last}%`;
    return segment;
  });
  strip.append(...phases);
  reached.style.backgroundImage = `linear-gradient(to right, ${pack.phases.map(stopOf).join(", ") || "transparent, transparent"})`;
  const element = create(
    "div",
    { class: "al-timeline" },
    create("div", { class: "al-track" }, marks, strip, reached, input),
    create(
      "div",
      { class: "al-where" },
      create("span", { class: "al-device" }, pack.device ? `on ${pack.device}` : ""),
      place,
    ),
  );
  view.listen(input, "input", () => view.go(Number(input.value)));
  view.listen(input, "pointermove", (event) => {
    const bounds = input.getBoundingClientRect();
    const part = (event.clientX - bounds.left - THUMB / 2) / (bounds.width - THUMB);
    const step = clamp(Math.round(part * last), 0, last);
    const words = view.hidden ? masked(pack.steps.text[step]) : pack.steps.text[step];
    if (input.title !== words) input.title = words;
  });

  /** @param {Phase} phase */
  function stopOf(phase) {
    const [from, to] = [phase.first - 1, phase.last].map((step) => `${((100 * step) / last).toFixed(3)}%`);
    return `var(--al-phase-${phase.kind}) ${from} ${to}`;
  }

  return {
    element,
    paint() {
      const text = pack.steps.text[view.step];
      if (input.value !== String(view.step)) input.value = String(view.step);
      input.setAttribute("aria-valuetext", view.hidden ? masked(text) : text);
      reached.style.clipPath = `inset(0 ${100 - (100 * view.step) / Math.max(1, last)}% 0 0)`;
      setText(place, last ? `${view.step} / ${last}` : "");
    },
    arrange() {
      const width = strip.clientWidth;
      setAll(marks, { viewBox: `${-THUMB / 2} 0 ${width + THUMB} 14`, width: width + THUMB, height: 14 });
      marks.replaceChildren(...drawMarks(pack.marks, width / Math.max(1, last)));
      for (const segment of phases) {
        const words = segment.firstElementChild?.getBoundingClientRect().width ?? 0;
        segment.classList.toggle("al-narrow", words + 8 > segment.clientWidth);
      }
    },
  };
}

/** One path for each kind: a recording may have a thousand marks. @param {Mark[]} marks @param {number} pace */
function drawMarks(marks, pace) {
  return Object.entries(MARKS).map(([kind, { shape }]) => {
    const places = marks.filter((mark) => mark.kind === kind).map((mark) => (mark.step * pace).toFixed(1));
    const d = [...new Set(places)].map((x) => moved(shape, Number(x), 7)).join("");
    return createSvg("path", { class: `al-mark al-mark-${kind}`, d });
  });
}

/** A path of absolute M and L moved by x and y. @param {string} path @param {number} x @param {number} y */
function moved(path, x, y) {
  return path.replace(
    /(-?[\d.]+) (-?[\d.]+)/g,
    (_, left, top) => `${(Number(left) + x).toFixed(1)} ${(Number(top) + y).toFixed(1)}`,
  );
}

/** What the marks mean, for those that there are. @param {Pack} pack */
function buildMarkLegend(pack) {
  const kinds = Object.entries(MARKS).filter(([kind]) => pack.marks.some((mark) => mark.kind === kind));
  return kinds.map(([kind, { shape, words }]) => {
    const mark = createSvg("path", { class: `al-mark al-mark-${kind}`, d: shape });
    return create(
      "li",
      {},
      createSvg("svg", { viewBox: "-7 -7 14 14", width: 13, height: 13, "aria-hidden": "true" }, mark),
      words,
    );
  });
}
