import { basename } from 'node:path';
import type { ApprovalRequest, HubEventData, InboxDecision, InboxItem, ResolvedRequest } from '../../protocol/index.ts';
import { workspacePagePath } from '../../protocol/index.ts';
import { hubError } from '../errors.ts';

/** Names a workspace to the inbox. */
export interface InboxWorkspace {
  readonly id: string;
  readonly path: string;
}

export interface InboxOptions {
  publish<K extends 'inbox.added' | 'inbox.resolved'>(kind: K, workspacePath: string, data: HubEventData<K>): void;
}

/** Decided requests that are remembered for answers that come late. */
const maxDecisions = 1_000;

/**
 * Requests of all workspaces that wait for a user, as their agent servers report it. The agent server that asks decides, once; this is
 * the list of it and of the last decisions.
 */
export class Inbox {
  readonly #publish: InboxOptions['publish'];
  readonly #open = new Map<string, InboxItem>();
  readonly #decisions = new Map<string, InboxDecision>();

  constructor({ publish }: InboxOptions) {
    this.#publish = publish;
  }

  /** Oldest first. */
  list(): readonly InboxItem[] {
    return [...this.#open.values()].sort((a, b) => (a.request.createdAt < b.request.createdAt ? -1 : 1));
  }

  get size(): number {
    return this.#open.size;
  }

  has({ id }: InboxWorkspace, requestId: string): boolean {
    return this.#open.has(keyOf(id, requestId));
  }

  /** @throws HttpError 409 `alreadyDecided`, 404 `notFound` for a request that does not wait */
  requireOpen(workspaceId: string, requestId: string): void {
    const key = keyOf(workspaceId, requestId);
    if (this.#open.has(key)) return;
    const made = this.#decisions.get(key);
    if (made) throw alreadyDecided(made);
    throw hubError('notFound', 'No such request waits for a decision.');
  }

  add(workspace: InboxWorkspace, request: ApprovalRequest): void {
    const { id, path } = workspace;
    const key = keyOf(id, request.requestId);
    if (this.#open.has(key) || this.#decisions.has(key)) return;
    const { requestId, threadId, tool, operation, expiresAt } = request;
    const actionUrl = chatPath(id, threadId);
    this.#open.set(key, { workspaceId: id, workspacePath: path, displayName: basename(path), actionUrl, request });
    this.#publish('inbox.added', path, {
      ...{ workspaceId: id, requestId, threadId, tool, operation },
      ...{ actionUrl, expiresAt },
    });
  }

  resolve({ id, path }: InboxWorkspace, { requestId, decision, decidedBy }: ResolvedRequest): void {
    const key = keyOf(id, requestId);
    if (this.#decisions.has(key)) return;
    this.#remember(key, { decision, decidedBy });
    if (!this.#open.delete(key)) return;
    this.#publish('inbox.resolved', path, { workspaceId: id, requestId, decision, decidedBy });
  }

  /** The whole state of an agent server: what it does not name has ended while it could not be heard. */
  replace(workspace: InboxWorkspace, open: readonly ApprovalRequest[], resolved: readonly ResolvedRequest[]): void {
    for (const each of resolved) this.resolve(workspace, each);
    const named = new Set(open.map(({ requestId }) => requestId));
    this.#withdraw(workspace, (requestId) => !named.has(requestId));
    for (const request of open) this.add(workspace, request);
  }

  /** The agent server has ended, and what it asked with it. */
  withdrawAll(workspace: InboxWorkspace): void {
    this.#withdraw(workspace, () => true);
  }

  #withdraw(workspace: InboxWorkspace, isGone: (requestId: string) => boolean): void {
    for (const { workspaceId, request } of [...this.#open.values()]) {
      if (workspaceId !== workspace.id || !isGone(request.requestId)) continue;
      this.resolve(workspace, { requestId: request.requestId, decision: 'cancel', decidedBy: 'withdrawn' });
    }
  }

  #remember(key: string, made: InboxDecision): void {
    this.#decisions.set(key, made);
    const [oldest] = this.#decisions.keys();
    if (this.#decisions.size > maxDecisions && oldest !== undefined) this.#decisions.delete(oldest);
  }
}

const keyOf = (workspaceId: string, requestId: string): string => `${workspaceId}/${requestId}`;

/** Path of a conversation on the Hub; without a token: a tab without one asks. */
export const chatPath = (workspaceId: string, threadId: string): string =>
  `${workspacePagePath(workspaceId)}#/chat/${encodeURIComponent(threadId)}`;

export const alreadyDecided = ({ decision, decidedBy }: InboxDecision) =>
  hubError('alreadyDecided', `The request was decided already: ${decision}, by ${decidedBy}.`, { decision, decidedBy });
