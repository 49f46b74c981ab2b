/** A chat request whose turn has begun, and which its client may repeat. */
export interface StoredChatRequest {
  /** Identifies the client and its request. */
  readonly name: string;
  /** Differs when the same name comes with another body or session. */
  readonly fingerprint: string;
  readonly threadId: string;
  readonly turnId: string;
  /** JSON from which the next process answers the request; undefined: an earlier version stored none. */
  readonly origin: string | undefined;
}

/** Bounds of the ended requests that stay stored. */
export interface ChatRequestLimits {
  /** Milliseconds since the epoch: requests that ended before are deleted. */
  readonly endedAfter: number;
  readonly entries: number;
  /** Characters of all answers together. */
  readonly chars: number;
}

/**
 * Store of chat requests, so that a repeated one runs no turn a second time, also after the death of the agent server. Every
 * method may throw `StorageError`.
 */
export interface ChatRequestStore {
  /** Stores a request whose turn begins, in place of an earlier one of the same name. */
  begin(request: StoredChatRequest): void;
  /** Stores the answer as JSON. Undefined: the end of the turn is unknown. @param at milliseconds since the epoch */
  end(name: string, answer: string | undefined, at: number): void;
  /** Requests whose turns a dead process left running, or whose answers it did not store. */
  unfinished(): readonly StoredChatRequest[];
  /** `answer` is undefined while the turn runs, and when its end is unknown. */
  find(name: string): { readonly fingerprint: string; readonly answer: unknown } | undefined;
  delete(name: string): void;
  /** Deletes ended requests beyond the limits, oldest first. */
  trim(limits: ChatRequestLimits): void;
}
