import { useLayoutEffect, useRef } from 'preact/hooks';
import type { App } from '../../app/app.ts';
import { copyText } from '../../parts/copy.tsx';
import { jsonOf } from './event-row.tsx';
import type { FirehoseEntry } from './firehose.ts';

/** Actions of the keys in the events view. */
export interface EventActions {
  readonly togglePause: () => void;
  readonly move: (by: number) => void;
  readonly exportLines: () => void;
  readonly chosen: () => FirehoseEntry | null;
  readonly close: () => void;
}

export function useEventKeys(app: App, actions: EventActions): void {
  const latest = useRef(actions);
  latest.current = actions;
  useLayoutEffect(() => {
    const group = 'Events';
    const hasChosen = () => latest.current.chosen() !== null;
    const copyChosen = () => {
      const entry = latest.current.chosen();
      if (entry) copyText(app, jsonOf(entry), 'Event');
    };
    return app.commands.register([
      { id: 'events.pause', title: 'Pause or resume', group, keys: ['p'], run: () => latest.current.togglePause() },
      { id: 'events.next', title: 'Select the next event', group, keys: ['j'], run: () => latest.current.move(1) },
      {
        id: 'events.previous',
        title: 'Select the event before',
        group,
        keys: ['k'],
        run: () => latest.current.move(-1),
      },
      {
        id: 'events.export',
        title: 'Save events as JSON lines',
        group,
        keys: ['x'],
        run: () => latest.current.exportLines(),
      },
      { id: 'events.copy', title: 'Copy the event as JSON', group, keys: ['c'], isEnabled: hasChosen, run: copyChosen },
      {
        id: 'events.close',
        title: 'Close the event',
        group,
        keys: ['Escape'],
        isEnabled: hasChosen,
        run: () => latest.current.close(),
      },
    ]);
  }, [app]);
}
