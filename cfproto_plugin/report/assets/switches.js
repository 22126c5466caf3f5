/* Which changes of a card are on, and the stored prediction of that row. A line has every combination ("subsets", by a
   number whose bits are the switches), or the row without each single change ("single"): then at most one can be off.
   The columns of a one-hot group share a switch. */
"use strict";

class Switches {
  constructor(line, data, live) {
    Object.assign(this, { line, data, live, stored: line.what_if, inputs: [] });
    this.number = 1 + Math.max(...this.stored.switches);
    this.on = Array(this.number).fill(true);
    this.all = this.stored.kind === "subsets";
    this.head = this.all ? "on" : "undo";
    this.said = el("output", { class: "whatif" }, this.all ?
      "What if? Untick a change to see what the model says without it." :
      "What if? Choose a change to see what the model says without it.");
    const set = (on, text) => el("button", { type: "button", on: { click: () => this.set(on) } }, text);
    this.buttons = el("div", { class: "buttons" }, set(true, "All changes"), set(false, "No change"));
  }

  cell(at) {
    const feature = this.line.changes[at].feature;
    const input = el("input", { type: this.all ? "checkbox" : "radio", name: this.all ? null : "undo-" + this.line.at,
      "aria-label": (this.all ? "change " : "undo the change of ") + feature, on: { change: () => this.flip(at) } });
    input.checked = this.all;
    this.inputs[at] = input;
    return el("td", { class: "switch" }, input);
  }

  flip(at) {
    const which = this.stored.switches[at];
    if (this.all) this.on[which] = this.inputs[at].checked;
    else this.on = this.on.map((_, other) => other !== which);
    this.show();
  }

  set(on) {
    this.on.fill(on);
    this.show();
  }

  /* The probability of the new class, and the class. */
  prediction(count) {
    const { line, stored } = this;
    if (count === this.number) return [line.after, line.to];
    if (count === 0) return [line.before, line.from];
    const at = this.all ? this.on.reduce((sum, on, which) => sum + (on ? 2 ** which : 0), 0) : this.on.indexOf(false);
    return [stored.proba[at], this.data.classes[stored.class[at]]];
  }

  show() {
    const count = this.on.filter(Boolean).length, [proba, label] = this.prediction(count), { line, inputs } = this;
    inputs.forEach((input, at) => {
      const on = this.on[this.stored.switches[at]];
      input.checked = this.all ? on : !on && count > 0;
      input.closest("tr").classList.toggle("off", !on);
    });
    this.live.show(proba);
    const which = count === this.number ? "With all changes" : count === 0 ? "Without any change"
      : "With " + count + " of " + this.number + " changes";
    const still = label === line.from && count > 0 ? " the model still says " : " the model says ";
    this.said.replaceChildren(which + still, el("b", {}, label), ". The probability of " + line.to + " is " + percent(proba) + ".");
  }
}
