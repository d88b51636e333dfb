// @ts-check
// Finds the step that a name leads to, by the rules of Cursor.run_until.

const FIRST_NONFINITE = "first NaN or Inf";

/** Names that equal or match a glob; case is ignored only where nothing fits. @param {string} pattern @param {string[]} names @returns {Set<number>} */
function matching(pattern, names) {
  for (const flags of ["", "i"]) {
    const glob = new RegExp(`^${pattern.split("*").map(globPart).join(".*")}$`, flags);
    const found = names.flatMap((name, at) => (name === pattern || glob.test(name) ? [at] : []));
    if (found.length) return new Set(found);
  }
  return new Set();
}

/** @param {string} part */
function globPart(part) {
  return part.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("?", ".");
}

/**
 * The steps at which a call or node of this name, or in this module, starts.
 * @param {Pack} pack
 * @param {string} wanted
 * @returns {number[]}
 */
function stepsNamed(pack, wanted) {
  if (wanted.toLowerCase() === FIRST_NONFINITE.toLowerCase() || wanted.toLowerCase() === "nan") {
    return pack.marks
      .filter((mark) => mark.kind === "nonfinite")
      .map((mark) => mark.step)
      .slice(0, 1);
  }
  const named = matching(wanted, pack.names);
  if (named.size) return stepsOf(pack, (table, id) => table.names[id].some((name) => named.has(name)));
  const modules = pack.modules.map((module, at) => [module, at]);
  const wantedModules = matching(wanted, pack.modules);
  const inside = new Set(
    modules.flatMap(([module, at]) => {
      const around = [...wantedModules].map((one) => pack.modules[one]);
      return around.some((outer) => module === outer || outer === "" || String(module).startsWith(`${outer}.`))
        ? [at]
        : [];
    }),
  );
  return stepsOf(pack, (table, id) => inside.has(table.module[id]));
}

/** @param {Pack} pack @param {(table: {names: number[][], module: number[]}, id: number) => boolean} fits @returns {number[]} */
function stepsOf(pack, fits) {
  return pack.steps.subject.flatMap((subject, step) => {
    if (subject[0] === "o") return fits(pack.ops, Number(subject.slice(1))) ? [step] : [];
    return subject[0] === "n" && fits(pack.nodes, parseInt(subject.slice(1))) ? [step] : [];
  });
}

/**
 * Runs to the next step that a name leads to, and says where none does.
 * @param {View} view
 * @param {string} written
 */
function runTo(view, written) {
  const wanted = written.replace(/ \+=$/, ""); // as texts write x.grad +=
  if (!wanted) return view.say("Type a node, call, variable, leaf or module to run to, such as Mul* or loss.");
  const found = stepsNamed(view.pack, wanted);
  const next = found.find((step) => step > view.step);
  if (next !== undefined) return view.go(next);
  if (found.length) return view.say(`No later step has "${wanted}": it was last at step ${found.at(-1)}. Go back first.`);
  if (wanted.toLowerCase() === FIRST_NONFINITE.toLowerCase())
    return view.say("No step of this recording has a NaN or an Inf.");
  const like = nearest(wanted, [...view.pack.names, ...view.pack.modules]);
  view.say(`Nothing in this recording is called "${wanted}".${like}`);
}

/** A sentence with names that hold the text, or its beginning; else with some that there are. @param {string} wanted @param {string[]} names */
function nearest(wanted, names) {
  const text = wanted.toLowerCase().replaceAll(/[*?]/g, "");
  for (let length = text.length; length >= 2; length--) {
    const found = names.filter((name) => name.toLowerCase().includes(text.slice(0, length)));
    if (found.length) return ` Nearest names: ${found.slice(0, 5).join(", ")}.`;
  }
  const isInner = (/** @type {string} */ name) => Number(/Backward\d*$|^AccumulateGrad$/.test(name));
  const plain = names.filter((name) => name && !/[.:]/.test(name));
  const some = plain.sort((one, other) => isInner(one) - isInner(other)).slice(0, 9); // variables and calls first
  return some.length ? ` Names here: ${some.join(", ")}.` : "";
}

/** The place of the first box, from a place on, whose words hold a text. @param {Drawing} drawing @param {string} text @param {number} from */
function findBox(drawing, text, from) {
  const wanted = text.toLowerCase().replaceAll(/[*?]/g, "");
  const count = drawing.boxes.length;
  for (let offset = 0; offset < count; offset++) {
    const at = (from + offset) % count;
    const { label, sub, tip } = drawing.boxes[at];
    if (`${label}\n${sub}\n${tip}`.toLowerCase().includes(wanted)) return at;
  }
  return -1;
}
