/**
 * Detects that another version now serves the files of this page: its answers may have
 * changed under the code that this tab runs.
 */
import { effect, type ReadonlySignal, signal } from '@preact/signals';
import { messageOf } from '../../lib/browser.ts';
import type { Connection } from './stream.ts';

export interface Renewal {
  /** Version that this tab runs. */
  readonly from: string;
  /** Version that serves now. */
  readonly to: string;
}

/**
 * Compares versions whenever the stream connects, as a server of another version is another process. The first connection needs
 * no comparison if no attempt failed: a server that is replaced between the facts of the page and the stream refuses one.
 *
 * @param opened version with which the page was opened; undefined: the first that is read
 * @param read resolves with the version that serves now
 */
export function watchRenewal(
  connection: ReadonlySignal<Connection>,
  opened: () => string | undefined,
  read: () => Promise<string>,
): ReadonlySignal<Renewal | null> {
  const renewal = signal<Renewal | null>(null);
  let from: string | undefined;
  let wasLive = false;
  let isFirst = true;
  effect(() => {
    const { state } = connection.value;
    const live = state === 'live';
    if (live && isFirst) from = opened();
    if (live && !wasLive && !(isFirst && from !== undefined)) {
      read().then(
        (to) => {
          from ??= opened() ?? to;
          renewal.value = to === from ? null : { from, to };
        },
        // The next connection reads the version again.
        (error: unknown) => console.warn(`The version of the server could not be read: ${messageOf(error)}`),
      );
    }
    wasLive = live;
    if (live || state === 'reconnecting') isFirst = false;
  });
  return renewal;
}
