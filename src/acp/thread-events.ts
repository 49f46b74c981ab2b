import * as v from 'valibot';
import { finishReasons, Item, rpcNotifications } from '../protocol/index.ts';

/** A turn as far as an editor's session cares; items of kinds that this version does not know are left out. */
const SeenTurn = v.looseObject({
  id: v.string(),
  status: v.string(),
  items: v.pipe(
    v.optional(v.array(v.unknown()), []),
    v.transform((items) => items.filter((item): item is Item => v.is(Item, item))),
  ),
  finishReason: v.optional(v.fallback(v.picklist(finishReasons), 'stop')),
  interruptedBy: v.optional(v.string()),
  error: v.optional(v.looseObject({ code: v.string(), message: v.string() })),
});
export type SeenTurn = v.InferOutput<typeof SeenTurn>;

/** A page of a thread, newest turns last. */
export const SeenThread = v.looseObject({
  id: v.string(),
  config: v.optional(v.record(v.string(), v.unknown()), {}),
  displayName: v.optional(v.string()),
  firstInput: v.optional(v.string()),
  lastActiveAt: v.optional(v.string()),
  parentThreadId: v.optional(v.string()),
  workspacePath: v.string(),
  turns: v.optional(v.array(SeenTurn), []),
  hasOlderTurns: v.optional(v.boolean(), false),
  contextUsage: v.optional(v.object({ tokens: v.number(), window: v.number() })),
});
export type SeenThread = v.InferOutput<typeof SeenThread>;

const About = v.looseObject({ threadId: v.string() });
const AboutTurn = v.looseObject({ threadId: v.string(), turn: SeenTurn });

/** Events of a thread that a session sends its editor. */
export type SessionEvent =
  | { readonly kind: 'turnStarted' | 'turnEnded'; readonly turn: SeenTurn }
  | { readonly kind: 'itemStarted' | 'itemCompleted'; readonly turnId: string; readonly item: Item }
  | {
      readonly kind: 'message' | 'thought' | 'output';
      readonly turnId: string;
      readonly itemId: string;
      readonly delta: string;
    }
  | { readonly kind: 'writing'; readonly turnId: string; readonly callId: string; readonly tool: string }
  | { readonly kind: 'discarded'; readonly turnId: string; readonly itemIds: readonly string[] }
  | { readonly kind: 'resolved'; readonly requestId: string }
  | { readonly kind: 'renamed'; readonly name: string }
  | { readonly kind: 'notice'; readonly message: string }
  /** A user stops the agent server, which suspends the turn. */
  | { readonly kind: 'stopped' };

const items = { 'item/started': 'itemStarted', 'item/completed': 'itemCompleted' } as const;
const deltas = {
  'item/agentMessage/delta': 'message',
  'item/reasoning/delta': 'thought',
  'item/commandExecution/outputDelta': 'output',
} as const;
const ends: ReadonlySet<string> = new Set(['turn/completed', 'turn/failed', 'turn/cancelled']);

/** The thread that a notification is about; undefined: none. */
export function threadOf(params: unknown): string | undefined {
  return v.is(About, params) ? params.threadId : undefined;
}

/** Meaning of a notification; undefined: it is not for the editor, or unknown to this version. */
export function eventOf(method: string, params: unknown): SessionEvent | undefined {
  if (method === 'turn/started' || ends.has(method)) {
    const about = v.safeParse(AboutTurn, params);
    if (!about.success) return undefined;
    return { kind: method === 'turn/started' ? 'turnStarted' : 'turnEnded', turn: about.output.turn };
  }
  if (method in items) {
    const name = method as keyof typeof items;
    const about = v.safeParse(rpcNotifications[name], params);
    return about.success ? { kind: items[name], turnId: about.output.turnId, item: about.output.item } : undefined;
  }
  if (method in deltas) {
    const name = method as keyof typeof deltas;
    const about = v.safeParse(rpcNotifications[name], params);
    if (!about.success) return undefined;
    const { turnId, itemId, delta } = about.output;
    return { kind: deltas[name], turnId, itemId, delta };
  }
  return otherEventOf(method, params);
}

function otherEventOf(method: string, params: unknown): SessionEvent | undefined {
  switch (method) {
    case 'item/toolCall/argumentsDelta': {
      const about = v.safeParse(rpcNotifications[method], params);
      if (!about.success) return undefined;
      const { turnId, itemId: callId, tool } = about.output;
      return { kind: 'writing', turnId, callId, tool };
    }
    case 'item/discarded': {
      const about = v.safeParse(rpcNotifications[method], params);
      if (!about.success) return undefined;
      return { kind: 'discarded', turnId: about.output.turnId, itemIds: about.output.itemIds };
    }
    case 'item/approval/resolved': {
      const about = v.safeParse(rpcNotifications[method], params);
      return about.success ? { kind: 'resolved', requestId: about.output.requestId } : undefined;
    }
    case 'thread/renamed': {
      const about = v.safeParse(rpcNotifications[method], params);
      return about.success ? { kind: 'renamed', name: about.output.displayName } : undefined;
    }
    case 'system/event': {
      const about = v.safeParse(rpcNotifications[method], params);
      if (!about.success) return undefined;
      const { kind, reason, message } = about.output;
      return kind === 'turnSuspended' && reason === 'stop' ? { kind: 'stopped' } : { kind: 'notice', message };
    }
    default:
      return undefined;
  }
}
