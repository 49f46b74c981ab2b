import type { ComponentChildren } from 'preact';
import { useEffect, useId, useMemo } from 'preact/hooks';
import { dollars, visible } from '../../../lib/browser.ts';
import { hostedName, moreProblems } from '../../../protocol/browser.ts';
import type { FleetList, FleetThreadList, HostRecord } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { href } from '../../app/router.ts';
import { Skeleton } from '../../parts/empty.tsx';
import { Mark } from '../../parts/icons.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import { lookOfTone } from '../../parts/tone.ts';
import { Requests } from '../inbox/index.tsx';
import { createInbox } from '../inbox/store.ts';
import { Acts } from '../overview/acts.tsx';
import { actOf, RemedyStep } from '../overview/incident.tsx';
import { Problems } from '../overview/problems.tsx';
import { useStopQuestion } from '../overview/stop-question.tsx';
import { Answering, AsOf, capital, LastTurn } from '../overview/words.tsx';
import { nameOf, type Shown, troubleOf, type Workspaces, workspacesOf } from '../overview/workspaces.ts';
import { counted } from '../sessions/words.ts';
import { nameOf as nameOfThread } from '../threads/index.tsx';
import { AddWorkspace } from './add.tsx';
import { KeyDialog } from './key.tsx';
import { TrustDialog } from './trust.tsx';
import '../overview/overview.css';
import './now.css';

/** Most rows of a band; the list of all workspaces has the others. */
const maxRows = 50;
/** Pause between two readings of times and states of running turns, which no event reports. */
const readEveryMs = 10_000;

/** Everything that needs a person, then work under way, broken workspaces, and the quiet ones. */
export default function Now({ app }: { readonly app: App }) {
  const store = workspacesOf(app);
  const inbox = useMemo(() => createInbox(app), [app]);
  useEffect(() => store.start(), [store]);
  useEffect(() => inbox.start(), [inbox]);
  const threads = useResource(
    (signal) => app.hub.get<FleetThreadList>('/v1/fleet/threads', signal),
    [Math.floor(app.now.value / readEveryMs)],
    { live: app.hubLive, isConcerned: () => true },
  ).data.value;
  const { act, question } = useStopQuestion(store);
  const { add, trust, login } = app.router.route.value.query;
  const close = () => app.router.set({ add: undefined, trust: undefined, login: undefined });

  const all = store.all.value;
  const { hosts = [], sums = [] } = store.list.value ?? {};
  const isBroken = ({ look: { tone } }: Shown) => tone === 'danger' || tone === 'warn';
  const broken = all.filter(isBroken);
  const quiet = all.filter((workspace) => !isBroken(workspace));
  const running = threads?.threads.filter(({ activity }) => activity === 'running') ?? [];
  const refused = hosts.filter(({ state }) => state === 'refused');
  const others = hosts.filter(({ state }) => state !== 'refused' && state !== 'disabled');
  const machine = (host: HostRecord) => <HostRow key={host.name} host={host} now={app.now.value} />;
  const row = (workspace: Shown) => (
    <WorkspaceRow key={workspace.path} app={app} store={store} workspace={workspace} act={act} />
  );
  return (
    <div class="view home now">
      <header class="strip">
        <h1>Now</h1>
        <span class="quiet grow">{sumWords(sums)}</span>
        <a class="button main wide" href={href({ view: 'now', query: { add: 'workspace' } })}>
          Add a workspace
        </a>
      </header>
      <div class="scroll">
        <FaultBanner error={store.fault.value ?? inbox.error.value} at={null} retry={() => store.refresh()} />
        <Problems problems={store.status.value?.problems ?? []} tone="warn" />
        {(store.list.value === null || (inbox.entries.value === null && inbox.error.value === null)) && (
          <Skeleton rows={6} />
        )}
        <Band title="Needs you" count={inbox.entries.value?.length ?? 0}>
          <div class="inbox">
            <Requests app={app} store={inbox} />
          </div>
        </Band>
        <Band title="Running" count={running.length}>
          <ul>
            {running.slice(0, maxRows).map((thread) => (
              <RunningRow key={thread.actionUrl} app={app} thread={thread} list={threads} />
            ))}
          </ul>
        </Band>
        <Band title="Broken" count={broken.length + refused.length}>
          <ul>
            {refused.map(machine)}
            {broken.slice(0, maxRows).map(row)}
          </ul>
        </Band>
        <Band title="Quiet" count={quiet.length + others.length}>
          <ul>
            {others.map(machine)}
            {quiet.slice(0, maxRows).map(row)}
          </ul>
        </Band>
        {store.list.value !== null && all.length === 0 && (
          <p class="quiet nothing">No workspace yet. A workspace is a directory with an agent of its own.</p>
        )}
        {all.length > 0 && (
          <p class="rest">
            <a href={href({ view: 'overview' })}>All workspaces</a>
          </p>
        )}
      </div>
      {question}
      {add !== undefined && <AddWorkspace app={app} onClose={close} />}
      {login !== undefined && <KeyDialog app={app} path={login} onClose={close} />}
      {trust !== undefined && <TrustDialog key={trust} app={app} path={trust} onClose={close} />}
    </div>
  );
}

interface BandProps {
  readonly title: string;
  readonly count: number;
  readonly children: ComponentChildren;
}

/** A group of rows with its heading; absent without rows. */
function Band({ title, count, children }: BandProps) {
  const heading = useId();
  if (count === 0) return null;
  return (
    <section class="band" aria-labelledby={heading}>
      <h2 id={heading}>{title}</h2>
      {children}
    </section>
  );
}

/** Number of workspaces of all machines, and the cost of all stored turns. */
function sumWords(sums: FleetList['sums']): string {
  const cost = sums.reduce((sum, { costUsd }) => sum + costUsd, 0);
  const number = counted(
    sums.reduce((sum, { workspaces }) => sum + workspaces, 0),
    'workspace',
  );
  return cost > 0 ? `${number} · ${dollars(cost)} spent` : number;
}

interface RowProps {
  readonly app: App;
  readonly store: Workspaces;
  readonly workspace: Shown;
  readonly act: Parameters<typeof Acts>[0]['act'];
}

/** One workspace: its state, its first problem with the remedy, else its last turn, and the acts on it. */
function WorkspaceRow({ app, store, workspace, act }: RowProps) {
  const { path, look, word, problems, record } = workspace;
  const { page, host, asOf } = record;
  const name = visible(nameOf(workspace), { multiline: false });
  const [first] = problems;
  const trouble = troubleOf(workspace);
  return (
    <li class={asOf === null ? 'now-row' : 'now-row past'} aria-label={path}>
      <span class={`pill ${look.tone}`}>
        <Mark tone={look.tone} shape={look.shape} />
        {capital(word)}
      </span>
      <b class="name cut" title={path}>
        {page === null ? name : <a href={page}>{name}</a>}
      </b>
      <div class="about">
        {trouble === '' ? (
          <span class="quiet">
            <Answering record={record} /> · <LastTurn record={record} now={app.now.value} />
            {record.costUsd !== null && record.costUsd > 0 && ` · ${dollars(record.costUsd)}`}
          </span>
        ) : (
          <span>{trouble}</span>
        )}
        <AsOf at={asOf} now={app.now.value} />
        {problems.length > 1 && (
          <>
            {' '}
            <a href={href({ view: 'overview', query: { workspace: path } })}>{moreProblems(problems.length)}</a>
          </>
        )}
      </div>
      <div class="acts">
        {first && (
          <RemedyStep
            remedy={first.remedy}
            next={first.next}
            host={host}
            path={record.canonicalWorkspacePath}
            isBusy={store.busy.value.has(path)}
            start={() => act(actOf(first.remedy), workspace)}
          />
        )}
        <Acts store={store} workspace={workspace} tabIndex={0} act={act} remedy={first?.remedy} />
      </div>
    </li>
  );
}

const hostTones = { connected: 'ok', connecting: 'progress', refused: 'danger' } as const;

/** Another machine: its state, the reason and the next step, and the time when its workspaces were read. */
function HostRow({ host, now }: { readonly host: HostRecord; readonly now: number }) {
  const { name, ssh, state, reason, next, workspaces, asOf } = host;
  const { tone, shape } = lookOfTone(state in hostTones ? hostTones[state as keyof typeof hostTones] : 'neutral');
  return (
    <li class="now-row" aria-label={`Host ${name}`}>
      <span class={`pill ${tone}`}>
        <Mark tone={tone} shape={shape} />
        {capital(state)}
      </span>
      <b class="name cut" title={ssh}>
        {name}
      </b>
      <div class="about">
        {state !== 'connected' && reason} {next}{' '}
        <span class="quiet">
          {counted(workspaces, 'workspace')}
          {state !== 'connected' && <AsOf at={asOf} now={now} />}
        </span>
      </div>
    </li>
  );
}

interface RunningProps {
  readonly app: App;
  readonly thread: FleetThreadList['threads'][number];
  readonly list: FleetThreadList | null;
}

/** A conversation whose turn runs. */
function RunningRow({ app, thread, list }: RunningProps) {
  const workspace = list?.workspaces.find(
    ({ workspaceId, host }) => workspaceId === thread.workspaceId && host === thread.host,
  );
  const at = Math.min(Date.parse(thread.lastTurn?.at ?? thread.lastActiveAt), app.now.value);
  return (
    <li class="now-row">
      <span class="pill progress">
        <Mark tone="progress" shape="arc" />
        Running
      </span>
      <b class="name cut">
        <a href={thread.actionUrl}>{nameOfThread(thread)}</a>
      </b>
      <span class="about quiet">
        {visible(hostedName(thread.host, workspace?.displayName ?? ''), { multiline: false })} ·{' '}
        <span title={bothTimes(at)}>{distance(at, app.now.value)}</span>
      </span>
    </li>
  );
}
