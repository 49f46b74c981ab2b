import * as v from 'valibot';
import { Delivery, Repository, ReviewDraft, ReviewItem, ReviewRun, SourceWrite } from '../../../src/protocol/index.ts';
import { type IsNews, ofRuns } from './events.ts';

const Page = <const S extends v.GenericSchema>(row: S) => v.object({ rows: v.array(row) });
const Detail = v.object({ item: ReviewItem, runs: v.array(ReviewRun), drafts: v.array(ReviewDraft) });
export type ItemDetail = v.InferOutput<typeof Detail>;

/** A backend's API, as a program with the service token uses it. Responses are checked against the protocol. */
export class ReviewApi {
  readonly #url: string;
  readonly #token: () => string;
  /** Ids of the pull requests that were listed, by number. */
  readonly #items = new Map<number, string>();

  constructor(url: string, token: () => string) {
    this.#url = url;
    this.#token = token;
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number; readonly body: unknown }> {
    const response = await fetch(`${this.#url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#token()}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() };
  }

  async #get<const S extends v.GenericSchema>(path: string, schema: S): Promise<v.InferOutput<S>> {
    const { status, body } = await this.call('GET', path);
    if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
    return v.parse(schema, body);
  }

  /** Posts a request that must succeed. @throws for a status from 300 */
  async post(path: string, body: unknown = {}): Promise<unknown> {
    const { status, body: answer } = await this.call('POST', path, body);
    if (status >= 300) throw new Error(`POST ${path}: ${status} ${JSON.stringify(answer)}`);
    return answer;
  }

  items = async () => (await this.#get('/items?limit=200', Page(ReviewItem))).rows;
  runs = async () => (await this.#get('/runs?limit=200', Page(ReviewRun))).rows;
  /** Writes to the source for one run, or the newest ones of all runs. */
  writes = async (runId?: string) => {
    const query = new URLSearchParams({ limit: '200', ...(runId !== undefined && { runId }) });
    return (await this.#get(`/source-writes?${query}`, Page(SourceWrite))).rows;
  };
  deliveries = async () => (await this.#get('/deliveries?limit=200', Page(Delivery))).rows;
  sources = () => this.#get('/sources', v.array(Repository));
  draft = (draftId: string) => this.#get(`/review-drafts/${draftId}`, ReviewDraft);

  /** A pull request with all that belongs to it; undefined while it is not known. */
  async pull(number: number): Promise<ItemDetail | undefined> {
    const itemId = this.#items.get(number) ?? (await this.#find(number));
    return itemId === undefined ? undefined : this.#get(`/items/${itemId}`, Detail);
  }

  /** News of the runs and drafts of a pull request; of every one while it has not been found. */
  newsOf(number: number): IsNews {
    return (event) => ofRuns(event) && [undefined, event.data['itemId']].includes(this.#items.get(number));
  }

  async #find(number: number): Promise<string | undefined> {
    for (const item of await this.items()) this.#items.set(item.number, item.itemId);
    return this.#items.get(number);
  }
}
