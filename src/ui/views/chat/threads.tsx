import { useSignal } from '@preact/signals';
import { messageOf, visible } from '../../../lib/browser.ts';
import { threadName } from '../../../protocol/browser.ts';
import type { ThreadSummary } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { distance } from '../../parts/time.ts';
import type { Conversation } from './data/conversation.ts';
import type { ChatWorkspace } from './data/workspace.ts';
import { RenameThread } from './rename-thread.tsx';

interface ThreadsProps {
  readonly app: App;
  readonly chat: ChatWorkspace;
  readonly conversation: Conversation;
}

/** Threads shown before a search; the search finds the others by their names. */
const maxShown = 200;

export const nameOf = (thread: Pick<ThreadSummary, 'displayName' | 'firstInput'>): string =>
  visible(threadName(thread), { multiline: false });

/** The threads of the workspace: a search, a button for a new thread, and the actions of each. */
export function Threads({ app, chat, conversation }: ThreadsProps) {
  const query = useSignal('');
  const showsArchived = useSignal(false);
  const renamed = useSignal<ThreadSummary | null>(null);
  const wanted = query.value.trim().toLowerCase();
  const all = (chat.threads.value ?? []).filter(({ status }) => showsArchived.value || status !== 'archived');
  const found = all.filter((thread) => nameOf(thread).toLowerCase().includes(wanted));
  const doing = (work: Promise<unknown>) => {
    work.catch((error: unknown) => app.toast({ text: messageOf(error), tone: 'danger' }));
  };
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
        <p class="quiet none">{all.length === 0 ? 'No conversations yet.' : 'No conversation has this name.'}</p>
      )}
      <ul>
        {found.slice(0, maxShown).map((thread) => (
          <li key={thread.id} class={thread.id === conversation.threadId ? 'open' : undefined}>
            <a
              href={href({ view: 'chat', path: [thread.id] })}
              aria-current={thread.id === conversation.threadId ? 'page' : undefined}
            >
              <span class="cut">{nameOf(thread)}</span>
              <span class="quiet">{stateOf(thread, app)}</span>
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
        ))}
      </ul>
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

function stateOf({ runtime, status, lastActiveAt }: ThreadSummary, app: App): string {
  if (runtime.waitingOnApproval) return 'waits for you';
  if (runtime.running) return 'running';
  if (runtime.suspended) return 'suspended';
  // The clock of the server may be ahead of this one.
  const at = Math.min(Date.parse(lastActiveAt), app.now.value);
  return status === 'archived' ? 'archived' : distance(at, app.now.value);
}
