import type { TurnPlace, TurnRun } from '../turn/index.ts';

/** Resumes of a turn after which the turns continue one after the other, and the pause between two of them. */
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
   * Lets the turns continue. After several ends of the agent server during one of them, they continue one after the other: so an
   * end is not counted against the other turns.
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

  /** Stops the queue. @returns the turns that have not continued */
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
