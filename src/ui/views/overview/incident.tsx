import { useSignal } from '@preact/signals';
import { visible } from '../../../lib/browser.ts';
import { endWords, placeWords, remedyLabels, spanWords } from '../../../protocol/browser.ts';
import type { Incident, Remedy, ServerExit } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { href } from '../../app/router.ts';
import { CommandLine } from '../../parts/copy.tsx';
import { Skeleton } from '../../parts/empty.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes, clockTime } from '../../parts/time.ts';
import { type Action, readRecord, sendAct } from '../../parts/workspace-acts.ts';

/** Pause between two readings of the report. */
const readEveryMs = 5_000;

/** A view of the Hub's page, from the page of a workspace, too. */
const onHub = (route: Parameters<typeof href>[0]): string => `/${href(route)}`;

/** The first thing on the page of a workspace that is down: its report, and the way to the log, the chart and the Hub. */
export function Down({ app }: { readonly app: App }) {
  const path = app.page.value?.workspacePath ?? '';
  const { host } = app.server;
  const { data, error, at, reload } = useResource(
    (signal) => readRecord(app, host, path, signal),
    [Math.floor(app.now.value / readEveryMs)],
  );
  const isBusy = useSignal(false);
  const start = async () => {
    isBusy.value = true;
    await sendAct(app, 'ensure', { host, canonicalWorkspacePath: path }).catch((fault: Error) => {
      app.toast({ text: fault.message, tone: 'danger', ms: 10_000 });
    });
    isBusy.value = false;
    reload();
  };
  const { incident } = data.value ?? {};
  return (
    <>
      <FaultBanner error={error.value} at={at.value} retry={reload} />
      {incident ? (
        <section class="incident" aria-label="Incident">
          <h1>{incident.what}</h1>
          {incident.note !== null && <p>{incident.note}</p>}
          <Remedies remedies={incident.remedies} host={host} path={path} start={start} isBusy={isBusy.value} />
          <CrashTable exits={incident.exits} host={host} path={path} />
          <p>
            {host === null && <a href={onHub({ view: 'actors', path: [path] })}>State chart</a>} <a href="/">Hub</a>
          </p>
        </section>
      ) : (
        error.value === null && <Skeleton />
      )}
    </>
  );
}

interface RemedyProps {
  /** Machine of the workspace; null: this one. */
  readonly host: string | null;
  readonly path: string;
  readonly start: () => void;
  readonly isBusy: boolean;
}

/** A button for each remedy. */
function Remedies({ remedies, ...props }: RemedyProps & Pick<Incident, 'remedies'>) {
  return (
    <div class="strip">
      {remedies.map((remedy) => (
        <RemedyStep key={remedy.act} remedy={remedy} next={null} {...props} />
      ))}
    </div>
  );
}

/** Action that a remedy ends with. A restart also starts a workspace that is down. */
export const actOf = (remedy: Remedy | undefined): Action => (remedy?.act === 'start' ? 'ensure' : 'restart');

/** A remedy: a button, the place to edit, or a command of the terminal. */
export function RemedyStep({
  remedy,
  next,
  host,
  path,
  start,
  isBusy,
}: RemedyProps & { readonly remedy: Remedy | undefined; readonly next: string | null }) {
  const isOpen = useSignal(false);
  switch (remedy?.act) {
    case 'start':
    case 'restart':
      return (
        <button type="button" class="main" disabled={isBusy} onClick={start}>
          {remedyLabels[remedy.act]}
        </button>
      );
    default:
  }
  // The other buttons would act on this machine.
  if (host !== null)
    return next === null ? null : (
      <>
        On {host}: <CommandLine text={next} />
      </>
    );
  switch (remedy?.act) {
    case 'openLog':
      return (
        <button type="button" onClick={() => location.assign(onHub({ view: 'logs', query: { path } }))}>
          {remedyLabels.openLog}
        </button>
      );
    case 'raiseLimit':
      if (isOpen.value) return <Place {...remedy} />;
      return (
        <button
          type="button"
          onClick={() => {
            isOpen.value = true;
          }}
        >
          {remedyLabels.raiseLimit}
        </button>
      );
    case 'trust':
    case 'login':
      return (
        <a class="button main" href={onHub({ view: 'now', query: { [remedy.act]: path } })}>
          {remedyLabels[remedy.act]}
        </a>
      );
    case 'editSetting':
      return (
        <>
          <Place {...remedy} />
          <button type="button" class="main" disabled={isBusy} onClick={start}>
            {remedyLabels.restart}
          </button>
        </>
      );
    default:
      return next === null ? null : <CommandLine text={next} />;
  }
}

function Place(remedy: Pick<Extract<Remedy, { file: string }>, 'file' | 'line' | 'keyPath'>) {
  return (
    <p>
      Edit {remedy.keyPath === '' ? 'the file' : <code>{remedy.keyPath}</code>} in{' '}
      <code class="place">{visible(placeWords(remedy), { multiline: false })}</code>, then restart.
    </p>
  );
}

interface CrashTableProps {
  readonly exits: readonly ServerExit[];
  readonly host: string | null;
  readonly path: string;
}

/** Ends of processes as a table, the latest first. */
export function CrashTable({ exits, host, path }: CrashTableProps) {
  if (exits.length === 0) return null;
  return (
    <table class="table" aria-label="Crashes">
      <thead>
        <tr>
          <th>When</th>
          <th>Lived</th>
          <th>Ended by</th>
          <th>Last line</th>
          <th>Log</th>
        </tr>
      </thead>
      <tbody>
        {[...exits].reverse().map((exit) => (
          <tr key={exit.at}>
            <td title={bothTimes(Date.parse(exit.at))}>{clockTime(Date.parse(exit.at))}</td>
            <td>{exit.livedMs === null ? '–' : spanWords(exit.livedMs)}</td>
            <td>{endWords(exit)}</td>
            <td>
              <code>{exit.lastLine}</code>
            </td>
            <td>
              {exit.log !== null && host === null && (
                <a href={onHub({ view: 'logs', query: { path, at: exit.at } })}>Show</a>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
