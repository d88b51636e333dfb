// @ts-check
// Turns the bytes of a pack into what the view draws, and finds its steps. The format: show/pack.py.

/**
 * @typedef {{name: string, shape: string, dtype: string, lines: string[], bad?: boolean, numbers?: string[][],
 *   pixels?: Pixels, histogram?: {first: number, counts: number[]}}} Card
 * @typedef {{rows: number, cols: number, data: string, scale: string, note: string}} Pixels
 * @typedef {[string, (number | null)[] | null, string | null]} Panel
 * @typedef {{kind: "op" | "node" | "leaf" | "input" | "fold", lane: number, x: number, y: number, w: number, h: number,
 *   label: string, sub: string, tip: string, ops: number[], nodes: number[], tensors: number[], twins: number[],
 *   opens?: number, bad?: number, birth?: number, note?: string}} Box
 * @typedef {{from: number, to: number, kind: "f" | "b", points: number[], times?: number}} Edge
 * @typedef {{from: number, to: number, loss: string, again: boolean, gradient: string, pass: number}} Turn
 * @typedef {{title: string, x: number, width: number, pass: number}} Lane
 * @typedef {{title: string, parent: number, width: number, height: number, lanes: Lane[], boxes: Box[], edges: Edge[],
 *   turns: Turn[]}} Drawing
 * @typedef {{node: number, pass: number, start: number, finish: number, error: boolean, text: string,
 *   arrive: number[], expect: number}} Run
 * @typedef {{name: string, kind: "f" | "b" | "o" | "x", first: number, last: number}} Phase
 * @typedef {{step: number, kind: "accumulate" | "nonfinite" | "optimizer" | "problem", text: string}} Mark
 * @typedef {{version: number, title: string, device: string | null, empty: string | null, hide: string, not_seen: string[],
 *   problems: {step: number | null, text: string}[], phases: Phase[], marks: Mark[],
 *   steps: {subject: string[], text: string[], source: number[], panels: Panel[][]}, cards: Card[],
 *   lines: {file: number, line: number, text: string, steps: number[]}[],
 *   files: {name: string, first: number, text: string[]}[],
 *   ops: {step: number[], text: string[], names: number[][], module: number[]},
 *   nodes: {names: number[][], module: number[]}, runs: Run[],
 *   grads: {tensor: number, changes: [number, string][]}[], views: Drawing[], names: string[], modules: string[]}} Pack
 *
 * @typedef {Object} Index what is found fast in a pack
 * @property {Map<string, number[]>} steps of "o3" (an op) or "7@1" (a node in a pass)
 * @property {Map<string, Run[]>} runs of "7@1"
 * @property {Map<number, [number, string][]>} grads of a leaf
 * @property {Map<number, number>} starts of passes
 *
 * @typedef {Object} Model anywidget's, or that of the page
 * @property {(name: string) => any} get
 * @property {(name: string, value: any) => void} set
 * @property {(event: string, handler: () => void) => void} on
 * @property {(event: string, handler: () => void) => void} off
 * @property {() => void} save_changes
 *
 * @typedef {Object} Part of the view: what is in the page, and how it shows a step
 * @property {HTMLElement} element
 * @property {() => void} paint
 *
 * @typedef {Object} View all parts share it
 * @property {string} id of this view, in the ids of its elements
 * @property {Pack} pack
 * @property {Index} index
 * @property {number} step
 * @property {number} last
 * @property {boolean} hides whether values are hidden until revealed
 * @property {boolean} hidden whether they are hidden now
 * @property {number} size how large the text is, 1 is usual
 * @property {Map<string, number>} widths of lines of boxes, in px
 * @property {CanvasRenderingContext2D | null} [ink] that measures them
 * @property {HTMLElement} root
 * @property {AbortSignal} ended
 * @property {(target: EventTarget, kind: string, handler: (event: any) => void, options?: object) => void} listen
 * @property {(step: number) => void} go
 * @property {() => void} paint
 * @property {(words: string) => void} say
 */

/** Words for what cannot be shown. */
class Unreadable extends Error {}

/**
 * @param {DataView | Uint8Array | null | undefined} held a Bytes trait is a DataView, at some offset
 * @returns {Promise<Pack>}
 */
async function unpack(held) {
  if (!held?.byteLength) throw new Unreadable("There is no recording in this view. Run its cell again.");
  if (typeof DecompressionStream === "undefined") {
    throw new Unreadable(
      "This browser cannot unpack the recording: it has no DecompressionStream. Use Chrome or Edge 80, Firefox 113, Safari 16.4 or newer.",
    );
  }
  const bytes = new Uint8Array(held.buffer, held.byteOffset, held.byteLength).slice();
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  try {
    return JSON.parse(await new Response(inflated).text());
  } catch (error) {
    throw new Unreadable(`The recording in this view is damaged (${error}). Run its cell again.`);
  }
}

/** @param {Pack} pack @returns {Index} */
function indexPack(pack) {
  /** @type {Index} */
  const index = { steps: new Map(), runs: new Map(), grads: new Map(), starts: new Map() };
  pack.steps.subject.forEach((subject, step) => {
    if (/^b\d/.test(subject)) index.starts.set(Number(subject.slice(1)), step);
    if (/^[onmg]/.test(subject)) addTo(index.steps, subjectKey(subject), step);
  });
  for (const run of pack.runs) addTo(index.runs, `${run.node}@${run.pass}`, run);
  for (const grad of pack.grads) index.grads.set(grad.tensor, grad.changes);
  return index;
}

/** "o3" for a call, "7@1" for what node 7 does in pass 1. @param {string} subject */
function subjectKey(subject) {
  return subject[0] === "o" ? subject : subject.slice(1);
}

/** @template T @param {Map<string, T[]>} map @param {string} key @param {T} value */
function addTo(map, key, value) {
  const known = map.get(key);
  if (known) known.push(value);
  else map.set(key, [value]);
}

/** The phase of a step; of step 0 the first. @param {Pack} pack @param {number} step @returns {Phase | undefined} */
function phaseAt(pack, step) {
  return pack.phases.find((phase) => step <= phase.last) ?? pack.phases.at(-1);
}
