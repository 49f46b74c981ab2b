import * as v from 'valibot';

/** Request of the inspector's page to the inspected program. */
export const InspectorQuestion = v.variant('ask', [
  /** Requests the records after a cursor, or all records. The answer waits for new records. */
  v.object({
    ask: v.literal('records'),
    /** Id that the page chooses, so that each page has its own cursor. */
    viewer: v.pipe(v.string(), v.minLength(1), v.maxLength(64)),
    after: v.nullable(v.pipe(v.string(), v.maxLength(64))),
  }),
  /** Requests one fact of an actor's current context in full. */
  v.object({
    ask: v.literal('fact'),
    actor: v.pipe(v.string(), v.maxLength(2_000)),
    fact: v.pipe(v.string(), v.maxLength(200)),
  }),
]);
export type InspectorQuestion = v.InferOutput<typeof InspectorQuestion>;

export interface InspectorRecords {
  /** Cursor for the next request. Each answer has a new cursor. */
  readonly cursor: string;
  /** True: the page clears its actors first, because these records start from the beginning. */
  readonly isReset: boolean;
  /** `machine`: the states and transitions of a machine, as JSON, before its first actor. Else a record, as superjson. */
  readonly records: readonly { readonly event: string; readonly data: string }[];
}

export interface InspectorFact {
  /** Null: the actor has ended, or does not have this fact. */
  readonly text: string | null;
}

/** Message on the channel. The page sends requests, the program sends answers. */
export type InspectorMessage =
  | { readonly type: 'question'; readonly id: string; readonly question: unknown }
  | { readonly type: 'answer'; readonly id: string; readonly answer: unknown }
  /** A program has started to answer; an older program on the channel stops. */
  | { readonly type: 'hello'; readonly program: string }
  /** The program ends. */
  | { readonly type: 'bye' };
