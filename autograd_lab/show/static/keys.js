// @ts-check
// The keyboard: what each key does while the focus is inside, and the panel that lists it.

/** @typedef {{keys: string[], shown: string, words: string, press: () => void}} Key */

/**
 * @param {View} view
 * @param {Moves} moves
 * @param {Graph | null} graph
 * @param {{focus: () => void}} tools
 * @param {{reveal: () => void, grow: (by: number) => void, help: () => void, screen: () => void, escape: () => void}} does
 * @returns {Key[]}
 */
function listKeys(view, moves, graph, tools, does) {
  /** @type {[string[], string, string, () => void][]} */
  const keys = [
    [["ArrowRight"], "→", "step", () => view.go(view.step + 1)],
    [["ArrowLeft"], "←", "back", () => view.go(view.step - 1)],
    [["Home"], "Home", "to the start", () => view.go(0)],
    [["End"], "End", "to the end", () => view.go(view.last)],
    [[" "], "Space", "play or pause", () => moves.play(!moves.playing())],
    [["n"], "n", "next phase or pass", moves.nextPhase],
    [["p"], "p", "next problem: NaN, Inf or error", moves.nextProblem],
    [["/"], "/", "run to or find a name", tools.focus],
    [["o"], "o", "open the fold of this step", () => graph?.enter()],
    [["v"], "v", "reveal or hide values", does.reveal],
    [["+", "="], "+", "larger text", () => does.grow(1)],
    [["-"], "-", "smaller text", () => does.grow(-1)],
    [["f"], "f", "full screen", does.screen],
    [["?"], "?", "this list", does.help],
    [["Escape"], "Esc", "close, or leave a fold", does.escape],
  ];
  return keys.map(([names, shown, words, press]) => ({ keys: names, shown, words, press }));
}

/** Takes keys with the focus inside only, and keeps them from the notebook. @param {View} view @param {Key[]} keys */
function listenToKeys(view, keys) {
  const press = new Map(keys.flatMap((key) => key.keys.map((name) => [name, key.press])));
  view.listen(view.root, "keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const { tagName, type } = event.target;
    const isTyping = (tagName === "INPUT" && type === "text") || tagName === "SELECT";
    if (isTyping && event.key !== "Escape") return event.stopPropagation();
    if (isTyping) view.root.focus({ preventScroll: true });
    if (event.key === " " && tagName === "BUTTON") return event.stopPropagation();
    const act = press.get(event.key);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
}

/** @param {View} view @param {Key[]} keys @param {() => void} close */
function buildHelp(view, keys, close) {
  const rows = [
    ...keys.map(({ shown, words }) => [shown, words]),
    ["↑ ↓ Enter", "in the graph or the source: walk and jump"],
    ["Ctrl wheel", "zoom the graph; drag moves it"],
  ];
  const list = create(
    "dl",
    {},
    ...rows.flatMap(([key, words]) => [create("dt", {}, create("kbd", {}, key)), create("dd", {}, words)]),
  );
  const panel = create(
    "div",
    { class: "al-help", role: "dialog", "aria-label": "Keys", tabindex: -1 },
    create("div", { class: "al-title", role: "heading", "aria-level": 3 }, "Keys"),
    list,
  );
  panel.append(createButton(view, { words: "Close", does: "Close this list", key: "Esc" }, close));
  panel.hidden = true;
  return panel;
}
