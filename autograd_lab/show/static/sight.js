// @ts-check
// Keeps the whole view in sight: how high it may be, and scrolling to it. It never takes the focus by itself.

const LAB_WINDOW = ".jp-WindowedPanel-outer"; // through which JupyterLab shows a notebook

/** Tells the style sheet how high the window on the page is. @param {HTMLElement} root */
function measureRoom(root) {
  const { clientHeight } = root.closest(LAB_WINDOW) ?? document.documentElement;
  root.style.setProperty("--al-room", `${clientHeight}px`);
}

/** @param {HTMLElement} root */
function bringInSight(root) {
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  root.scrollIntoView({ block: "nearest", behavior: isCalm ? "instant" : "smooth" });
}

/** Whether JupyterLab's selection says that the user ran the cell of this view just now. @param {HTMLElement} root */
function hasJustRun(root) {
  const cell = root.closest(".jp-Cell");
  const active = root.closest(".jp-Notebook")?.querySelector(".jp-Cell.jp-mod-active");
  return cell !== null && active !== null && (cell === active || cell.nextElementSibling === active);
}

/** Scrolls to the view when somebody comes to it; after the click, so that the click hits what it aimed at. @param {View} view */
function listenToVisits(view) {
  let isVisit = false;
  view.listen(view.root, "focusin", (event) => {
    isVisit ||= !view.root.contains(event.relatedTarget);
  });
  for (const kind of ["click", "keyup"]) {
    view.listen(view.root, kind, () => {
      if (isVisit) bringInSight(view.root);
      isVisit = false;
    });
  }
}
