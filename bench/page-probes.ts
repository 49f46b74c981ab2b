/** Probes within the page. `browserProbes` is run there before anything else. */

export interface FrameFigures {
  readonly frames: number;
  readonly longestMs: number;
  readonly over100: number;
  /** Tasks over 100 ms, as the browser itself counts them. */
  readonly longTasks: number;
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
      const figures = { frames: 0, longestMs: 0, over100: 0, longTasks: 0 };
      let last = performance.now();
      let isOver = false;
      const observer = new PerformanceObserver((list) => {
        figures.longTasks += list.getEntries().filter(({ duration }) => duration > 100).length;
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
  // From the very beginning: the overview.
  globalThis.probes.whenSeen('.home .part');
}
