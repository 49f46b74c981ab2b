import type { ComponentChildren } from 'preact';
import { useEffect, useId, useMemo } from 'preact/hooks';
import { dollars, visible } from '../../../lib/browser.ts';
import { moreProblems } from '../../../protocol/browser.ts';
import type { HubThread, HubThreadList } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { Skeleton } from '../../parts/empty.tsx';
import { Mark } from '../../parts/icons.tsx';
import { FaultBanner } from '../../parts/state-banner.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import { Requests } from '../inbox/index.tsx';
import { createInbox } from '../inbox/store.ts';
import { Acts } from '../overview/acts.tsx';
import { actOf, RemedyStep } from '../overview/incident.tsx';
import { Problems } from '../overview/problems.tsx';
import { useStopQuestion } from '../overview/stop-question.tsx';
import { Answering, capital, LastTurn } from '../overview/words.tsx';
import { nameOf, type Shown, troubleOf, type Workspaces, workspacesOf } from '../overview/workspaces.ts';
import { nameOf as nameOfThread } from '../threads/index.tsx';
import { createThreads } from '../threads/store.ts';
import { AddWorkspace } from './add.tsx';
import { KeyDialog } from './key.tsx';
import { TrustDialog } from './trust.tsx';
import '../overview/overview.css';
import './now.css';

/** Most rows of a band; the list of all workspaces has the others. */
const maxRows = 50;

/** Everything that needs a person, then work under way, broken workspaces, and the quiet ones. */
export default function Now({ app }: { readonly app: App }) {
  const store = workspacesOf(app);
  const inbox = useMemo(() => createInbox(app), [app]);
  const threads = useMemo(() => createThreads(app), [app]);
  useEffect(() => store.start(), [store]);
  useEffect(() => inbox.start(), [inbox]);
  useEffect(() => threads.start(), [threads]);
  useEffect(() => threads.search({ q: '', archived: false }), [threads]);
  const { act, question } = useStopQuestion(store);
  const { add, trust, login } = app.router.route.value.query;
  const close = () => app.router.set({ add: undefined, trust: undefined, login: undefined });

  const all = store.all.value;
  const isBroken = ({ look: { tone } }: Shown) => tone === 'danger' || tone === 'warn';
  const broken = all.filter(isBroken);
  const quiet = all.filter((workspace) => !isBroken(workspace));
  const running = threads.data.value?.threads.filter(({ activity }) => activity === 'running') ?? [];
  const row = (workspace: Shown) => (
    <WorkspaceRow key={workspace.path} app={app} store={store} workspace={workspace} act={act} />
  );
  return (
    <div class="view home now">
      <header class="strip">
        <h1>Now</h1>
        <span class="quiet grow">{sumWords(all)}</span>
        <a class="button main wide" href={href({ view: 'now', query: { add: 'workspace' } })}>
          Add a workspace
        </a>
      </header>
      <div class="scroll">
        <FaultBanner error={store.fault.value ?? inbox.error.value} at={null} retry={() => store.refresh()} />
        <Problems problems={store.status.value?.problems ?? []} tone="warn" />
        {!store.isLoaded.value && <Skeleton rows={6} />}
        <Band title="Needs you" count={inbox.entries.value?.length ?? 0}>
          <div class="inbox">
            <Requests app={app} store={inbox} />
          </div>
        </Band>
        <Band title="Running" count={running.length}>
          <ul>
            {running.slice(0, maxRows).map((thread) => (
              <RunningRow key={thread.actionUrl} app={app} thread={thread} list={threads.data.value} />
            ))}
          </ul>
        </Band>
        <Band title="Broken" count={broken.length}>
          <ul>{broken.slice(0, maxRows).map(row)}</ul>
        </Band>
        <Band title="Quiet" count={quiet.length}>
          <ul>{quiet.slice(0, maxRows).map(row)}</ul>
        </Band>
        {store.isLoaded.value && all.length === 0 && (
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

/** Number of workspaces, and the cost of all stored turns. */
function sumWords(all: readonly Shown[]): string {
  const cost = all.reduce((sum, { record }) => sum + (record?.costUsd ?? 0), 0);
  const number = all.length === 1 ? '1 workspace' : `${all.length} workspaces`;
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
  const { path, look, word, problems, page, record } = workspace;
  const name = visible(nameOf(workspace), { multiline: false });
  const [first] = problems;
  const trouble = troubleOf(workspace);
  return (
    <li class="now-row" aria-label={path}>
      <span class={`pill ${look.tone}`}>
        <Mark tone={look.tone} shape={look.shape} />
        {capital(word)}
      </span>
      <b class="name cut" title={path}>
        {page === null ? name : <a href={page}>{name}</a>}
      </b>
      <div class="about">
        {trouble === '' ? (
          record && (
            <span class="quiet">
              <Answering record={record} /> · <LastTurn record={record} now={app.now.value} />
              {record.costUsd !== null && record.costUsd > 0 && ` · ${dollars(record.costUsd)}`}
            </span>
          )
        ) : (
          <span>{trouble}</span>
        )}
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
            path={path}
            isBusy={store.busy.value.has(path)}
            start={() => act(actOf(first.remedy), path)}
          />
        )}
        <Acts store={store} workspace={workspace} tabIndex={0} act={act} remedy={first?.remedy} />
      </div>
    </li>
  );
}

interface RunningProps {
  readonly app: App;
  readonly thread: HubThread;
  readonly list: HubThreadList | null;
}

/** A conversation whose turn runs. */
function RunningRow({ app, thread, list }: RunningProps) {
  const workspace = list?.workspaces.find(({ workspaceId }) => workspaceId === thread.workspaceId);
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
        {visible(workspace?.displayName ?? '', { multiline: false })} ·{' '}
        <span title={bothTimes(at)}>{distance(at, app.now.value)}</span>
      </span>
    </li>
  );
}
