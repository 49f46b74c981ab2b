import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { messageOf } from '../../../lib/browser.ts';
import type { Automation, AutomationRun } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { href } from '../../app/router.ts';
import { Skeleton } from '../../parts/empty.tsx';
import { duration } from '../../parts/format.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { Mark } from '../../parts/icons.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import { readRuns } from './actions.ts';
import { runLooks, wallClock, zoneOf } from './words.ts';

/** One automation beside the table: its prompt, its next run, and all stored runs. */
export function History({
  app,
  automation,
  onClose,
}: {
  readonly app: App;
  readonly automation: Automation;
  readonly onClose: () => void;
}) {
  const zone = zoneOf(automation);
  return (
    <aside class="drawer" aria-label="Selected automation">
      <header>
        <h2>{automation.name}</h2>
        <button type="button" class="bare" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          <Glyph name="close" />
        </button>
      </header>
      <div class="scroll inside">
        <section>
          <h3>Says to the agent</h3>
          <p class="prompt">{automation.prompt}</p>
          <p class="quiet">
            {automation.scheduleText}
            {zone !== undefined && !automation.scheduleText.includes(zone) && ` · ${zone}`} · {bindingText(automation)}
          </p>
        </section>
        <section>
          <h3>Next</h3>
          {automation.upcoming.length === 0 ? (
            <p class="quiet">It will not run by itself.</p>
          ) : (
            <ol class="upcoming">
              {automation.upcoming.map((at) => (
                <li key={at}>
                  <time dateTime={at} title={bothTimes(Date.parse(at))}>
                    {wallClock(Date.parse(at), zone)}
                  </time>{' '}
                  <span class="quiet">{distance(Date.parse(at), app.now.value)}</span>
                </li>
              ))}
            </ol>
          )}
        </section>
        <Runs app={app} automation={automation} />
      </div>
    </aside>
  );
}

function bindingText({ binding }: Automation): string {
  const texts = {
    new: 'a new conversation each time',
    own: 'always in the same conversation',
    thread: 'in a conversation of the user',
  };
  return texts[binding.mode];
}

function Runs({ app, automation }: { readonly app: App; readonly automation: Automation }) {
  const newest = automation.recentRuns[0];
  const stamp = `${newest?.runId} ${newest?.status} ${newest?.attempt}`;
  const { data, error, at, reload } = useResource(
    (signal) => readRuns(app, automation.id, undefined, signal),
    [automation.id, stamp],
  );
  const older = useSignal<{ readonly runs: readonly AutomationRun[]; readonly next: string | undefined } | null>(null);
  useEffect(() => {
    older.value = null;
  }, [automation.id, stamp]);
  const next = older.value ? older.value.next : data.value?.next;
  const more = async () => {
    if (next === undefined) return;
    try {
      const page = await readRuns(app, automation.id, next);
      older.value = { runs: [...(older.value?.runs ?? []), ...page.data], next: page.next };
    } catch (fault) {
      app.toast({ text: messageOf(fault), tone: 'danger' });
    }
  };
  const runs = [...(data.value?.data ?? []), ...(older.value?.runs ?? [])];
  return (
    <section>
      <h3>Runs</h3>
      <FaultBanner error={error.value} at={at.value} retry={reload} />
      {!data.value && error.value === null && <Skeleton rows={4} />}
      {data.value && runs.length === 0 && <p class="quiet">It has not run yet.</p>}
      <ol class="history">
        {runs.map((run) => (
          <Run key={run.runId} run={run} now={app.now.value} />
        ))}
      </ol>
      {next !== undefined && (
        <button type="button" onClick={() => void more()}>
          Older runs
        </button>
      )}
    </section>
  );
}

function Run({ run, now }: { readonly run: AutomationRun; readonly now: number }) {
  const { word, tone, shape } = runLooks[run.status];
  const at = Date.parse(run.startedAt ?? run.scheduledFor);
  const notes = [
    run.durationMs === undefined ? undefined : duration(run.durationMs),
    run.trigger === 'manual' ? 'by hand' : undefined,
    run.attempt > 1 ? `attempt ${run.attempt}` : undefined,
    run.coalesced > 1 ? `stands for ${run.coalesced} due times` : undefined,
  ].filter((note) => note !== undefined);
  return (
    <li>
      <p class="head-of-run">
        <span class={`pill ${tone}`}>
          <Mark tone={tone} shape={shape} />
          {word}
        </span>
        <time dateTime={new Date(at).toISOString()} title={bothTimes(at)}>
          {distance(at, now)}
        </time>
        <span class="quiet">{notes.join(' · ')}</span>
        {run.threadId !== undefined && (
          <a href={href({ view: 'sessions', path: [run.threadId], query: { turn: run.turnId } })}>Trace</a>
        )}
      </p>
      {run.error && <p class="danger">{run.error.message}</p>}
      {run.result !== undefined && <p class="quiet prompt">{run.result}</p>}
    </li>
  );
}
