// @ts-check
// Puts the parts of the view together, for anywidget and for the page: the one export.

/** @param {{model: Model, el: HTMLElement}} context @returns {Promise<() => void>} */
async function render({ model, el }) {
  const end = new AbortController();
  const root = create("div", {
    class: "al-stepper",
    role: "group",
    "aria-label": "Autograd stepper",
    tabindex: 0,
    "data-lm-suppress-shortcuts": "true",
  });
  el.append(root);
  try {
    const pack = await unpack(model.get("pack"));
    showPack(model, el, root, pack, end);
  } catch (error) {
    root.replaceChildren(create("p", { class: "al-words al-instead", role: "alert" }, errorWords(error)));
    report(model, error);
  }
  return () => {
    end.abort();
    root.remove();
  };
}

/** @param {unknown} error */
function errorWords(error) {
  return error instanceof Unreadable ? error.message : `The view has an error: ${error}`;
}

/** Tells Python of an error here. @param {Model} model @param {unknown} error */
function report(model, error) {
  model.set("fault", String(error instanceof Error ? (error.stack ?? error) : error));
  model.save_changes();
}

/** @param {Model} model @param {HTMLElement} el @param {HTMLElement} root @param {Pack} pack @param {AbortController} end */
function showPack(model, el, root, pack, end) {
  const last = pack.steps.subject.length - 1;
  const hides = (model.get("hide") ?? pack.hide) === "values";
  /** @type {View} */
  const view = {
    id: Math.random().toString(36).slice(2, 10),
    pack,
    index: indexPack(pack),
    step: clamp(model.get("step") || 0, 0, last),
    last,
    hides,
    hidden: hides,
    size: 1,
    widths: new Map(),
    root,
    ended: end.signal,
    listen: (target, kind, handler, options) =>
      target.addEventListener(kind, guarded(handler), { ...options, signal: end.signal }),
    go: guarded(go),
    paint: guarded(paint),
    say,
  };
  const status = create("div", { class: "al-status", role: "status", "aria-live": "polite" });
  const message = create("div", { class: "al-message", role: "status", "aria-live": "polite", hidden: true });
  const hasGraph = !pack.empty && pack.views.length > 0 && pack.views[0].boxes.length > 0;
  const graph = hasGraph ? buildGraph(view) : null;
  const instead = create("p", { class: "al-words al-instead" }, pack.empty ?? "There is no graph to draw.");
  const does = { reveal, grow, help, screen, escape };
  const moves = buildMoves(view);
  const tools = buildTools(view, graph, does);
  const timeline = buildTimeline(view);
  const inspector = buildInspector(view);
  const code = buildCode(view);
  const keys = listKeys(view, moves, graph, tools, does);
  const helpPanel = buildHelp(view, keys, help);
  const parts = [moves, tools, timeline, inspector, code, ...(graph ? [graph] : [])];
  const grip = buildGrip(view);
  let isShown = false;

  root.append(
    create(
      "div",
      { class: "al-head" },
      create("div", { class: "al-row al-bar" }, moves.element, tools.element),
      timeline.element,
      create("div", { class: "al-row al-bar" }, status, tools.finder),
    ),
    create(
      "div",
      { class: "al-main" },
      message,
      graph ? graph.element : instead,
      create("div", { class: "al-side" }, inspector.element, code.element),
    ),
    grip,
    helpPanel,
  );
  for (const kind of ["keydown", "pointerdown"]) view.listen(root, kind, hush, { capture: true });
  listenToVisits(view);
  listenToKeys(view, keys);
  listenToModel();
  listenToTheme(view, inspector.recolour);
  const sizes = new ResizeObserver(guarded(arrange)); // render() runs before el is in the page: no size yet
  sizes.observe(root);
  end.signal.addEventListener("abort", () => sizes.disconnect());
  if (model.get("height")) root.style.setProperty("--al-height", `${model.get("height")}px`);

  /** @template {any[]} A @param {(...values: A) => void} act @returns {(...values: A) => void} */
  function guarded(act) {
    return (...values) => {
      try {
        act(...values);
      } catch (error) {
        moves?.play(false);
        say(errorWords(error));
        report(model, error);
      }
    };
  }

  function arrange() {
    if (!root.clientWidth) return;
    root.classList.toggle("al-wide-view", root.clientWidth >= 900);
    measureRoom(root);
    if (!isShown) {
      isShown = true;
      graph?.show(0);
      if (hasJustRun(root)) bringInSight(root);
    }
    graph?.arrange();
    timeline.arrange();
    paint();
  }

  /** @param {number} step @param {boolean} [isOwn] whether Python is to know */
  function go(step, isOwn = true) {
    const next = clamp(step, 0, last);
    if (next === view.step) return;
    view.step = next;
    hush();
    if (isShown) paint();
    if (!isOwn) return;
    model.set("step", next);
    model.save_changes();
  }

  function paint() {
    const text = pack.steps.text[view.step] ?? "";
    setText(status, view.hidden ? masked(text) : text);
    for (const part of parts) part.paint();
    el.dataset.step = String(view.step);
    el.dataset.painted = String(performance.now());
  }

  /** Says something until the next step, key or click. @param {string} words */
  function say(words) {
    setText(message, words);
    message.hidden = !words;
  }

  function hush() {
    if (!message.hidden) say("");
  }

  function reveal() {
    if (!view.hides) return say("No values are hidden.");
    view.hidden = !view.hidden;
    paint();
  }

  /** @param {number} by */
  function grow(by) {
    const at = clamp(SIZES.indexOf(view.size) + by, 0, SIZES.length - 1);
    view.size = SIZES[at];
    root.style.setProperty("--al-size", String(view.size));
    arrange();
    say(`Text size ${Math.round(100 * view.size)} %.`);
  }

  function help() {
    helpPanel.hidden = !helpPanel.hidden;
    (helpPanel.hidden ? root : helpPanel).focus({ preventScroll: true });
  }

  function escape() {
    if (!helpPanel.hidden) help();
    else if (!graph?.leave() && root.classList.contains("al-full")) screen();
  }

  function screen() {
    if (document.fullscreenElement) return void document.exitFullscreen();
    if (root.classList.contains("al-full")) return root.classList.remove("al-full");
    const entered = root.requestFullscreen?.() ?? Promise.reject();
    entered.catch(() => root.classList.add("al-full")); // a frame may not be allowed to: fill the window
  }

  function listenToModel() {
    const followModel = guarded(() => {
      if (!moves.playing()) go(Number(model.get("step")) || 0, false);
    });
    const hideAgain = guarded(() => {
      view.hides = view.hidden = model.get("hide") === "values";
      paint();
    });
    const showMessage = guarded(() => {
      say(String(model.get("message") ?? ""));
    });
    const resize = () => root.style.setProperty("--al-height", model.get("height") ? `${model.get("height")}px` : "");
    /** @type {[string, () => void][]} */
    const handlers = [
      ["step", followModel],
      ["hide", hideAgain],
      ["message", showMessage],
      ["height", resize],
    ];
    for (const [name, handler] of handlers) {
      model.on(`change:${name}`, handler);
      end.signal.addEventListener("abort", () => model.off(`change:${name}`, handler));
    }
  }
}

/** Light or dark, as the place around says: JupyterLab, VS Code, Colab, marimo, else the system. */
function themeAround() {
  const { body, documentElement } = document;
  const lab = body.dataset.jpThemeLight;
  if (lab) return lab === "true" ? "light" : "dark";
  const classes = [...body.classList, ...documentElement.classList, documentElement.getAttribute("theme") ?? ""];
  if (classes.some((name) => name === "vscode-light" || name === "light")) return "light";
  if (classes.some((name) => name === "dark" || name === "vscode-dark" || name === "vscode-high-contrast"))
    return "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** @param {View} view @param {() => void} recolour what has colours that CSS does not reach */
function listenToTheme(view, recolour) {
  const apply = () => {
    view.root.dataset.theme = themeAround();
    recolour();
  };
  const changes = new MutationObserver(apply);
  for (const element of [document.body, document.documentElement]) {
    changes.observe(element, {
      attributes: true,
      attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class", "theme"],
    });
  }
  view.listen(matchMedia("(prefers-color-scheme: dark)"), "change", apply);
  view.ended.addEventListener("abort", () => changes.disconnect());
  apply();
}

export default { render };
