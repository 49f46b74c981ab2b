import type { ApprovalNeed } from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import type { ApprovalDecision, ApprovalKind } from '../protocol/index.ts';
import type { KnownCall } from './known-call.ts';
import type { PermissionOption } from './messages.ts';

/** Kinds of calls that only read: our own reading tools need no approval either. */
const readingKinds: ReadonlySet<string> = new Set(['read', 'search', 'think']);

const kindsOf: Readonly<Record<string, { readonly kind: ApprovalKind; readonly operation: string }>> = {
  edit: { kind: 'file', operation: 'edit' },
  delete: { kind: 'file', operation: 'delete' },
  move: { kind: 'file', operation: 'move' },
  execute: { kind: 'shell', operation: 'run' },
  fetch: { kind: 'remoteResource', operation: 'fetch' },
};
const otherKind = { kind: 'remoteResource', operation: 'call' } as const;

/** Approval that a call of an agent needs, with the agent's own words for the answers. Undefined: none, the call only reads. */
export function needOf(
  agent: string,
  call: KnownCall,
  workspacePath: string,
  options: readonly PermissionOption[],
): ApprovalNeed | undefined {
  if (readingKinds.has(call.kind)) return undefined;
  const { kind, operation } = kindsOf[call.kind] ?? otherKind;
  const target = call.command ?? (call.paths.join(', ') || call.title);
  return {
    kind,
    operation,
    target,
    ...(kind === 'shell' && { workingDirectory: workspacePath }),
    scopeKey: `agent:${agent}:${operation}:${target}`,
    covers: kind === 'shell' ? `this command in ${workspacePath}` : `to ${operation} ${target}`,
    reason: [`${agent} asks.`, ...namesOf(options)].join(' '),
  };
}

const maxNameChars = 80;

/** Names of the options that an answer can choose, in the agent's words. Removes their quotes, which would end ours. */
function namesOf(options: readonly PermissionOption[]): string[] {
  const named = (['accept', 'decline'] as const).flatMap((decision) => {
    const name = plainText(chosen(decision, options)?.name ?? '')
      .replaceAll(/["“”\s]+/g, ' ')
      .trim();
    return name === '' ? [] : [`${decision} is “${name.slice(0, maxNameChars)}”`];
  });
  return named.length === 0 ? [] : [`In its words ${named.join(', ')}.`];
}

type Outcome =
  | { readonly outcome: 'selected'; readonly optionId: string }
  /** The question is withdrawn; most agents end their turn. */
  | { readonly outcome: 'cancelled' };

/**
 * The answer to an agent. Options are chosen by their kind, as their ids and order say nothing. `allow_always` is never chosen:
 * agents write it into their own configuration, and we store our own grants.
 */
export function outcomeOf(decision: ApprovalDecision, options: readonly PermissionOption[]): Outcome {
  const optionId = chosen(decision, options)?.optionId;
  return optionId === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId };
}

const chosen = (decision: ApprovalDecision, options: readonly PermissionOption[]): PermissionOption | undefined =>
  wantedKinds[decision]
    .map((wanted) => options.find(({ kind, optionId }) => kind === wanted && optionId))
    .find((each) => each);

const wantedKinds: Readonly<Record<ApprovalDecision, readonly string[]>> = {
  accept: ['allow_once'],
  acceptForSession: ['allow_once'],
  acceptAlways: ['allow_once'],
  decline: ['reject_once', 'reject_always'],
  cancel: [],
  now: [],
};
