// @ts-check
// Turns a box and a step into where it stands in time and what its second line says.

/** @typedef {"later" | "waiting" | "ready" | "now" | "done" | "failed"} Status */
/** @typedef {"first" | "second"} Line of a box: bold and monospace, or not */
/** @typedef {{status: Status, line: string, bad: boolean, birth: boolean}} Shown */

/** @type {Record<Status, string>} */
const STATUS_WORDS = {
  later: "has not run yet",
  waiting: "waits for more gradients",
  ready: "has all its gradients, runs soon",
  now: "runs now",
  done: "done",
  failed: "raised",
};

/** @param {View} view @param {Drawing} drawing @param {Box} box @param {number} step @returns {Shown} */
function showBox(view, drawing, box, step) {
  const isBad = box.bad !== undefined && box.bad <= step;
  const isBirth = box.birth !== undefined && box.birth <= step;
  const told = tell(view, drawing, box, step);
  const line = view.hidden ? masked(told.line) : told.line;
  return { status: told.status, line, bad: isBad, birth: isBirth };
}

/** @param {View} view @param {Drawing} drawing @param {Box} box @param {number} step @returns {{status: Status, line: string}} */
function tell(view, drawing, box, step) {
  const pass = drawing.lanes[box.lane].pass;
  if (pass) return tellNodes(view, box, pass, step);
  if (box.ops.length) return tellCalls(view, box, step);
  return { status: "done", line: leafLine(view, box, step) };
}

/** @param {View} view @param {Box} box @param {number} step @returns {{status: Status, line: string}} */
function tellCalls(view, box, step) {
  const { ops } = view.pack;
  const done = box.ops.filter((op) => ops.step[op] && ops.step[op] <= step).length;
  const isNow = box.ops.includes(subjectId(view, "o", step));
  const status = isNow ? "now" : done === box.ops.length ? "done" : "later";
  if (box.ops.length > 1) return { status, line: partLine(box, done, box.ops.length) };
  return { status, line: (done && valueLine(view, ops.text[box.ops[0]])) || box.sub };
}

/** @param {View} view @param {Box} box @param {number} pass @param {number} step @returns {{status: Status, line: string}} */
function tellNodes(view, box, pass, step) {
  const runs = runsOf(view, box, pass, step);
  const done = runs.filter((run) => run.finish && run.finish <= step).length;
  const failed = runs.find((run) => run.error && run.start <= step && !run.finish);
  const open = runs.find((run) => run.start <= step && run.finish > step);
  const subject = view.pack.steps.subject[step];
  const isNow =
    /^[nmg]/.test(subject) && box.nodes.includes(parseInt(subject.slice(1))) && subject.endsWith(`@${pass}`);
  /** @type {Status} */
  const status = failed ? "failed" : isNow || open ? "now" : done === box.nodes.length ? "done" : "later";
  if (box.nodes.length > 1) return { status, line: partLine(box, done, box.nodes.length) };
  const [run] = runs;
  if (!run || status !== "later") {
    return { status, line: (run && run.start <= step && valueLine(view, run.text)) || box.sub };
  }
  const arrived = countUpTo(run.arrive, step);
  if (!arrived || (run.start && run.start <= step)) return { status, line: box.sub };
  if (run.expect === 1) return { status: "ready", line: box.sub };
  const short = `${arrived} of ${run.expect}`;
  const words = `${short} gradients`;
  return { status: arrived < run.expect ? "waiting" : "ready", line: isFitting(view, words, box.w) ? words : short };
}

/** Whether a line has been gone along: a call took the tensor, a node sent the gradient. @param {View} view @param {Drawing} drawing @param {Edge} edge @param {number} step */
function isGone(view, drawing, edge, step) {
  const source = drawing.boxes[edge.from];
  const pass = drawing.lanes[source.lane].pass;
  if (!pass) return /^(now|done)$/.test(tellCalls(view, drawing.boxes[edge.to], step).status);
  return runsOf(view, source, pass, step).filter((run) => run.finish && run.finish <= step).length === source.nodes.length;
}

/** The newest run of each node in a pass. @param {View} view @param {Box} box @param {number} pass @param {number} step @returns {Run[]} */
function runsOf(view, box, pass, step) {
  return box.nodes.flatMap((node) => {
    const runs = view.index.runs.get(`${node}@${pass}`) ?? [];
    const run = runs.findLast((one) => one.start && one.start <= step) ?? runs[0];
    return run ? [run] : [];
  });
}

/** @param {Box} box @param {number} done @param {number} all */
function partLine(box, done, all) {
  return done && done < all ? `${done} of ${all}` : box.sub;
}

/** @param {View} view @param {Box} box @param {number} step */
function leafLine(view, box, step) {
  const changes = view.index.grads.get(box.tensors[0]) ?? [];
  const change = changes.findLast(([at]) => at <= step);
  const told = valueLine(view, change?.[1]);
  const choices = [told, box.note, box.note && "no grad", box.sub];
  return choices.find((one) => one && isFitting(view, one, box.w)) ?? box.sub;
}

/** A value in words, or ? while values are hidden. @param {View} view @param {string | undefined} text */
function valueLine(view, text) {
  if (!text) return "";
  return view.hidden ? text.replace(/[-+]?(\d[\d.]*(e[-+]?\d+)?|nan|inf)\b.*/i, "?") : text;
}

/** The number of the call of a step, else -1. @param {View} view @param {string} kind @param {number} step */
function subjectId(view, kind, step) {
  const subject = view.pack.steps.subject[step];
  return subject[0] === kind ? Number(subject.slice(1)) : -1;
}

/** Where a step's subject is drawn: the place of its box, else -1. @param {View} view @param {Drawing} drawing @param {number} step */
function boxAt(view, drawing, step) {
  const subject = view.pack.steps.subject[step] ?? "";
  if (subject[0] === "o") {
    const op = Number(subject.slice(1));
    return drawing.boxes.findIndex((box) => drawing.lanes[box.lane].pass === 0 && box.ops.includes(op));
  }
  if (/^[nmg]/.test(subject)) {
    const [node, pass] = subject.slice(1).split("@").map(Number);
    return drawing.boxes.findIndex((box) => drawing.lanes[box.lane].pass === pass && box.nodes.includes(node));
  }
  if (subject[0] === "b") return drawing.turns.find((turn) => turn.pass === Number(subject.slice(1)))?.to ?? -1;
  return -1;
}

/** All steps of a box, in order. @param {View} view @param {Drawing} drawing @param {Box} box @returns {number[]} */
function stepsOfBox(view, drawing, box) {
  const { pass } = drawing.lanes[box.lane];
  const keys = pass ? box.nodes.map((node) => `${node}@${pass}`) : box.ops.map((op) => `o${op}`);
  const own = keys.flatMap((key) => view.index.steps.get(key) ?? []);
  const gained = box.tensors.flatMap((tensor) => (view.index.grads.get(tensor) ?? []).map(([step]) => step));
  return [...new Set([...own, ...gained])].filter((step) => step > 0).sort((one, other) => one - other);
}

/** How many px a line of a box takes. @param {View} view @param {string} text @param {Line} line */
function widthOf(view, text, line) {
  const known = view.widths.get(line + text);
  if (known !== undefined) return known;
  const ink = (view.ink ??= create("canvas").getContext("2d"));
  if (!ink) return 7.25 * text.length;
  const family = getComputedStyle(view.root).getPropertyValue(line === "first" ? "--al-mono" : "--al-sans");
  ink.font = `${line === "first" ? "600 " : ""}12px ${family}`;
  const { width } = ink.measureText(text);
  view.widths.set(line + text, width);
  return width;
}

/** @param {View} view @param {string} text a second line @param {number} width of a box */
function isFitting(view, text, width) {
  return widthOf(view, text, "second") <= width - 4;
}

/** A text that fits; its end goes where it does not. @param {View} view @param {string} text @param {number} room @param {Line} line */
function fitted(view, text, room, line) {
  if (widthOf(view, text, line) <= room) return text;
  let most = text.length - 1;
  while (most > 1 && widthOf(view, `${text.slice(0, most)}…`, line) > room) most--;
  return `${text.slice(0, most)}…`;
}
