// @ts-check
// The inspector: what the current step received and returned, by which rule, and what is saved.

/** @type {Record<string, string>} */
const HEADS = {
  inputs: "Takes",
  outputs: "Returns",
  receives: "Receives",
  rule: "Rule",
  returns: "Returns",
  saved: "Saved tensors",
  torch: "Rule in torch",
  before: "Before",
  added: "Added",
  after: "After",
};

const IN_SYMBOLS = new Set(["rule", "torch"]); // their numbers are no values of this run

/** @param {View} view @returns {Part & {recolour: () => void}} */
function buildInspector(view) {
  const { pack } = view;
  const title = create("div", { class: "al-title", role: "heading", "aria-level": 3 }, "Before anything");
  const body = create("div", { class: "al-panels" });
  const element = create(
    "section",
    { class: "al-inspector", tabindex: 0, "aria-label": "What this step did" },
    title,
    body,
  );
  /** @type {[HTMLCanvasElement, Pixels][]} */
  let maps = [];
  let face = "";

  /** @param {Panel} panel */
  function buildPanel([head, cards, text]) {
    const words = HEADS[head] ?? head.charAt(0).toUpperCase() + head.slice(1);
    const panel = create(
      "div",
      { class: `al-panel al-panel-${head.replaceAll(/\W+/g, "-")}` },
      create("div", { class: "al-panel-head", role: "heading", "aria-level": 4 }, words),
    );
    if (text)
      panel.append(
        ...text
          .split("\n")
          .map((line) =>
            create(
              "p",
              { class: head === "torch" ? "al-formula" : "al-words" },
              view.hidden && !IN_SYMBOLS.has(head) ? masked(line) : line,
            ),
          ),
      );
    if (cards) {
      const built = cards.map((at) => buildCard(at === null ? null : pack.cards[at], view.hidden, maps));
      panel.append(create("div", { class: "al-cards" }, ...built));
    }
    return panel;
  }

  return {
    element,
    paint() {
      const next = `${view.step}|${view.hidden}`;
      if (next === face) return;
      face = next;
      maps = [];
      const panels = pack.steps.panels[view.step] ?? [];
      const phase = phaseAt(pack, view.step);
      const isBackward = view.step > 0 && phase?.kind === "b";
      const text = pack.steps.text[view.step] ?? "";
      setText(title, (view.hidden ? masked(text) : text).replace(/^[^:]*: /, "") || "Before anything");
      title.className = `al-title ${isBackward ? "al-b" : "al-f"}`;
      body.replaceChildren(...panels.map(buildPanel));
      if (!panels.length) body.append(create("p", { class: "al-words al-quiet" }, emptyWords(view)));
      element.scrollTop = 0;
      for (const [canvas, pixels] of maps) paintHeatMap(canvas, pixels);
    },
    recolour() {
      for (const [canvas, pixels] of maps) paintHeatMap(canvas, pixels);
    },
  };
}

/** @param {View} view */
function emptyWords(view) {
  if (!view.last) return "This recording has no steps.";
  if (!view.step) return "Press Step. After a click in here the keys → and ← do the same, and ? lists the others. Each step is one thing that PyTorch did.";
  return "This step carries no numbers.";
}
