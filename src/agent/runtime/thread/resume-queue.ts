import type { TurnPlace, TurnRun } from '../turn/index.ts';

/** Times that a turn has ended its agent server, after which turns continue one after the other, and the time between two. */
const suspiciousResumes = 2;
const resumeGapMs = 2_000;

/** Turns of an earlier process that have not continued yet. */
export class ResumeQueue {
  readonly #waiting: { readonly run: TurnRun; readonly resumes: number }[] = [];
  #next: NodeJS.Timeout | undefined;

  get places(): readonly TurnPlace[] {
    return this.#waiting.map(({ run }) => run.place);
  }

  /** @param resumes times that the turn has continued before */
  add(run: TurnRun, resumes: number): void {
    this.#waiting.push({ run, resumes });
  }

  /**
   * Lets the turns continue. When one of them has ended its agent server several times, they continue one after the other: so the
   * others are not counted as guilty.
   */
  start(): void {
    for (const { run } of this.#waiting) run.resumeFiles();
    this.#continue(this.#waiting.some(({ resumes }) => resumes >= suspiciousResumes) ? resumeGapMs : 0);
  }

  /** Lets the remaining turns continue at once. */
  finish(): void {
    clearTimeout(this.#next);
    this.#continue(0);
  }

  /** No further turn continues. @returns the turns that have not */
  stop(): ReadonlySet<TurnRun> {
    clearTimeout(this.#next);
    return new Set(this.#waiting.splice(0).map(({ run }) => run));
  }

  #continue(gapMs: number): void {
    const run = this.#waiting.shift()?.run;
    if (!run) return;
    run.begin();
    if (gapMs === 0) {
      this.#continue(0);
      return;
    }
    this.#next = setTimeout(() => {
      run.clearSuspicion();
      this.#continue(gapMs);
    }, gapMs);
  }
}
