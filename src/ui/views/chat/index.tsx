/** Chat: conversations with the agent of this workspace, shared with the terminal and editors. */
import { useEffect, useMemo } from 'preact/hooks';
import { count, messageOf } from '../../../lib/browser.ts';
import { agentLimits, agentWords, missingChoices } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { href } from '../../app/router.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { Empty, Skeleton } from '../../parts/empty.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { Approvals } from './approvals.tsx';
import { Changes } from './changes/index.tsx';
import './chat.css';
import { Composer } from './composer/composer.tsx';
import { Queue } from './composer/queue.tsx';
import type { Conversation, Restored } from './data/conversation.ts';
import { agentOfThread, type OtherAgent } from './data/thread-agent.ts';
import { type ChatWorkspace, chatOf } from './data/workspace.ts';
import { Race } from './race/index.tsx';
import { TranscriptList } from './rows/transcript-list.tsx';
import { Search } from './search.tsx';
import { nameOf, Threads } from './threads.tsx';

export default function ChatView({ app }: { readonly app: App }) {
  const chat = chatOf(app);
  const { path, query } = app.router.route.value;
  const [threadId = null, part] = path;
  const conversation = useConversation(chat, threadId);
  return (
    <div class={`view chat ${threadId === null ? 'list' : 'open'}`}>
      <Threads app={app} chat={chat} conversation={conversation} />
      {threadId !== null && part === 'changes' ? (
        <Changes app={app} conversation={conversation} threadId={threadId} turnId={query['turn']} />
      ) : threadId !== null && part === 'race' ? (
        <Race conversation={conversation} threads={chat.threads.value} agents={chat.agents.value} threadId={threadId} />
      ) : (
        // A thread that was begun here keeps its desk: focus, text and pictures go along.
        <Desk key={chat.deskOf(threadId)} app={app} chat={chat} conversation={conversation} />
      )}
    </div>
  );
}

function useConversation(chat: ChatWorkspace, threadId: string | null): Conversation {
  const conversation = useMemo(() => chat.open(threadId), [chat, threadId]);
  useEffect(() => () => conversation.close(), [conversation]);
  return conversation;
}

interface DeskProps {
  readonly app: App;
  readonly chat: ChatWorkspace;
  readonly conversation: Conversation;
}

function Desk({ app, chat, conversation }: DeskProps) {
  const thread = conversation.thread.value;
  const title = thread ? nameOf(thread) : conversation.threadId === null ? 'New conversation' : 'Conversation';
  useEffect(() => {
    if (thread) app.subject.value = nameOf(thread);
  }, [thread?.displayName, thread?.firstInput]);
  useChatKeys(app, conversation);
  const readOnly = app.page.value?.readOnly;
  return (
    <section class="desk" aria-label="Conversation">
      <header>
        {conversation.threadId !== null && (
          <a class="back" href={href({ view: 'chat' })}>
            ‹ Conversations
          </a>
        )}
        <h1 class="cut">{title}</h1>
        <AgentChip agent={agentOfThread(chat.agent.value, thread?.config ?? {}).agent} />
        <Doing conversation={conversation} />
        {thread && <Search app={app} conversation={conversation} />}
        {thread && <CopyButton label="Copy as Markdown" text={() => conversation.markdown()} />}
        {conversation.threadId !== null && conversation.canUndo.value && (
          <a class="quiet" href={href({ view: 'chat', path: [conversation.threadId, 'race'] })}>
            Race
          </a>
        )}
        {conversation.threadId !== null && conversation.canUndo.value && (
          <a class="quiet" href={href({ view: 'chat', path: [conversation.threadId, 'changes'] })}>
            Changes
          </a>
        )}
      </header>
      <LinkBanner app={app} conversation={conversation} />
      <Body
        chat={chat}
        conversation={conversation}
        turnId={app.router.route.value.query['turn']}
        isReadOnly={readOnly !== undefined}
      />
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
      app.toast({ text: `Not brought back: ${messageOf(error)}`, tone: 'danger' });
    });
  return (
    <div class="restored">
      <p role="status">{restored && `${count(restored.files, 'file')} restored`}</p>
      {restored && restored.files > 0 && (
        <button type="button" onClick={() => void bringBack(restored)}>
          Bring them back
        </button>
      )}
    </div>
  );
}

/** Activity of the agent, read out when it changes. */
function Doing({ conversation }: { readonly conversation: Conversation }) {
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
