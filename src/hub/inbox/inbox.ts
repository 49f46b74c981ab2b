import { basename } from 'node:path';
import { type ActorRefFrom, createActor } from 'xstate';
import { inboxRequestMachine } from '../../../machines/index.ts';
import { withoutCredentials } from '../../inspect/index.ts';
import { redact } from '../../lib/index.ts';
import type {
  ApprovalRequest,
  HubEventData,
  InboxDecision,
  InboxHistoryEntry,
  InboxItem,
  InboxReason,
  ResolvedRequest,
} from '../../protocol/index.ts';
import { inboxStates, placeOf, workspacePagePath } from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import type { AnswerOutcome } from './agent-server.ts';

/** Names a workspace to the inbox. */
export interface InboxWorkspace {
  readonly id: string;
  readonly path: string;
  /** Tokens and keys of the workspace: the record of decisions names none. */
  readonly secrets: ReadonlySet<string>;
}

/** The sender of an answer that the Hub carries. */
export interface AnswerSender {
  readonly client: string;
  /** `hub`, `page`, or the name of a scoped token. */
  readonly token: string;
  readonly remoteAddress: string | null;
}

type RequestActor = ActorRefFrom<typeof inboxRequestMachine>;

export interface InboxOptions {
  publish<K extends 'inbox.added' | 'inbox.resolved'>(kind: K, workspacePath: string, data: HubEventData<K>): void;
  /** Takes every decision about a known request, for the record. */
  readonly record: (entry: InboxHistoryEntry) => void;
  /** Watches the actor of a request before it starts. */
  readonly observe: (actor: RequestActor, workspacePath: string, request: ApprovalRequest) => void;
  readonly onFault: (error: unknown) => void;
}

interface Entry {
  readonly item: Omit<InboxItem, 'state'>;
  readonly actor: RequestActor;
  readonly workspace: InboxWorkspace;
  readonly senders: AnswerSender[];
}

interface Remembered {
  readonly made: InboxDecision;
  /** Run of the agent server that made the decision. */
  readonly run: number;
}

/** Decided requests that are remembered for answers that come late. */
const maxDecisions = 1_000;
/** Characters of a command or path in the record of decisions. */
const maxRecordedTarget = 500;

/**
 * Requests of all workspaces that wait for a user, as their agent servers report it. The agent server that asks decides, once; this is
 * the list of it and of the last decisions. Each request is an actor of `machines/inbox-request.ts`.
 */
export class Inbox {
  readonly #options: InboxOptions;
  readonly #open = new Map<string, Entry>();
  readonly #decisions = new Map<string, Remembered>();
  /** Ended agent servers by workspace: a later one may name a request again whose decision was lost with the one before. */
  readonly #runs = new Map<string, number>();

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  /** Oldest first. */
  list(): readonly InboxItem[] {
    return [...this.#open.values()]
      .map(({ item, actor }): InboxItem => ({ ...item, state: stateOf(actor) }))
      .sort((a, b) => (a.request.createdAt < b.request.createdAt ? -1 : 1));
  }

  get size(): number {
    return this.#open.size;
  }

  has({ id }: Pick<InboxWorkspace, 'id'>, requestId: string): boolean {
    return this.#open.has(keyOf(id, requestId));
  }

  /** @throws HttpError 409 `alreadyDecided`, 404 `notFound` for a request that does not wait */
  requireOpen(workspaceId: string, requestId: string): void {
    const key = keyOf(workspaceId, requestId);
    if (this.#open.has(key)) return;
    const known = this.#decisions.get(key);
    if (known) throw alreadyDecided(known.made);
    throw hubError('notFound', 'No such request waits for a decision.');
  }

  /**
   * Carries an answer to the agent server and takes over the decision that it replies with.
   *
   * @throws the error of `deliver`: there was no reply, and the answer may have counted
   */
  async carry(
    workspace: InboxWorkspace,
    requestId: string,
    sender: AnswerSender,
    deliver: () => Promise<AnswerOutcome>,
  ): Promise<AnswerOutcome> {
    const entry = this.#open.get(keyOf(workspace.id, requestId));
    entry?.senders.push(sender);
    const send = (type: 'ANSWER.SENT' | 'ANSWER.LOST' | 'ANSWER.REPLIED') => {
      if (entry?.actor.getSnapshot().status === 'active') entry.actor.send({ type });
    };
    send('ANSWER.SENT');
    let outcome: AnswerOutcome;
    try {
      outcome = await deliver();
    } catch (error) {
      send('ANSWER.LOST');
      throw error;
    }
    send('ANSWER.REPLIED');
    if ('made' in outcome) this.resolve(workspace, { requestId, ...outcome.made });
    return outcome;
  }

  add(workspace: InboxWorkspace, request: ApprovalRequest): void {
    const { id, path } = workspace;
    const key = keyOf(id, request.requestId);
    const known = this.#open.get(key);
    known?.actor.send({ type: 'REQUEST.LISTED' });
    const decision = this.#decisions.get(key);
    if (known || decision?.run === this.#runOf(id)) return;
    this.#decisions.delete(key);
    const { requestId, threadId, tool, operation, expiresAt } = request;
    const actionUrl = chatPath(id, threadId);
    const kind = kindOf(request);
    const item = { kind, workspaceId: id, workspacePath: path, displayName: basename(path), actionUrl, request };
    const actor = createActor(inboxRequestMachine, { id: 'inbox-request', input: { requestId } });
    this.#options.observe(actor, path, request);
    actor.subscribe({ error: this.#options.onFault });
    actor.start();
    this.#open.set(key, { item, actor, workspace, senders: [] });
    this.#options.publish('inbox.added', path, {
      ...{ workspaceId: id, requestId, threadId, tool, operation },
      ...{ actionUrl, expiresAt },
    });
  }

  /** @param isRecorded false: the turn may continue and ask again, so the history omits the decision */
  resolve({ id, path }: InboxWorkspace, resolved: ResolvedRequest, isRecorded = true): void {
    const { requestId, decision, decidedBy, decidedAt } = resolved;
    const key = keyOf(id, requestId);
    if (this.#decisions.has(key)) return;
    const reason = resolved.reason ?? reasonOf(resolved);
    const made = { decision, decidedBy, reason, ...(decidedAt !== undefined && { decidedAt }) };
    this.#remember(key, { made, run: this.#runOf(id) });
    const entry = this.#open.get(key);
    if (!entry) return;
    this.#open.delete(key);
    entry.actor.send({ type: 'DECISION.REPORTED', decision, decidedBy, reason });
    if (isRecorded) this.#options.record(historyOf(entry, resolved, reason));
    this.#options.publish('inbox.resolved', path, {
      ...{ workspaceId: id, requestId, decision, decidedBy, reason },
      decidedAt: decidedAt ?? null,
    });
  }

  /** Takes the whole state of an agent server: a request that it does not contain has ended while the connection was down. */
  replace(workspace: InboxWorkspace, open: readonly ApprovalRequest[], resolved: readonly ResolvedRequest[]): void {
    for (const each of resolved) this.resolve(workspace, each);
    const named = new Set(open.map(({ requestId }) => requestId));
    this.#withdraw(workspace, (requestId) => !named.has(requestId));
    for (const request of open) this.add(workspace, request);
  }

  /** Suspends all requests of an agent server that has ended: the state of the next one decides about them. */
  suspendAll({ id }: InboxWorkspace): void {
    this.#beginRun(id);
    for (const { item, actor } of this.#open.values()) {
      if (item.workspaceId === id) actor.send({ type: 'SERVER.EXITED' });
    }
  }

  /** Withdraws all requests of an agent server that the Hub does not restart automatically. The history does not record them. */
  withdrawAll(workspace: InboxWorkspace): void {
    this.#withdraw(workspace, () => true, false);
    this.#beginRun(workspace.id);
  }

  #withdraw(workspace: InboxWorkspace, isGone: (requestId: string) => boolean, isRecorded = true): void {
    for (const { item } of [...this.#open.values()]) {
      const { requestId } = item.request;
      if (item.workspaceId !== workspace.id || !isGone(requestId)) continue;
      const decision = { decision: 'cancel', decidedBy: 'agent', reason: 'agentServerEnded' } as const;
      this.resolve(workspace, { requestId, ...decision }, isRecorded);
    }
  }

  #runOf(workspaceId: string): number {
    return this.#runs.get(workspaceId) ?? 0;
  }

  #beginRun(workspaceId: string): void {
    this.#runs.set(workspaceId, this.#runOf(workspaceId) + 1);
  }

  #remember(key: string, decision: Remembered): void {
    this.#decisions.set(key, decision);
    const [oldest] = this.#decisions.keys();
    if (this.#decisions.size > maxDecisions && oldest !== undefined) this.#decisions.delete(oldest);
  }
}

const kindOf = ({ question, until, operation, tool }: ApprovalRequest): InboxItem['kind'] => {
  if (question) return 'question';
  if (until !== undefined) return 'quota';
  return tool === 'Turn' && operation === 'continue' ? 'resume' : 'approval';
};

const keyOf = (workspaceId: string, requestId: string): string => `${workspaceId}/${requestId}`;

function stateOf(actor: RequestActor): InboxItem['state'] {
  const snapshot = actor.getSnapshot();
  return inboxStates.find((state) => snapshot.value === state) ?? 'open';
}

/** Reason of a decision whose agent server does not name it. */
function reasonOf({ decision, decidedBy }: InboxDecision): InboxReason {
  if (decidedBy === 'timeout') return 'expired';
  return decidedBy === 'policy' && decision === 'cancel' ? 'turnEnded' : 'answered';
}

function historyOf(
  { item, workspace, senders }: Entry,
  resolved: ResolvedRequest,
  reason: InboxReason,
): InboxHistoryEntry {
  const { workspaceId, workspacePath, request } = item;
  const { requestId, threadId, tool, operation } = request;
  const { decision, decidedBy } = resolved;
  const sender = reason === 'answered' ? senders.find(({ client }) => placeOf(client) === decidedBy) : undefined;
  const target = withoutCredentials(redact(request.target, [...workspace.secrets])) ?? '';
  return {
    at: new Date().toISOString(),
    ...{ workspaceId, workspacePath, requestId, threadId, tool, operation },
    target: target.slice(0, maxRecordedTarget),
    ...{ decision, decidedBy, reason },
    token: sender?.token ?? null,
    remoteAddress: sender?.remoteAddress ?? null,
  };
}

/** Path of a conversation on the Hub; without a token: a tab without one asks. */
export const chatPath = (workspaceId: string, threadId: string): string =>
  `${workspacePagePath(workspaceId)}#/chat/${encodeURIComponent(threadId)}`;

export const alreadyDecided = (made: InboxDecision) =>
  hubError('alreadyDecided', `The request was decided already: ${made.decision}, by ${made.decidedBy}.`, made);
