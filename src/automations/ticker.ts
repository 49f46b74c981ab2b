import { fromCallback } from 'xstate';
import type { SchedulerEvent, TickerCommand } from '../../machines/index.ts';
import { defaults } from '../protocol/index.ts';
import type { Clock } from './clock.ts';

/** A clock that is corrected by less than this was not set back. */
export const setBackMs = 1_000;

/**
 * One timer, to the next due time but never longer than a tick: a timer knows nothing of the wall clock, sleeps with the
 * laptop, and fires at once when it is set to longer than 2^31 − 1 milliseconds.
 *
 * @param nextAt the next due time; null without one
 */
export const tickerOf = (clock: Clock, nextAt: () => number | null) =>
  fromCallback<TickerCommand>(({ sendBack, receive }) => {
    let timer: unknown;
    let lastAt = clock.now();
    const look = () => {
      clock.clearTimeout(timer);
      const at = clock.now();
      const wentBack = at < lastAt - setBackMs;
      lastAt = at;
      sendBack({ type: 'TICK', at, wentBack } satisfies SchedulerEvent);
    };
    const arm = () => {
      clock.clearTimeout(timer);
      const wait = (nextAt() ?? Number.POSITIVE_INFINITY) - clock.now();
      timer = clock.setTimeout(
        look,
        Math.min(Math.max(wait, defaults.automations.slackMs), defaults.automations.tickMs),
      );
    };
    receive(({ type }) => (type === 'LOOK' ? look() : arm()));
    look();
    return () => clock.clearTimeout(timer);
  });
