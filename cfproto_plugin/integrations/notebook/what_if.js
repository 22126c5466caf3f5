/* Sliders and lists for the features of a row, and what the model says. Elements and percentages are made by dom.js of
   the report, which stands before this text. */
/* A row of the form: the name, the inputs, and where the value comes from. changed(value) is called with a new value. */
function choice(control, changed) {
  const select = el("select", { "aria-label": control.name }, ...control.choices.map((text, at) => el("option", { value: at }, text)));
  select.addEventListener("change", () => changed(Number(select.value)));
  return { inputs: [select], show: (value) => { select.value = value; } };
}

function number(control, changed) {
  const slider = el("input", { type: "range", "aria-label": control.name, min: control.low, max: control.high, step: control.step });
  const exact = el("input", { type: "number", "aria-label": control.name + ", exact value", step: control.whole ? 1 : "any" });
  const show = (value) => {
    exact.value = value === null ? "" : value;
    exact.placeholder = "missing";
    if (value !== null) slider.value = value;
  };
  slider.addEventListener("input", () => {
    const value = Number(slider.valueAsNumber.toPrecision(10));
    show(value);
    changed(value);
  });
  exact.addEventListener("change", () => {
    const typed = exact.valueAsNumber;
    const value = !Number.isFinite(typed) ? control.before : control.whole ? Math.round(typed) : typed;
    show(value);
    changed(value);
  });
  return { inputs: [slider, exact], show };
}

/* Days since 1970; a slider and a date. */
function date(control, changed) {
  const slider = el("input", { type: "range", "aria-label": control.name, min: control.low, max: control.high, step: 1 });
  const exact = el("input", { type: "date", "aria-label": control.name + ", exact date" });
  const show = (value) => {
    exact.value = value === null ? "" : day(value);
    if (value !== null) slider.value = Math.floor(value);
  };
  slider.addEventListener("input", () => { show(slider.valueAsNumber); changed(slider.valueAsNumber); });
  exact.addEventListener("change", () => {
    const value = Number.isFinite(exact.valueAsNumber) ? exact.valueAsNumber / DAY : control.before;
    show(value);
    changed(value);
  });
  return { inputs: [slider, exact], show };
}

const DAY = 24 * 60 * 60 * 1000, MADE = { choice, number, date };
const day = (value) => new Date(value * DAY).toISOString().slice(0, 10);

function render({ model, el: root }) {
  const controls = model.get("controls"), about = model.get("about");
  let values = [...model.get("asked").values], waiting = false, again = false, asks = model.get("asked").number;

  const send = () => {
    if (waiting) { again = true; return; }
    [waiting, again] = [true, false];
    asks += 1;
    said.setAttribute("aria-busy", "true");
    model.set("asked", { number: asks, values: [...values] });
    model.save_changes();
  };

  const parts = controls.map((control, at) => MADE[control.kind](control, (value) => {
    values[at] = value;
    mark();
    send();
  }));
  const set = (side) => {
    values = controls.map((control) => control[side]);
    parts.forEach((part, at) => part.show(values[at]));
    mark();
    send();
  };
  const text = (control, value) => value === null ? "missing"
    : control.kind === "choice" ? control.choices[value] : control.kind === "date" ? day(value) : String(value);
  const rows = controls.map((control, at) => el("div", { class: "cfw-row" }, el("span", { class: "cfw-name" }, control.name),
    el("span", { class: "cfw-inputs" }, ...parts[at].inputs),
    el("span", { class: "cfw-was" }, "was " + text(control, control.before))));
  const mark = () => rows.forEach((row, at) => row.classList.toggle("cfw-changed", values[at] !== controls[at].before));

  const said = el("output", { class: "cfw-said" });
  const fill = el("i", {}), tick = el("b", { title: "before" });
  const track = el("div", { class: "cfw-track", "aria-hidden": "true" }, fill, tick);
  const figure = el("span", { class: "cfw-figure" });
  const show = () => {
    const result = model.get("result");
    said.removeAttribute("aria-busy");
    root.classList.toggle("cfw-other", Boolean(result.other));
    if (result.error) { said.replaceChildren("The model gives no answer: " + result.error); return; }
    said.replaceChildren("The model says ", el("strong", {}, result.label), result.other ? ". Of the row as it is, it says " + about.from + "." : ", as of the row as it is.");
    fill.style.width = 100 * result.proba + "%";
    tick.style.left = 100 * about.before + "%";
    figure.textContent = percent(about.before) + " → " + percent(result.proba);
  };
  const answered = () => {
    if (model.get("result").number === asks) waiting = false;
    show();
    if (again && !waiting) send();
  };
  model.on("change:result", answered);

  const button = (side, label) => {
    const made = el("button", { type: "button" }, label);
    made.addEventListener("click", () => set(side));
    return made;
  };
  root.classList.add("cfw");
  root.addEventListener("keydown", (event) => event.stopPropagation()); /* JupyterLab would take the arrows for itself */
  root.append(el("div", { class: "cfw-head" }, about.row + ": what if?"), said,
    el("div", { class: "cfw-proba" }, el("span", {}, "probability of " + about.to), track, figure), ...rows,
    el("div", { class: "cfw-buttons" }, button("before", "As it is"), button("after", "Counterfactual")));
  parts.forEach((part, at) => part.show(values[at]));
  mark();
  show();
  return () => model.off("change:result", answered);
}

export default { render };
