/** A response of the responses API that its client may ask for. */
export interface StoredResponse {
  readonly id: string;
  readonly threadId: string;
  /** Undefined: its turn has not begun. */
  readonly turnId: string | undefined;
  readonly isEnded: boolean;
  readonly json: string;
}

/** Store of responses. A response goes with its thread. Every method may throw `StorageError`. */
export interface ResponseStore {
  /** Stores an accepted request, before its turn. */
  add(response: Pick<StoredResponse, 'id' | 'threadId' | 'json'>): void;
  begin(id: string, turnId: string): void;
  /** Replaces the JSON of a response. */
  put(id: string, json: string, isEnded: boolean): void;
  get(id: string): StoredResponse | undefined;
  /** The newest response of a thread. */
  latest(threadId: string): StoredResponse | undefined;
  /** Responses that no process has ended. */
  unfinished(): readonly StoredResponse[];
  delete(id: string): void;
}
