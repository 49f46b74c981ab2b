interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/** Runs at most `atOnce` tasks per key at the same time. The others wait: first come, first served. */
export class Limit {
  readonly #atOnce: number;
  readonly #lines = new Map<string, Line>();

  constructor(atOnce = 1) {
    this.#atOnce = atOnce;
  }

  /** Number of tasks that wait for this key. */
  waiting(key: string): number {
    return this.#lines.get(key)?.waiting.length ?? 0;
  }

  /** Waits for a free place. Resolves with the function that releases it, to be called once. Rejects with the reason of `signal`. */
  async enter(key: string, signal?: AbortSignal): Promise<() => void> {
    const line = this.#lines.get(key) ?? { running: 0, waiting: [] };
    this.#lines.set(key, line);
    if (line.running < this.#atOnce) line.running += 1;
    else await placeIn(line, signal);
    return () => this.#release(key, line);
  }

  /** Runs the task when a place is free. */
  async run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const release = await this.enter(key);
    try {
      return await task();
    } finally {
      release();
    }
  }

  /** Passes the place to the next waiting task, so that no later caller takes it. */
  #release(key: string, line: Line): void {
    const next = line.waiting.shift();
    if (next) next();
    else line.running -= 1;
    if (line.running === 0) this.#lines.delete(key);
  }
}

function placeIn({ waiting }: Line, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const enter = () => {
      signal?.removeEventListener('abort', leave);
      resolve();
    };
    const leave = () => {
      waiting.splice(waiting.indexOf(enter), 1);
      reject(signal?.reason);
    };
    waiting.push(enter);
    signal?.addEventListener('abort', leave, { once: true });
  });
}
