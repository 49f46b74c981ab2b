/** Probes within the page. `browserProbes` is run there before anything else. */

export interface FrameFigures {
  readonly frames: number;
  readonly longestMs: number;
  readonly over100: number;
  /** Tasks over 100 ms, as the browser itself counts them. */
  readonly longTasks: number;
  /** Tasks over 50 ms, and the longest of them; 0 without one. */
  readonly tasksOver50: number;
  readonly longestTaskMs: number;
}

interface FrameWatch {
  end(): FrameFigures;
}

declare global {
  var probes: {
    running: FrameWatch | undefined;
    /** Resolves after so many frames. */
    frames(count: number): Promise<void>;
    /** Looks in every frame. */
    until(isThere: () => unknown): Promise<void>;
    /** Milliseconds after the beginning of the navigation at which something was first in the document. */
    whenSeen(selector: string): number | undefined;
    watchFrames(): FrameWatch;
  };
}

/** Sets `probes` up. It is sent to the browser as text, so nothing outside of it may be used. */
export function browserProbes(): void {
  const seen = new Map<string, number>();
  const nextFrame = () => new Promise<number>((resolve) => requestAnimationFrame(resolve));
  globalThis.probes = {
    running: undefined,
    async frames(count) {
      for (let frame = 0; frame < count; frame += 1) await nextFrame();
    },
    async until(isThere) {
      while (!isThere()) await nextFrame();
    },
    whenSeen(selector) {
      if (!seen.has(selector)) {
        seen.set(selector, Number.NaN);
        const look = () => {
          if (document.querySelector(selector)) seen.set(selector, performance.now());
          else requestAnimationFrame(look);
        };
        look();
      }
      const at = seen.get(selector);
      return at === undefined || Number.isNaN(at) ? undefined : at;
    },
    watchFrames() {
      const figures = { frames: 0, longestMs: 0, over100: 0, longTasks: 0, tasksOver50: 0, longestTaskMs: 0 };
      let last = performance.now();
      let isOver = false;
      const observer = new PerformanceObserver((list) => {
        const durations = list.getEntries().map(({ duration }) => duration);
        figures.longTasks += durations.filter((duration) => duration > 100).length;
        figures.tasksOver50 += durations.length;
        figures.longestTaskMs = Math.max(figures.longestTaskMs, ...durations);
      });
      observer.observe({ entryTypes: ['longtask'] });
      const count = (at: number) => {
        if (isOver) return;
        const took = at - last;
        last = at;
        figures.frames += 1;
        figures.longestMs = Math.max(figures.longestMs, took);
        if (took > 100) figures.over100 += 1;
        requestAnimationFrame(count);
      };
      requestAnimationFrame(count);
      return {
        end() {
          isOver = true;
          observer.disconnect();
          return figures;
        },
      };
    },
  };
}

declare global {
  var timers: {
    /** Begins to watch which timers run. */
    watch(): void;
    /** The platform's `setTimeout`, unwatched. */
    pause(ms: number): Promise<void>;
    /** Shortest pause of a timer that has run since, milliseconds; Infinity without one. A frame that was asked for is one of 16. */
    shortest(): number;
  };
}

/** Sets `timers` up; sent to the browser as text like `browserProbes`. */
export function timerProbe(): void {
  const plain = globalThis.setTimeout.bind(globalThis);
  let isWatched = false;
  let shortest = Number.POSITIVE_INFINITY;
  const note = (ms: number) => {
    if (isWatched) shortest = Math.min(shortest, ms);
  };
  for (const name of ['setTimeout', 'setInterval'] as const) {
    const original = globalThis[name].bind(globalThis) as (work: () => void, ms?: number) => number;
    const watched = (work: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
      original(() => {
        note(ms);
        work(...args);
      }, ms);
    Object.assign(globalThis, { [name]: watched });
  }
  const frame = globalThis.requestAnimationFrame.bind(globalThis);
  globalThis.requestAnimationFrame = (work) =>
    frame((at) => {
      note(16);
      work(at);
    });
  globalThis.timers = {
    watch: () => {
      isWatched = true;
      shortest = Number.POSITIVE_INFINITY;
    },
    pause: (ms) => new Promise((resolve) => plain(resolve, ms)),
    shortest: () => shortest,
  };
}
