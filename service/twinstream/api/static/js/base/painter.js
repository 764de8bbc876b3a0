// When to draw. However much comes in, the page redraws a few times a second at most: numbers that flicker cannot
// be read, and a list that moves cannot be clicked. What a person does is answered at once.

const LEAST_MILLISECONDS_APART = 400;
const TOGETHER_MILLISECONDS = 40; // what comes in one go is drawn in one go

export class Painter {
  constructor(draw) {
    this.draw = draw;
    this.drawn = -Infinity;
    this.due = null;
  }

  /** Something has come in: draw it in a moment. No frame is waited for: a hidden tab has a title, too. */
  soon() {
    if (this.due !== null) return;
    const wait = Math.max(TOGETHER_MILLISECONDS, this.drawn + LEAST_MILLISECONDS_APART - performance.now());
    this.due = setTimeout(() => this.now(), wait);
  }

  /** A person has done something: draw at once. */
  now() {
    clearTimeout(this.due);
    this.due = null;
    this.drawn = performance.now();
    this.draw();
  }
}
