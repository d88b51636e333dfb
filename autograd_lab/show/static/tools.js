// @ts-check
// The tools: moves and play, text size and screen, run-to and find, and the handle for the height below.

const PLAY_MS = 1000; // between two steps at speed 1x
const SIZES = [1, 1.15, 1.3, 1.5, 1.75, 2];

/**
 * @typedef {Part & {playing: () => boolean, play: (on: boolean) => void, nextPhase: () => void, nextProblem: () => void}} Moves
 * @param {View} view
 * @returns {Moves}
 */
function buildMoves(view) {
  let timer = 0;
  let played = 0; // the step that playing reached: at another one somebody else has moved
  const speed = create(
    "select",
    { class: "al-speed", "aria-label": "Speed", title: "Speed" },
    ...["0.5", "1", "2", "4", "16"].map((times) => create("option", { value: times, selected: times === "1" }, `${times}x`)),
  );
  /** @param {boolean} on */
  const play = (on) => {
    clearInterval(timer);
    timer = 0;
    if (on && view.last) {
      if (view.step >= view.last) view.go(0);
      played = view.step;
      timer = setInterval(() => {
        if (view.step !== played || view.step >= view.last) return play(false);
        played = view.step + 1;
        view.go(played);
        if (played >= view.last) play(false);
      }, PLAY_MS / Number(speed.value));
    }
    playButton.replaceChildren(icon(timer ? "pause" : "play"), create("span", {}, timer ? "Pause" : "Play"));
    playButton.setAttribute("aria-pressed", String(Boolean(timer)));
  };
  const nextPhase = () => {
    const next = view.pack.phases.find((phase) => phase.first > view.step);
    view.go(next ? next.first : view.last);
  };
  const nextProblem = () => {
    const next = problems.find((mark) => mark.step > view.step);
    if (next) view.go(next.step);
    else
      view.say(
        problems.length
          ? "No problem after this step."
          : "This recording has no problem: nothing raised, no NaN, no Inf.",
      );
  };
  /** @type {[string, string, string, string, () => void][]} */
  const faces = [
    ["restart", "Restart", "Go to the start", "Home", () => view.go(0)],
    ["back", "Back", "One step back", "←", () => view.go(view.step - 1)],
    ["step", "Step", "One step forward", "→", () => view.go(view.step + 1)],
    ["play", "Play", "Play or pause", "Space", () => play(!timer)],
    ["phase", "Next phase", "Go to where the next phase or pass starts", "n", nextPhase],
    ["problem", "Next problem", "Go to the next NaN, Inf or error", "p", nextProblem],
    ["end", "End", "Go to the end", "End", () => view.go(view.last)],
  ];
  const buttons = faces.map(([name, words, does, key, press]) =>
    createButton(view, { icon: name, words, does, key }, press),
  );
  const [restart, back, step, playButton, phase, problem, end] = buttons;
  const problems = view.pack.marks.filter((mark) => mark.kind === "nonfinite" || mark.kind === "problem");
  step.classList.add("al-primary");
  playButton.setAttribute("aria-pressed", "false");
  playButton.after(speed);
  view.listen(speed, "change", () => {
    if (timer) play(true);
  });
  view.ended.addEventListener("abort", () => clearInterval(timer));
  return {
    element: create(
      "div",
      { class: "al-row al-moves", role: "toolbar", "aria-label": "Steps" },
      ...buttons.slice(0, 4),
      speed,
      ...buttons.slice(4),
    ),
    playing: () => timer !== 0,
    play,
    nextPhase,
    nextProblem,
    paint() {
      if (timer && view.step !== played) play(false);
      setDisabled([restart, back], view.step <= 0);
      setDisabled([step, phase, end], view.step >= view.last);
      setDisabled([playButton], !view.last);
      setDisabled([problem], !problems.some((mark) => mark.step > view.step));
    },
  };
}

/** Focus stays in the view when its button goes out of use: keys would go to the notebook. @param {HTMLButtonElement[]} buttons @param {boolean} off */
function setDisabled(buttons, off) {
  for (const button of buttons) setAll(button, { "aria-disabled": off ? "true" : undefined });
}

/**
 * @param {View} view
 * @param {Graph | null} graph
 * @param {{reveal: () => void, grow: (by: number) => void, help: () => void, screen: () => void}} does
 * @returns {Part & {finder: HTMLElement, focus: () => void}} the tools, and beside the step's words the search
 */
function buildTools(view, graph, does) {
  const { pack } = view;
  const listId = `al-names-${view.id}`;
  const names = [FIRST_NONFINITE, ...new Set([...pack.names, ...pack.modules.filter(Boolean)])];
  const options = create("datalist", { id: listId }, ...names.map((name) => create("option", { value: name })));
  const field = create("input", {
    type: "text",
    class: "al-field",
    list: listId,
    placeholder: "Name or Mul*",
    "aria-label": "Name of a node, call, variable, leaf or module",
    autocomplete: "off",
    spellcheck: "false",
  });
  const run = () => runTo(view, field.value.trim());
  view.listen(field, "keydown", (event) => {
    if (event.key === "Enter") run();
  });
  const reveal = createButton(
    view,
    { icon: "eye", words: "Reveal", does: "Show the values, or hide them again", key: "v" },
    does.reveal,
  );
  const left = [
    field,
    options,
    createButton(view, { words: "Run to", does: "Go to the next step of this name", key: "/" }, run),
  ];
  if (graph)
    left.push(
      createButton(view, { words: "Find", does: "Find a box of this name, without a step" }, () =>
        graph.find(field.value.trim()),
      ),
    );
  const smaller = createButton(view, { words: "A−", does: "Smaller text", key: "-" }, () => does.grow(-1));
  const larger = createButton(view, { words: "A+", does: "Larger text", key: "+" }, () => does.grow(1));
  smaller.setAttribute("aria-label", "Smaller text");
  larger.setAttribute("aria-label", "Larger text");
  const right = [
    reveal,
    smaller,
    larger,
    createButton(view, { words: "? Keys", does: "List the keys", key: "?" }, does.help),
    createButton(view, { icon: "screen", words: "Full screen", does: "Full screen", key: "f" }, does.screen),
  ];
  return {
    finder: create("div", { class: "al-row al-finder" }, ...left),
    element: create("div", { class: "al-row al-tools" }, ...right),
    focus: () => field.select(),
    paint() {
      setDisabled([smaller], view.size <= SIZES[0]);
      setDisabled([larger], view.size >= SIZES[SIZES.length - 1]);
      reveal.hidden = !view.hides;
      setText(reveal.lastElementChild ?? reveal, view.hidden ? "Reveal" : "Hide values");
    },
  };
}

/** A handle below that changes the height, with the pointer or the arrow keys. @param {View} view */
function buildGrip(view) {
  const grip = create("div", {
    class: "al-grip",
    role: "separator",
    tabindex: 0,
    "aria-orientation": "horizontal",
    "aria-label": "Height",
    title: "Drag to change the height",
    "aria-valuenow": 0,
  });
  /** @param {number} height */
  const resize = (height) => {
    const px = Math.round(clamp(height, 320, 2000));
    view.root.style.setProperty("--al-height", `${px}px`);
    grip.setAttribute("aria-valuenow", String(px));
  };
  view.listen(grip, "pointerdown", (event) => {
    event.preventDefault();
    grip.setPointerCapture(event.pointerId);
  });
  view.listen(grip, "pointermove", (event) => {
    if (grip.hasPointerCapture(event.pointerId)) resize(event.clientY - view.root.getBoundingClientRect().top);
  });
  view.listen(grip, "keydown", (event) => {
    const move = { ArrowDown: 24, ArrowUp: -24 }[/** @type {string} */ (event.key)];
    if (!move) return;
    resize(view.root.offsetHeight + move);
    event.preventDefault();
    event.stopPropagation();
  });
  return grip;
}
