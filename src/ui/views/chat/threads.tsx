import { useSignal } from '@preact/signals';
import { messageOf, visible } from '../../../lib/browser.ts';
import { threadName } from '../../../protocol/browser.ts';
import type { DashboardSession, SessionPage, ThreadSummary } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { href } from '../../app/router.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { StateStrip } from '../../parts/state-strip.tsx';
import { distance } from '../../parts/time.ts';
import { paths } from '../sessions/paths.ts';
import { costOf } from '../sessions/words.ts';
import { ageGroups } from '../threads/ages.ts';
import type { Conversation } from './data/conversation.ts';
import { agentOfThread } from './data/thread-agent.ts';
import type { ChatWorkspace } from './data/workspace.ts';
import { workOf } from './lens/work-strip.tsx';
import { RenameThread } from './rename-thread.tsx';

interface ThreadsProps {
  readonly app: App;
  readonly chat: ChatWorkspace;
  readonly conversation: Conversation;
}

/** Threads shown before a search; the search finds the others. */
const maxShown = 200;

export const nameOf = (thread: Pick<ThreadSummary, 'displayName' | 'firstInput'>): string =>
  visible(threadName(thread), { multiline: false });

/** The threads of the workspace: a search, a button for a new thread, and the actions of each. */
export function Threads({ app, chat, conversation }: ThreadsProps) {
  const query = useSignal(app.router.route.peek().query['q'] ?? '');
  const showsArchived = useSignal(false);
  const renamed = useSignal<ThreadSummary | null>(null);
  const wanted = query.value.trim().toLowerCase();
  const all = (chat.threads.value ?? []).filter(({ status }) => showsArchived.value || status !== 'archived');
  const agentOf = (thread: ThreadSummary) => agentOfThread(chat.agent.value, thread.config ?? {}).agent?.name ?? '';
  const found = all.filter((thread) =>
    `${nameOf(thread)} ${activityOf(thread) ?? ''} ${agentOf(thread)}`.toLowerCase().includes(wanted),
  );
  const sessions = useSessions(app, all);
  const doing = (work: Promise<unknown>) => {
    work.catch((error: unknown) => app.toast({ text: messageOf(error), tone: 'danger' }));
  };
  const row = (thread: ThreadSummary) => (
    <li key={thread.id} class={thread.id === conversation.threadId ? 'open' : undefined}>
      <a
        href={href({ view: 'chat', path: [thread.id] })}
        aria-current={thread.id === conversation.threadId ? 'page' : undefined}
      >
        <span class="cut">{nameOf(thread)}</span>
        <Facts state={stateOf(thread, app)} agent={agentOf(thread)} session={sessions.get(thread.id)} />
      </a>
      <button
        type="button"
        class="bare"
        aria-label={`Rename ${nameOf(thread)}`}
        title="Rename"
        onClick={() => {
          renamed.value = thread;
        }}
      >
        <Glyph name="pencil" />
      </button>
      <button
        type="button"
        class="bare"
        aria-label={`${thread.status === 'archived' ? 'Unarchive' : 'Archive'} ${nameOf(thread)}`}
        onClick={() =>
          doing(
            conversation.call(thread.status === 'archived' ? 'thread/unarchive' : 'thread/archive', {
              threadId: thread.id,
            }),
          )
        }
      >
        <Glyph name={thread.status === 'archived' ? 'refresh' : 'box'} />
      </button>
    </li>
  );
  return (
    <section class="threads" aria-label="Conversations">
      <div class="tools">
        <input
          type="search"
          aria-label="Search conversations"
          placeholder="Search conversations"
          value={query.value}
          onInput={(event) => {
            query.value = event.currentTarget.value;
          }}
        />
        <a class="button" href={href({ view: 'chat' })}>
          New
        </a>
      </div>
      {chat.threads.value !== null && found.length === 0 && (
        <p class="quiet none">
          {all.length === 0 ? 'No conversations yet.' : 'No conversation has this name, state or agent.'}
        </p>
      )}
      <div class="ages">
        {ageGroups(found.slice(0, maxShown), ({ lastActiveAt }) => Date.parse(lastActiveAt), app.now.value).map(
          ([title, group]) => (
            <section key={title} aria-label={title}>
              <h2>{title}</h2>
              <ul>{group.map(row)}</ul>
            </section>
          ),
        )}
      </div>
      {found.length > maxShown && <p class="quiet none">{found.length - maxShown} more: search by name.</p>}
      {app.server.base !== '' && (
        <a class="choice" href={`/${href({ view: 'threads' })}`}>
          Conversations of all workspaces
        </a>
      )}
      <label class="choice">
        <input
          type="checkbox"
          checked={showsArchived.value}
          onChange={(event) => {
            showsArchived.value = event.currentTarget.checked;
          }}
        />
        Show archived
      </label>
      {renamed.value && (
        <RenameThread
          name={renamed.value.displayName ?? renamed.value.firstInput ?? ''}
          onClose={() => {
            renamed.value = null;
          }}
          onName={(displayName) => {
            const { id = '' } = renamed.peek() ?? {};
            renamed.value = null;
            doing(conversation.call('thread/rename', { threadId: id, displayName }));
          }}
        />
      )}
    </section>
  );
}

/** Sums of the latest conversations, fetched again when a turn has begun or ended. */
function useSessions(app: App, threads: readonly ThreadSummary[]): ReadonlyMap<string, DashboardSession> {
  const running = threads.filter(({ runtime }) => runtime.running).map(({ id }) => id);
  const { data } = useResource(
    (signal) => app.api.get<SessionPage>(paths.sessions({ limit: maxShown }), signal),
    [running.join(), threads.length],
  );
  return new Map(data.value?.sessions.map((session) => [session.sessionKey, session]));
}

interface FactsProps {
  readonly state: string;
  readonly agent: string;
  readonly session: DashboardSession | undefined;
}

const Facts = ({ state, agent, session }: FactsProps) => (
  <span class="facts quiet">
    <span class="cut">{agent === '' ? state : `${state} · ${visible(agent, { multiline: false })}`}</span>
    {session && <StateStrip work={workOf(session)} />}
    {session && <span class="cut">{costOf(session)}</span>}
  </span>
);

/** Present activity of a conversation; undefined: it rests. */
function activityOf({ runtime, status }: ThreadSummary): string | undefined {
  if (runtime.waitingOnApproval) return 'waits for you';
  if (runtime.running) return 'running';
  if (runtime.suspended) return 'suspended';
  return status === 'archived' ? 'archived' : undefined;
}

/** Present activity, or the time since the last one. The clock of the server may be ahead of this one. */
const stateOf = (thread: ThreadSummary, app: App): string =>
  activityOf(thread) ?? distance(Math.min(Date.parse(thread.lastActiveAt), app.now.value), app.now.value);
