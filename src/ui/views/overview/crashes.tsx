import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { AnyHubEvent } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { bothTimes, clockTime, distance } from '../../parts/time.ts';

interface CrashesProps {
  readonly app: App;
  readonly path: string;
  /** Time of the last exit; a change fetches the list again. */
  readonly lastExitedAt: string | null;
}

const most = 10;

/** Unrequested exits of the agent server with their reasons, newest first, as far as the Hub holds the events. */
export function Crashes({ app, path, lastExitedAt }: CrashesProps) {
  const crashes = useSignal<readonly AnyHubEvent[]>([]);
  useEffect(() => {
    const abort = new AbortController();
    const query = new URLSearchParams({ path, kind: 'appserver.exited' });
    app.api.get<readonly AnyHubEvent[]>(`/v1/events/recent?${query}`, abort.signal).then(
      (events) => {
        crashes.value = events.filter(({ data }) => data['stopped'] !== true).reverse();
      },
      () => {
        // The list of workspaces reports a Hub that does not answer.
      },
    );
    return () => abort.abort();
  }, [app, path, lastExitedAt]);
  if (crashes.value.length === 0) return null;
  return (
    <section class="whole" aria-label="Crashes">
      <h3>Crashes</h3>
      <ol class="crashes">
        {crashes.value.slice(0, most).map(({ at, data }) => (
          <li key={at}>
            <time class="quiet" title={bothTimes(Date.parse(at))}>
              {clockTime(Date.parse(at))}, {distance(Date.parse(at), app.now.value)}
            </time>{' '}
            {howItEnded(data)}
          </li>
        ))}
      </ol>
    </section>
  );
}

function howItEnded({ signal, exitCode, error }: AnyHubEvent['data']): string {
  if (typeof signal === 'string') return `ended by ${signal}`;
  return typeof exitCode === 'number' ? `exit code ${exitCode}` : String(error ?? 'ended');
}
