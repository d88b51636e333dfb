// @ts-check
// The code pane: the line that made this step; in backward the forward line that made the node.

/** @param {View} view @returns {Part} */
function buildCode(view) {
  const { pack } = view;
  const pane = create("div", {
    class: "al-code",
    role: "group",
    tabindex: 0,
    "aria-label": "Source. Up and Down walk through lines with steps, Enter jumps to a line's next step.",
  });
  /** @type {Map<number, HTMLElement>} */
  const rows = new Map();
  let marked = -1;
  pack.files.forEach((file, at) => {
    pane.append(create("div", { class: "al-file" }, `${file.name}, from line ${file.first}`));
    const known = new Map(pack.lines.flatMap((line, place) => (line.file === at ? [[line.line, place]] : [])));
    file.text.forEach((text, offset) =>
      pane.append(buildRow(known.get(file.first + offset), file.first + offset, text)),
    );
  });
  if (!pack.files.length) pack.lines.forEach((line, place) => pane.append(buildRow(place, line.line, line.text)));
  if (!pane.childElementCount) pane.append(create("p", { class: "al-words al-quiet" }, "No source was recorded."));

  /** @param {number | undefined} place @param {number} number @param {string} text */
  function buildRow(place, number, text) {
    const parts = [create("span", { class: "al-line-number" }, String(number)), create("code", {}, text || " ")];
    if (place === undefined) return create("div", { class: "al-line" }, ...parts);
    const { steps } = pack.lines[place];
    const row = create(
      "button",
      {
        type: "button",
        class: "al-line al-live",
        tabindex: -1,
        title: `Steps ${listed(steps)}: click jumps to the next`,
      },
      ...parts,
    );
    view.listen(row, "click", () => view.go(nextIn(steps, view.step)));
    rows.set(place, row);
    return row;
  }

  view.listen(pane, "keydown", (event) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[/** @type {string} */ (event.key)];
    const all = [...pane.querySelectorAll("button")];
    if (!move || !all.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const from = all.findIndex((row) => row === event.target);
    const current =
      from >= 0
        ? from + move
        : Math.max(
            0,
            all.findIndex((row) => row === rows.get(marked)),
          );
    all[clamp(current, 0, all.length - 1)].focus();
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    element: create("section", { class: "al-source", "aria-label": "Source" }, pane),
    paint() {
      const place = pack.steps.source[view.step] ?? -1;
      const isBackward = phaseAt(pack, view.step)?.kind === "b";
      if (place !== marked) setAll(rows.get(marked) ?? pane, { "aria-current": undefined });
      rows.get(marked)?.classList.remove("al-f", "al-b");
      marked = place;
      const row = rows.get(place);
      if (!row) return;
      row.classList.add(isBackward ? "al-b" : "al-f");
      row.setAttribute("aria-current", "true");
      const top = row.offsetTop; // from the top of the pane, which is positioned
      const isSeen = top > pane.scrollTop + 24 && top + row.offsetHeight < pane.scrollTop + pane.clientHeight - 8;
      if (!isSeen) pane.scrollTop = top - pane.clientHeight / 3;
    },
  };
}

/** @param {number[]} steps */
function listed(steps) {
  return steps.length > 6 ? `${steps.slice(0, 6).join(", ")} and ${steps.length - 6} more` : steps.join(", ");
}
