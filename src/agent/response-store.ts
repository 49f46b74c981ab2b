/** Stored response of the Responses API, which its client may read later. */
export interface StoredResponse {
  readonly id: string;
  readonly threadId: string;
  /** Undefined: the turn has not begun. */
  readonly turnId: string | undefined;
  readonly isEnded: boolean;
  readonly json: string;
}

/** Store of responses. Deleting a thread deletes its responses. Every method may throw `StorageError`. */
export interface ResponseStore {
  /** Stores an accepted request before its turn begins. */
  add(response: Pick<StoredResponse, 'id' | 'threadId' | 'json'>): void;
  begin(id: string, turnId: string): void;
  /** Replaces the JSON of a response. */
  put(id: string, json: string, isEnded: boolean): void;
  get(id: string): StoredResponse | undefined;
  /** The newest response of a thread. */
  latest(threadId: string): StoredResponse | undefined;
  /** Responses that have not ended. */
  unfinished(): readonly StoredResponse[];
  delete(id: string): void;
}
