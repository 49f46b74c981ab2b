import type { Chart } from '../protocol/index.ts';

export type Action = 'ensure' | 'restart' | 'stop';

/** Requests to the Hub that served this page. A refusal rejects with the Hub's own words. */
export class Api {
  readonly #token: string;

  constructor(token: string) {
    this.#token = token;
  }

  async charts(): Promise<Chart[]> {
    return (await this.#request('GET', 'v1/machines')) as Chart[];
  }

  async act(action: Action, workspacePath: string): Promise<void> {
    await this.#request('POST', `v1/appservers/${action}`, { workspacePath });
  }

  async #request(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(path, {
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return answer;
    const message = (answer as { error?: { message?: string } } | null)?.error?.message;
    throw new Error(message ?? `The Hub answered ${response.status}.`);
  }
}
