// @ts-check
// The Stepper's view, as functions. Python joins the files into one ES module, in this order:
//   elements pack search boxes drawing camera graph timeline inspector cards code tools keys sight stepper
// They share one scope, so none imports another; the last one exports. No build step, no dependency.
// What a user's program named goes into the page as text (append, setAttribute), never as HTML.

/** The strokes of the icons, on 16 by 16. @type {Record<string, string>} */
const ICONS = {
  restart: "M3.5 3v10M13 3L6 8l7 5z",
  back: "M11.5 3L4 8l7.5 5z",
  step: "M4.5 3L12 8l-7.5 5z",
  play: "M4 2.5L13 8l-9 5.5z",
  pause: "M5 3v10M11 3v10",
  phase: "M2 8h7M6.5 4.5L10 8l-3.5 3.5M13 3v10",
  problem: "M8 2L14.5 13.5h-13zM8 6.5v3M8 11.4v.3",
  end: "M12.5 3v10M3 3l7 5-7 5z",
  screen: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
  eye: "M1.5 8Q8 1 14.5 8Q8 15 1.5 8zM8 6.3a1.7 1.7 0 1 0 .01 0",
};

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAll(element, attributes);
  element.append(...children);
  return element;
}

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes]
 * @param {...(Node | string)} children
 * @returns {SVGElementTagNameMap[K]}
 */
function createSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAll(element, attributes);
  element.append(...children);
  return element;
}

/**
 * Sets attributes; true is an empty one, false and undefined none.
 * @param {Element} element
 * @param {Record<string, string | number | boolean | undefined>} attributes
 */
function setAll(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Writes a text where it differs: the page is not laid out anew for nothing. @param {Node} node @param {string} text */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** @param {string} name */
function icon(name) {
  return createSvg(
    "svg",
    { class: "al-icon", viewBox: "0 0 16 16", width: 15, height: 15, "aria-hidden": "true" },
    createSvg("path", { d: ICONS[name] }),
  );
}

/**
 * A button with words, and the key that does the same.
 * @param {View} view
 * @param {{icon?: string, words: string, does: string, key?: string, class?: string}} face
 * @param {() => void} press
 */
function createButton(view, face, press) {
  const button = create("button", {
    type: "button",
    class: face.class ?? "al-button",
    title: face.key ? `${face.does} (key ${face.key})` : face.does,
  });
  if (face.icon) button.append(icon(face.icon));
  button.append(create("span", {}, face.words));
  view.listen(button, "click", press);
  return button;
}

/** How many numbers of a sorted list are at most `most`. @param {ArrayLike<number>} sorted @param {number} most */
function countUpTo(sorted, most) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first number of a sorted list above `step`, else its first: a click goes round. @param {number[]} sorted @param {number} step */
function nextIn(sorted, step) {
  return sorted[countUpTo(sorted, step)] ?? sorted[0];
}

const NUMBER = "[-+]?(?:\\d[\\d.]*(?:e[-+]?\\d+)?|nan|inf)";
const NAMED_NUMBER = new RegExp(
  `(= ?|norm |rms |min |max |mean |gains |grad |gradient |starts at |returns |holds )${NUMBER}\\b`,
  "gi",
);

/** Puts ? where a text tells a value. @param {string} text */
function masked(text) {
  return text.replace(NAMED_NUMBER, "$1?");
}
