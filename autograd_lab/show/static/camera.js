// @ts-check
// Moves the window on a drawing: it scrolls, zooms and follows, and never shrinks text.

const LEAST_ZOOM = 1; // labels have 12 px at zoom 1
const MOST_ZOOM = 3;
const FITTED_ZOOM = 1.6; // for a drawing that fits as a whole
const LOW = 380; // px of a window that has room for few boxes
const LONG_ZOOM = 1.3; // for one that has to be scrolled

/**
 * @typedef {Object} Camera
 * @property {number} zoom
 * @property {(drawing: Drawing) => void} load shows another drawing from its top
 * @property {() => void} fit takes the zoom that fits the width, unless the user chose one
 * @property {(factor: number, clientX?: number, clientY?: number) => void} scale
 * @property {(boxes: Box[]) => void} follow brings the first box in sight, and the others if there is room
 * @property {(lane: Lane) => [number, number]} span what is in sight of a lane, in px from the left
 * @property {() => Area[]} areas what is in sight, with a rim, and what will be when the scrolling ends
 */

/**
 * @param {View} view
 * @param {HTMLElement} scroller
 * @param {HTMLElement} sheet
 * @param {SVGSVGElement} svg
 * @param {() => void} moved
 * @returns {Camera}
 */
function createCamera(view, scroller, sheet, svg, moved) {
  let width = 0;
  let height = 0;
  let zoom = 1;
  let chosen = 0;
  /** @type {{left: number, top: number} | null} */
  let aim = null;
  let awaited = 0;

  const resize = () => {
    setAll(svg, { viewBox: `${-MARGIN} ${TOP} ${width} ${height}`, width: width * zoom, height: height * zoom });
    sheet.style.width = `${width * zoom}px`;
    sheet.style.height = `${height * zoom}px`;
    sheet.style.setProperty("--al-zoom", String(zoom));
  };
  /** @param {number} left @param {number} top */
  const areaAt = (left, top) => {
    const { clientWidth, clientHeight } = scroller;
    const x = (left - sheet.offsetLeft) / zoom - MARGIN;
    const y = top / zoom + TOP;
    const rimX = clientWidth / 2 / zoom;
    const rimY = clientHeight / 2 / zoom;
    return { left: x - rimX, top: y - rimY, right: x + 3 * rimX, bottom: y + 3 * rimY };
  };
  /** @param {number} factor @param {number} [clientX] @param {number} [clientY] */
  const scale = (factor, clientX, clientY) => {
    const bounds = scroller.getBoundingClientRect();
    const atX = (clientX ?? bounds.left + bounds.width / 2) - bounds.left;
    const atY = (clientY ?? bounds.top + bounds.height / 2) - bounds.top;
    const x = (scroller.scrollLeft + atX - sheet.offsetLeft) / zoom;
    const y = (scroller.scrollTop + atY) / zoom;
    chosen = zoom = clamp(zoom * factor, LEAST_ZOOM, MOST_ZOOM);
    resize();
    scroller.scrollTo(x * zoom + sheet.offsetLeft - atX, y * zoom - atY);
    moved();
  };

  view.listen(
    scroller,
    "scroll",
    () => {
      if (!awaited)
        awaited = requestAnimationFrame(() => {
          awaited = 0;
          moved();
        });
    },
    { passive: true },
  );
  view.listen(scroller, "scrollend", () => {
    aim = null;
  });
  view.listen(
    scroller,
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      scale(Math.exp(-event.deltaY * 0.002), event.clientX, event.clientY);
    },
    { passive: false },
  );
  listenToDrag(view, scroller);
  view.ended.addEventListener("abort", () => cancelAnimationFrame(awaited));

  return {
    get zoom() {
      return zoom;
    },
    load(drawing) {
      width = drawing.width + 2 * MARGIN;
      height = drawing.height + FOOT - TOP;
      aim = null;
      chosen = 0;
      this.fit();
      scroller.scrollTo(0, 0);
    },
    fit() {
      if (aim) scroller.scrollTo({ left: scroller.scrollLeft, top: scroller.scrollTop, behavior: "instant" });
      aim = null; // it was in the old scale
      const whole = Math.min(scroller.clientWidth / width, scroller.clientHeight / height, FITTED_ZOOM);
      const long = Math.min(scroller.clientWidth / width, scroller.clientHeight < LOW ? 1 : LONG_ZOOM);
      zoom = chosen || clamp(Math.max(LEAST_ZOOM, whole >= 1 ? whole : long) * view.size, LEAST_ZOOM, MOST_ZOOM);
      resize();
    },
    scale,
    follow(boxes) {
      const left = aimed(
        boxes.map((box) => [box.x, box.x + box.w]),
        MARGIN,
        sheet.offsetLeft,
        aim?.left ?? scroller.scrollLeft,
        scroller.clientWidth,
        true,
      );
      const top = aimed(
        boxes.map((box) => [box.y, box.y + box.h]),
        -TOP,
        0,
        aim?.top ?? scroller.scrollTop,
        scroller.clientHeight,
      );
      const target = {
        left: clamp(left, 0, Math.max(0, scroller.scrollWidth - scroller.clientWidth)),
        top: clamp(top, 0, Math.max(0, scroller.scrollHeight - scroller.clientHeight)),
      };
      if (Math.abs(target.left - scroller.scrollLeft) < 2 && Math.abs(target.top - scroller.scrollTop) < 2) return;
      const isNear = Math.abs(target.top - scroller.scrollTop) < 2 * scroller.clientHeight;
      const { top: above, bottom } = scroller.getBoundingClientRect();
      const isSeen = bottom > 0 && above < innerHeight; // out of sight nothing is scrolled smoothly
      const isSmooth = isNear && isSeen && !matchMedia("(prefers-reduced-motion: reduce)").matches;
      aim = target;
      scroller.scrollTo({ ...target, behavior: isSmooth ? "smooth" : "instant" });
    },
    span(lane) {
      const left = (lane.x + MARGIN) * zoom + sheet.offsetLeft - scroller.scrollLeft;
      return [clamp(left, 0, scroller.clientWidth), clamp(left + lane.width * zoom, 0, scroller.clientWidth)];
    },
    areas() {
      const here = areaAt(scroller.scrollLeft, scroller.scrollTop);
      return aim ? [here, areaAt(aim.left, aim.top)] : [here];
    },
  };

  /**
   * Where to scroll along one axis: nowhere while the first span is well in sight.
   * Across it goes no further than it has to: the other lane stays in sight.
   * @param {number[][]} spans @param {number} before @param {number} shift @param {number} now @param {number} room
   * @param {boolean} [isNearest]
   */
  function aimed(spans, before, shift, now, room, isNearest = false) {
    let [low, high] = spans[0].map((at) => (at + before) * zoom + shift);
    for (const span of spans.slice(1)) {
      const [least, most] = [
        Math.min(low, (span[0] + before) * zoom + shift),
        Math.max(high, (span[1] + before) * zoom + shift),
      ];
      if (most - least < room - 60) [low, high] = [least, most];
    }
    const rim = Math.min(room * 0.18, (room - (high - low)) / 2);
    if (low - now >= rim && high - now <= room - rim) return now;
    if (!isNearest) return (low + high - room) / 2;
    return low - now < rim ? low - rim : high - room + rim;
  }
}

/** @param {number} value @param {number} least @param {number} most */
function clamp(value, least, most) {
  return Math.max(least, Math.min(most, value));
}

/** A drag moves the sheet; it is no click on the box where it ends. @param {View} view @param {HTMLElement} scroller */
function listenToDrag(view, scroller) {
  /** @type {{x: number, y: number, left: number, top: number} | null} */
  let drag = null;
  let wasDragged = false;
  view.listen(scroller, "pointerdown", (event) => {
    wasDragged = false;
    const bounds = scroller.getBoundingClientRect();
    const isOnSheet =
      event.clientX < bounds.left + scroller.clientWidth && event.clientY < bounds.top + scroller.clientHeight;
    if (event.button || event.pointerType === "touch" || !isOnSheet) return;
    drag = { x: event.clientX, y: event.clientY, left: scroller.scrollLeft, top: scroller.scrollTop };
  });
  view.listen(scroller, "pointermove", (event) => {
    if (!drag) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!wasDragged && Math.abs(dx) + Math.abs(dy) < 5) return;
    if (!wasDragged) scroller.setPointerCapture(event.pointerId);
    wasDragged = true;
    scroller.classList.add("al-dragged");
    scroller.scrollTo({ left: drag.left - dx, top: drag.top - dy, behavior: "instant" });
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    view.listen(scroller, kind, () => {
      drag = null;
      scroller.classList.remove("al-dragged");
    });
  }
  view.listen(
    scroller,
    "click",
    (event) => {
      if (wasDragged) event.stopPropagation();
    },
    { capture: true },
  );
}
