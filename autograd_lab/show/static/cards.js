// @ts-check
// Turns one card into a table of numbers, or a heat map beside a histogram, and statistics in words.

const NEGATIVE = [0, 114, 178];
const POSITIVE = [213, 80, 0];
const NOT_FINITE = [255, 0, 255];

/** @param {Card | null} card @param {boolean} hidden @param {[HTMLCanvasElement, Pixels][]} maps heat maps to paint @returns {HTMLElement} */
function buildCard(card, hidden, maps) {
  if (!card) return create("div", { class: "al-card" }, create("span", { class: "al-quiet" }, "none"));
  const isScalar = card.shape === "scalar";
  const head = create("div", { class: "al-card-head" });
  if (card.name) head.append(create("b", {}, card.name));
  if (card.shape)
    head.append(create("span", { class: "al-quiet" }, [card.shape, card.dtype].filter(Boolean).join(" ")));
  const element = create(
    "div",
    { class: `al-card${card.bad && !hidden ? " al-bad" : ""}${isScalar ? " al-scalar" : ""}` },
    head,
  );
  if (hidden && (card.numbers || card.pixels || card.histogram || card.lines.some((line) => masked(line) !== line))) {
    element.append(create("div", { class: "al-unknown" }, "?"));
    return element;
  }
  if (card.numbers) element.append(buildNumbers(card.numbers, card.name));
  const pictures = create("div", { class: "al-pictures" });
  if (card.pixels) pictures.append(buildHeatMap(card.pixels, card.name, maps));
  if (card.histogram) pictures.append(buildHistogram(card.histogram));
  const place = pictures.childElementCount ? pictures : element;
  if (place === pictures) element.append(pictures);
  if (card.lines.length)
    place.append(create("ul", { class: "al-statistics" }, ...card.lines.map((line) => create("li", {}, line))));
  return element;
}

/** @param {string[][]} rows @param {string} name */
function buildNumbers(rows, name) {
  if (rows.length === 1 && rows[0].length === 1) return create("div", { class: "al-number" }, rows[0][0]);
  const body = create(
    "tbody",
    {},
    ...rows.map((row) =>
      create("tr", {}, ...row.map((cell) => create("td", /nan|inf/i.test(cell) ? { class: "al-bad" } : {}, cell))),
    ),
  );
  return create(
    "div",
    { class: "al-wide" },
    create(
      "table",
      {
        class: rows.length > 1 ? "al-numbers" : "al-numbers al-one",
        "aria-label": `Numbers of ${name || "this tensor"}`,
      },
      body,
    ),
  );
}

/** @param {Pixels} pixels @param {string} name @param {[HTMLCanvasElement, Pixels][]} maps */
function buildHeatMap(pixels, name, maps) {
  const side = Math.max(2, Math.min(14, Math.floor(150 / pixels.cols), Math.floor(110 / pixels.rows)));
  const canvas = create("canvas", {
    class: "al-heat",
    width: pixels.cols,
    height: pixels.rows,
    role: "img",
    "aria-label": `Heat map${name ? ` of ${name}` : ""}, ${pixels.note || `${pixels.rows} by ${pixels.cols}`}, scale ${pixels.scale}`,
  });
  canvas.style.width = `${pixels.cols * side}px`;
  canvas.style.height = `${pixels.rows * side}px`;
  maps.push([canvas, pixels]);
  const bound = pixels.scale.replace("±", "");
  const scale = create(
    "div",
    { class: "al-scale", "aria-hidden": "true" },
    ...(bound === "0" ? ["each of these is 0"] : [`−${bound}`, create("i"), `+${bound}`]),
  );
  return create("figure", {}, canvas, scale, create("figcaption", {}, pixels.note));
}

/** The middle of the scale is the page's background; NaN and Inf are magenta. @param {HTMLCanvasElement} canvas @param {Pixels} pixels */
function paintHeatMap(canvas, pixels) {
  const context = canvas.getContext("2d");
  if (!context) return;
  const middle = (getComputedStyle(canvas).backgroundColor.match(/[\d.]+/g) ?? [255, 255, 255]).map(Number);
  const image = context.createImageData(pixels.cols, pixels.rows);
  const bytes = atob(pixels.data);
  for (let at = 0; at < bytes.length; at++) {
    const value = (bytes.charCodeAt(at) << 24) >> 24;
    const part = Math.abs(value) / 127;
    const end = value === -128 ? NOT_FINITE : value < 0 ? NEGATIVE : POSITIVE;
    for (let channel = 0; channel < 3; channel++) {
      image.data[4 * at + channel] =
        value === -128 ? end[channel] : middle[channel] + (end[channel] - middle[channel]) * part;
    }
    image.data[4 * at + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

/** Elements by the power of two of their size. @param {{first: number, counts: number[]}} histogram */
function buildHistogram({ first, counts }) {
  const most = Math.max(1, ...counts);
  const width = Math.max(3, Math.min(14, Math.floor(150 / counts.length)));
  const bars = counts.map((count, at) => {
    const height = count ? Math.max(1, (68 * count) / most) : 0;
    return createSvg("rect", { class: "al-bar", x: at * width, y: 70 - height, width: width - 1, height });
  });
  const words = `Sizes from 2^${first} to 2^${first + counts.length}; most, ${most} elements, near 2^${first + counts.indexOf(most)}`;
  const svg = createSvg(
    "svg",
    { width: counts.length * width, height: 70, role: "img", "aria-label": words },
    createSvg("title", {}, words),
    ...bars,
  );
  const ends = [first, first + counts.length].map((power) =>
    create("span", {}, "2", create("sup", {}, String(power).replace("-", "−"))),
  );
  return create(
    "figure",
    {},
    svg,
    create("div", { class: "al-axis", "aria-hidden": "true" }, ...ends),
    create("figcaption", {}, "sizes"),
  );
}
