/* What changes in the lines that are shown, how often, and in which direction. */
"use strict";

const SHOWN_FEATURES = 12;

/* Most often first, as e.summary() has it; of equals the larger median change in standard deviations, where a category
   counts as one, then the first column. */
function tally(lines, columns) {
  const found = new Map();
  for (const line of lines) {
    for (const change of line.changes) {
      if (!found.has(change.feature)) found.set(change.feature, { feature: change.feature, count: 0, spare: 0, ways: new Map(), sizes: [], steps: [], unit: "", values: new Map() });
      const entry = found.get(change.feature);
      entry.count += 1;
      if (change.only) entry.spare += 1;
      entry.ways.set(change.direction, (entry.ways.get(change.direction) || 0) + 1);
      if (change.step !== null) {
        entry.steps.push(change.step);
        entry.unit = change.unit;
        if (change.size) entry.sizes.push(Math.abs(change.size));
      }
      entry.values.set(change.after, (entry.values.get(change.after) || 0) + 1);
    }
  }
  const size = (entry) => entry.sizes.length ? median(entry.sizes) : 1;
  const place = new Map(columns.map((column, at) => [column, at]));
  return [...found.values()].sort((a, b) => b.count - a.count || size(b) - size(a) || place.get(a.feature) - place.get(b.feature));
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function most(counts) {
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/* A change with three digits and its sign, as the summary writes it. */
function signed(value) {
  const rounded = Number(value.toPrecision(3)), size = Math.abs(rounded);
  const text = size >= 1e-4 && size < 1e9 ? size.toLocaleString("en", { maximumFractionDigits: 6 }) : size.toExponential();
  return (rounded < 0 ? "−" : "+") + text;
}

/* As e.summary() has it: the median rise and the median fall, each for itself, and the median size; for a category the
   value that most answers take. */
function typical(entry, deviations) {
  const sides = [entry.steps.filter((step) => step > 0), entry.steps.filter((step) => step < 0)];
  const parts = sides.filter((side) => side.length).map((side) => signed(median(side)));
  if (parts.length) {
    const size = deviations && entry.sizes.length ? " (" + Number(median(entry.sizes).toPrecision(2)) + " sd)" : "";
    return parts.join(" or ") + (entry.unit ? " " + entry.unit : "") + size;
  }
  const [first] = most(entry.values);
  return first ? "→ " + first[0] + " (" + first[1].toLocaleString("en") + ")" : "";
}

const SIDES = { higher: "more", later: "more", lower: "less", earlier: "less" };

/* The share of the answers that change a feature, in parts by direction, each with its colour and its words. */
function cohortRow(entry, answers, data, chosen, choose) {
  const ways = most(entry.ways), track = el("div", { class: "track", "aria-hidden": "true" });
  let start = 0;
  for (const [way, count] of ways) {
    track.append(bar(SIDES[way] || "other", start, start + count / answers));
    start += count / answers;
  }
  const button = el("button", { type: "button", class: "link", "aria-pressed": String(chosen === entry.feature),
    on: { click: () => choose(chosen === entry.feature ? "" : entry.feature) } }, entry.feature);
  return el("tr", {}, el("th", { scope: "row" }, button), el("td", { class: "often" }, track),
    el("td", { class: "count" }, entry.count.toLocaleString("en") + " (" + percent(entry.count / answers) + ")", ...spare(entry)),
    el("td", {}, ...ways.flatMap(([way, count], at) => [at ? ", " : "", key(way), count.toLocaleString("en") + "\u00a0" + way])),
    el("td", { class: "dim" }, typical(entry, data.deviations)));
}

/* How many of the changes the class does not need. */
function spare(entry) {
  const which = entry.spare === entry.count ? "none" : entry.spare.toLocaleString("en") + " not";
  return entry.spare ? [el("br"), el("span", { class: "dim" }, which + " needed for the class")] : [];
}

function key(way) {
  return el("span", { class: "key " + (SIDES[way] || "other"), "aria-hidden": "true" });
}

/* Buttons for the changes of class, where there are several: what is higher for one may be lower for another. */
function classButtons(lines, chooseClasses, narrowed) {
  const pairs = new Map();
  for (const line of lines) pairs.set(line.classes, { from: line.from, to: line.to, count: 1 + (pairs.get(line.classes) || { count: 0 }).count });
  if (pairs.size < 2 && !narrowed) return null;
  const buttons = [...pairs].sort((a, b) => b[1].count - a[1].count).slice(0, SHOWN_FEATURES).map(([text, { from, to, count }]) =>
    el("button", { type: "button", on: { click: () => chooseClasses(from, to) } }, text + " (" + count.toLocaleString("en") + ")"));
  const back = narrowed ? el("button", { type: "button", on: { click: () => chooseClasses("", "") } }, "all classes") : null;
  return el("div", { class: "buttons" }, el("span", { class: "dim" }, "Only the change of class:"), ...buttons, back);
}

/* Fill `place` for the lines that are shown. chosen: the feature whose lines are shown, narrowed: whether only some
   classes are. choose: (feature) shows only the lines that change it, chooseClasses: (from, to) only those classes. */
function drawCohort(place, lines, data, { chosen, narrowed, choose, chooseClasses }) {
  const answers = lines.filter((line) => line.changes.length), entries = tally(answers, data.columns);
  if (!entries.length) {
    place.replaceChildren(el("p", { class: "dim" }, "No line that is shown changes a column."));
    return;
  }
  const rows = entries.map((entry) => cohortRow(entry, answers.length, data, chosen, choose));
  const heads = ["feature", "how often it changes", "", "in which direction", "typical change"];
  const table = (some) => el("table", { class: "cohort" },
    el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, ...some));
  const parts = [el("p", { class: "dim" }, "Of " + counted(answers.length, "counterfactual") + ", how many change each feature, and in which direction. Press a feature to see only these."),
    classButtons(answers, chooseClasses, narrowed), table(rows.slice(0, SHOWN_FEATURES))];
  if (rows.length > SHOWN_FEATURES) {
    const rest = folded(counted(rows.length - SHOWN_FEATURES, "more feature"), () => table(rows.slice(SHOWN_FEATURES)));
    rest.open = place.querySelector("details[open]") !== null;
    parts.push(rest);
  }
  place.replaceChildren(...parts.filter(Boolean));
}
