import * as v from 'valibot';

/** A question of the inspector's page to the program that it watches. */
export const InspectorQuestion = v.variant('ask', [
  /** Records after a cursor, or all of them. The answer waits for news. */
  v.object({
    ask: v.literal('records'),
    /** Chosen by the page, so that each page has a cursor of its own. */
    viewer: v.pipe(v.string(), v.minLength(1), v.maxLength(64)),
    after: v.nullable(v.pipe(v.string(), v.maxLength(64))),
  }),
  /** One fact of an actor's present context, at greater length. */
  v.object({
    ask: v.literal('fact'),
    actor: v.pipe(v.string(), v.maxLength(2_000)),
    fact: v.pipe(v.string(), v.maxLength(200)),
  }),
]);
export type InspectorQuestion = v.InferOutput<typeof InspectorQuestion>;

export interface InspectorRecords {
  /** For the next question; each answer has another one. */
  readonly cursor: string;
  /** The page forgets its actors before it takes these records: they begin with all of them. */
  readonly isReset: boolean;
  /** `machine`: the states and transitions of a machine, as JSON, before its first actor. Else a record, as superjson. */
  readonly records: readonly { readonly event: string; readonly data: string }[];
}

export interface InspectorFact {
  /** Null: the actor has ended, or has no such fact. */
  readonly text: string | null;
}

/** Message on that channel. The page asks, the program answers. */
export type InspectorMessage =
  | { readonly type: 'question'; readonly id: string; readonly question: unknown }
  | { readonly type: 'answer'; readonly id: string; readonly answer: unknown }
  /** A program has begun to answer; an older one on the channel ends. */
  | { readonly type: 'hello'; readonly program: string }
  /** The program is left. */
  | { readonly type: 'bye' };
