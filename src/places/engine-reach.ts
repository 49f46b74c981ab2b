import type { EngineApi } from './engine-api.ts';
import type { ReachListener } from './place.ts';

/** Whether an engine answers. */
export interface EngineReach {
  /** The engine did not answer at some time. */
  readonly wasLost: boolean;
  /** Takes the result of another request to the engine. */
  report(isLost: boolean): void;
  listen(listener: ReachListener): void;
  end(): void;
}

const pingMs = 10_000;

/** Pings an engine until the end. Calls the listeners on each change; until the first report the engine counts as answering. */
export function watchReach(engine: Pick<EngineApi, 'answers'>, everyMs = pingMs): EngineReach {
  const listeners: ReachListener[] = [];
  let isLost = false;
  let wasLost = false;
  let isEnded = false;

  function report(lost: boolean): void {
    wasLost ||= lost;
    if (lost === isLost || isEnded) return;
    isLost = lost;
    for (const listener of listeners) listener(lost);
  }

  const timer = setInterval(() => void engine.answers().then((answers) => report(!answers)), everyMs).unref();
  return {
    get wasLost() {
      return wasLost;
    },
    report,
    listen(listener) {
      listeners.push(listener);
      if (isLost) listener(true);
    },
    end() {
      isEnded = true;
      clearInterval(timer);
    },
  };
}
