/** Kind of a state. The chart of a machine has it. */
export type StateKind =
  /** The model, or the preparation of a request. */
  | 'thinks'
  | 'works'
  /** Waits for a person. */
  | 'asks'
  /** Waits for a time. */
  | 'pauses'
  | 'failed'
  /** Ready and used. */
  | 'serves'
  /** Serves, or ends, worse than it should. */
  | 'unwell'
  /** No action is needed. */
  | 'rests'
  | 'ended';

/** Part of a drawing: the normal loop, ways around it, exceptions, and the base line of final states. */
export type Lane = 'detour' | 'spine' | 'exception' | 'end';

/** `meta` of every simple state of the catalogue. */
export interface StateMeta {
  readonly kind: StateKind;
  readonly lane: Lane;
  /** Position in the lane: beside the state of the spine with the same number. */
  readonly order: number;
}
