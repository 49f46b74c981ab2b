/** Chat: conversations with the agent of this workspace, shared with the terminal and editors. */
import { useEffect, useMemo } from 'preact/hooks';
import { count, messageOf } from '../../../lib/browser.ts';
import { agentLimits, agentWords, missingChoices } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { usePart } from '../../parts/use-part.ts';
import { Approvals } from './approvals.tsx';
import './chat.css';
import { Composer } from './composer/composer.tsx';
import { Queue } from './composer/queue.tsx';
import type { Conversation, Restored } from './data/conversation.ts';
import { agentOfThread, type OtherAgent } from './data/thread-agent.ts';
import { type ChatWorkspace, chatOf } from './data/workspace.ts';
import { cursorOf, type LensName, lensAt, lensNames, lensOf, queryOf } from './lens/cursor.ts';
import { LensTabs } from './lens/tabs.tsx';
import { WorkStrip } from './lens/work-strip.tsx';
import { Race } from './race/index.tsx';
import { TranscriptList } from './rows/transcript-list.tsx';
import { Search } from './search.tsx';
import { nameOf, Threads } from './threads.tsx';

export default function ChatView({ app }: { readonly app: App }) {
  const chat = chatOf(app);
  const { path, query } = app.router.route.value;
  const [threadId = null, part] = path;
  const conversation = useConversation(chat, threadId);
  const lens = threadId === null ? null : lensOf(query);
  useEffect(() => {
    // Address of an earlier version.
    if (threadId !== null && part === 'changes') app.router.go(lensAt(threadId, 'changes', cursorOf(query)), true);
  }, [threadId, part]);
  return (
    <div class={`view chat ${threadId === null ? 'list' : 'open'} ${lens === null ? '' : 'with-lens'}`}>
      <Threads app={app} chat={chat} conversation={conversation} />
      {threadId !== null && part === 'race' ? (
        <Race conversation={conversation} threads={chat.threads.value} agents={chat.agents.value} threadId={threadId} />
      ) : (
        // A thread that was begun here keeps its pane: focus, text and pictures go along.
        <ConversationPane key={chat.paneKey(threadId)} app={app} chat={chat} conversation={conversation} lens={lens} />
      )}
    </div>
  );
}

function useConversation(chat: ChatWorkspace, threadId: string | null): Conversation {
  const conversation = useMemo(() => chat.open(threadId), [chat, threadId]);
  useEffect(() => () => conversation.close(), [conversation]);
  return conversation;
}

interface ConversationPaneProps {
  readonly app: App;
  readonly chat: ChatWorkspace;
  readonly conversation: Conversation;
  readonly lens: LensName | null;
}

const fetchLens = () => import('./lens/index.tsx');

/** Lens of a conversation, fetched when it is first opened; null without a lens. */
function useLens(app: App, conversation: Conversation, isOpen: boolean) {
  const part = usePart(isOpen, fetchLens);
  const { threadId } = conversation;
  const open = useMemo(() => {
    if (!part || !isOpen || threadId === null) return null;
    return part.openLens(app, threadId, ({ turn, call, at }) => {
      app.router.set(queryOf({ turn, call, at }));
      if (turn === undefined) conversation.showEnd();
    });
  }, [part, isOpen, app, conversation]);
  useEffect(() => open?.start(), [open]);
  return part && open ? { ...part, open } : null;
}

/** Shows the call in the address. Returns the first turn to load; undefined: the messages end with the last turn. */
function useCursor(app: App, conversation: Conversation): string | undefined {
  const { turn, call } = cursorOf(app.router.route.value.query);
  const isRead = conversation.thread.value !== null;
  useEffect(() => {
    if (isRead) void conversation.show(turn !== undefined && call !== undefined ? { turn, call } : null);
  }, [conversation, isRead, turn, call]);
  return call === undefined ? turn : undefined;
}

function ConversationPane({ app, chat, conversation, lens }: ConversationPaneProps) {
  const thread = conversation.thread.value;
  const title = thread ? nameOf(thread) : conversation.threadId === null ? 'New conversation' : 'Conversation';
  useEffect(() => {
    if (thread) app.subject.value = nameOf(thread);
  }, [thread?.displayName, thread?.firstInput]);
  useChatKeys(app, conversation);
  const readOnly = app.page.value?.readOnly;
  const { threadId } = conversation;
  const lensPart = useLens(app, conversation, lens !== null);
  const turnId = useCursor(app, conversation);
  const names = lensNames.filter((name) => name !== 'changes' || conversation.hasFiles.value);
  return (
    <section class="desk" aria-label="Conversation">
      <header>
        {threadId !== null && (
          <a class="back" href={href(lens === null ? { view: 'chat' } : lensAt(threadId, null))}>
            ‹ {lens === null ? 'Conversations' : 'Messages'}
          </a>
        )}
        <h1 class="cut">{title}</h1>
        <AgentChip agent={agentOfThread(chat.agent.value, thread?.config ?? {}).agent} />
        <ActivityLine conversation={conversation} />
        {thread && <Search app={app} conversation={conversation} />}
        {thread && <CopyButton label="Copy as Markdown" text={() => conversation.markdown()} />}
        {threadId !== null && conversation.canUndo.value && (
          <a class="quiet" href={href({ view: 'chat', path: [threadId, 'race'] })}>
            Race
          </a>
        )}
        {threadId !== null && thread && <LensTabs app={app} threadId={threadId} lens={lens} names={names} />}
        {lensPart ? (
          <lensPart.Scrubber trace={lensPart.open.trace} at={lensPart.open.at.value} moveTo={lensPart.open.moveTo} />
        ) : (
          <WorkStrip app={app} conversation={conversation} />
        )}
      </header>
      <LinkBanner app={app} conversation={conversation} />
      <div class="talk-and-lens">
        <div class="talk">
          <Body chat={chat} conversation={conversation} turnId={turnId} isReadOnly={readOnly !== undefined} />
          <RestoredFiles app={app} conversation={conversation} />
          <Approvals app={app} conversation={conversation} />
          <Queue app={app} conversation={conversation} />
          {readOnly === undefined ? (
            <Composer app={app} chat={chat} conversation={conversation} />
          ) : (
            <Banner tone="neutral">
              <p>{readOnly}</p>
            </Banner>
          )}
        </div>
        {lens !== null && threadId !== null && lensPart && (
          <lensPart.Lens app={app} conversation={conversation} threadId={threadId} lens={lens} open={lensPart.open} />
        )}
      </div>
    </section>
  );
}

/** Names an external agent and its limits. */
function AgentChip({ agent }: { readonly agent: OtherAgent }) {
  if (!agent) return null;
  const words = agentWords({ ...agent, state: 'ready' });
  return (
    <span class={`pill ${agent.approvals === 'none' ? 'warn' : 'neutral'}`} title={agentLimits(agent).join('\n')}>
      {words}
    </span>
  );
}

interface BodyProps {
  readonly chat: ChatWorkspace;
  readonly conversation: Conversation;
  readonly turnId: string | undefined;
  /** The server shows stored conversations and takes no message. */
  readonly isReadOnly: boolean;
}

function Body({ chat, conversation, turnId, isReadOnly }: BodyProps) {
  const { state, threadId } = conversation;
  if (state.hasTag('gone')) {
    return (
      <div class="transcript">
        <Empty title="This conversation does not exist">
          <p>It was deleted, or its address is wrong.</p>
          <a class="button" href={href({ view: 'chat' })}>
            Show all conversations
          </a>
        </Empty>
      </div>
    );
  }
  if (threadId !== null && conversation.thread.value === null) {
    return (
      <div class="transcript">
        <Skeleton />
      </div>
    );
  }
  if (isReadOnly && threadId === null) {
    return (
      <div class="transcript">
        <Empty title="Choose a conversation" />
      </div>
    );
  }
  if (conversation.transcript.changes.value >= 0 && conversation.transcript.rows.length === 0) {
    const { agent, models, modes } = chat;
    const missing = agent.value && missingChoices(agent.value, models.value.length + modes.value.length);
    return (
      <div class="transcript">
        <Empty title="What should the agent do?">
          <p>Describe a task below. The agent reads and changes files of this workspace, and runs commands in it.</p>
          <p>Enter sends, Shift+Enter begins a line. @ names a file, / lists commands.</p>
          {missing && <p>{missing}</p>}
        </Empty>
      </div>
    );
  }
  return <TranscriptList conversation={conversation} turnId={turnId} />;
}

/** Result of an undo, with the way back. */
function RestoredFiles({ app, conversation }: { readonly app: App; readonly conversation: Conversation }) {
  const restored = conversation.restored.value;
  const bringBack = (undo: Restored) =>
    conversation.bringBack(undo).catch((error: unknown) => {
      app.toast({ text: `Could not redo the changes: ${messageOf(error)}`, tone: 'danger' });
    });
  return (
    <div class="restored">
      <p role="status">{restored && `${count(restored.files, 'file')} restored`}</p>
      {restored && restored.files > 0 && (
        <button type="button" onClick={() => void bringBack(restored)}>
          Redo these changes
        </button>
      )}
    </div>
  );
}

/** Activity of the agent, read out when it changes. */
function ActivityLine({ conversation }: { readonly conversation: Conversation }) {
  const { state } = conversation;
  const words = () => {
    if (conversation.approvals.value.length > 0) return 'Waiting for your decision';
    if (state.hasTag('interrupting')) return 'Stopping…';
    if (state.context.turnId !== null) return conversation.notice.value ?? 'Working…';
    return state.matches({ linked: { live: { turn: 'interrupted' } } })
      ? 'Interrupted'
      : (conversation.notice.value ?? '');
  };
  return (
    <p class="doing quiet" role="status">
      {words()}
    </p>
  );
}

function LinkBanner({ app, conversation }: { readonly app: App; readonly conversation: Conversation }) {
  const { state } = conversation;
  if (state.hasTag('reconnecting')) {
    return (
      <Banner tone="warn">
        <p>Disconnected. {state.context.lastError} What you write is sent when the connection is back.</p>
        <button type="button" onClick={() => conversation.retry()}>
          Connect now
        </button>
      </Banner>
    );
  }
  if (state.hasTag('refused')) {
    return (
      <Banner tone="danger">
        <p>The server does not accept this tab. {state.context.lastError}</p>
        <button type="button" onClick={() => location.reload()}>
          Reload
        </button>
      </Banner>
    );
  }
  const isArchived = conversation.thread.value?.status === 'archived';
  if (isArchived && conversation.threadId !== null) {
    return (
      <Banner tone="neutral">
        <p>This conversation is archived.</p>
        <button
          type="button"
          onClick={() => {
            conversation.call('thread/unarchive', { threadId: conversation.threadId ?? '' }).catch((error: Error) => {
              app.toast({ text: error.message, tone: 'danger' });
            });
          }}
        >
          Unarchive
        </button>
      </Banner>
    );
  }
  return null;
}

/** Moves the focus between the last answer and the box. */
function toggleAnswer(): void {
  const answer = [...document.querySelectorAll<HTMLElement>('.chat .answer')].at(-1);
  const box = document.querySelector<HTMLElement>('.composer textarea');
  (answer && document.activeElement === answer ? box : answer)?.focus();
}

function useChatKeys(app: App, conversation: Conversation): void {
  useEffect(
    () =>
      app.commands.register([
        {
          id: 'chat.stop',
          title: 'Stop the turn that runs',
          group: 'Chat',
          keys: ['Escape'],
          isEnabled: () => conversation.state.context.turnId !== null,
          run: () => conversation.interrupt(),
        },
        {
          id: 'chat.print',
          title: 'Print the whole conversation',
          group: 'Chat',
          keys: ['Mod+p'],
          run: () => void conversation.loadAll().then(() => print()),
        },
        {
          id: 'chat.answer',
          title: 'Go to the last answer, and back to the box',
          group: 'Chat',
          keys: ['F6'],
          run: toggleAnswer,
        },
        {
          id: 'chat.new',
          title: 'Begin a new conversation',
          group: 'Chat',
          run: () => app.router.go({ view: 'chat' }),
        },
      ]),
    [app, conversation],
  );
}
